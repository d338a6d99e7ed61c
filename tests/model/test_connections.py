"""Loading connections: places, targets, and secrets that never stand in the file."""

from __future__ import annotations

import pytest

from polynya.engine.tasks.capture_process import CaptureSecrets, access_to
from polynya.model.config.masks import FromEnvironment
from polynya.model.errors import ConfigErrors, OperationError
from polynya.model.loader import load_project
from polynya.store.vault import vault
from tests.projects import PROJECT, USERS, write_project

SHOP = """\
type: postgresql
host: db.example.com
database: shop
user: reader
password: {env: SHOP_PW}
"""
TWO_TARGETS = PROJECT + "  prod: {landing: ./in, warehouse: ./tables}\n"


def connections_of(tmp_path, text=SHOP, name="shop.yml", target=None, project=PROJECT, **variables):
    folder = write_project(tmp_path, project=project, users=USERS)
    (folder / "connections").mkdir(exist_ok=True)
    (folder / "connections" / name).write_text(text, encoding="utf-8")
    return load_project(folder, target, environment=variables).connections


def errors_of(tmp_path, text, name="shop.yml", **given):
    with pytest.raises(ConfigErrors) as caught:
        connections_of(tmp_path, text, name, **given)
    return [f"{error.code} {error}" for error in caught.value.errors]


def test_a_connection_is_read_with_its_defaults(tmp_path):
    shop = connections_of(tmp_path)["shop"]

    assert (shop.type, shop.host, shop.port_number) == ("postgresql", "db.example.com", 5432)
    assert (shop.tls.mode, shop.tls.ca) == ("verify", None)
    assert shop.password == FromEnvironment(env="SHOP_PW")


def test_a_target_has_its_own_host(tmp_path):
    text = SHOP + "targets:\n  prod: {host: db.internal, port: 6432, user: '${file:/run/user}'}\n"

    at_home = connections_of(tmp_path, text, project=TWO_TARGETS)["shop"]
    in_prod = connections_of(tmp_path, text, target="prod", project=TWO_TARGETS)["shop"]

    assert (at_home.host, at_home.port_number, at_home.user) == ("db.example.com", 5432, "reader")
    assert (in_prod.host, in_prod.port_number) == ("db.internal", 6432)
    assert (in_prod.user, in_prod.database) == ("${file:/run/user}", "shop")


def test_certificates_of_the_machine_are_where_it_keeps_secrets(tmp_path, monkeypatch):
    secrets = tmp_path / "secrets"
    monkeypatch.setenv("POLYNYA_SECRETS", str(secrets))
    inside = connections_of(tmp_path / "a", SHOP + "tls: {ca: certs/ca.pem}\n")["shop"]
    opened = CaptureSecrets("shop", {"SHOP_PW": "x"}, vault())

    assert access_to(inside, "shop", opened).ca == str(secrets / "certs" / "ca.pem")
    for number, place in enumerate(("/etc/passwd", "../key.pem", "connections/../../key.pem")):
        text = SHOP + f"tls: {{ca: {place}}}\n"
        outside = connections_of(tmp_path / str(number), text)["shop"]
        with pytest.raises(OperationError, match=r"not below .*POLYNYA_SECRETS") as caught:
            access_to(outside, "shop", opened)
        assert caught.value.code == "POLYNYA-GTW-094"


def test_certificates_beside_the_connections_travel_with_the_project(tmp_path):
    folder = write_project(tmp_path / "fetched", project=PROJECT, users=USERS)
    (folder / "connections").mkdir()
    text = SHOP + "tls: {ca: connections/rds.pem}\n"
    (folder / "connections" / "shop.yml").write_text(text, encoding="utf-8")

    shop = load_project(folder, environment={}, base=tmp_path).connections["shop"]

    assert shop.tls.ca == str(folder / "connections" / "rds.pem")
    opened = CaptureSecrets("shop", {"SHOP_PW": "x"}, vault())
    assert access_to(shop, "shop", opened).ca == str(folder / "connections" / "rds.pem")


@pytest.mark.parametrize("reference", ["${env:PW}", "${file:/run/pw}", "${secret:shop#password}"])
def test_a_password_may_be_a_reference(tmp_path, reference):
    text = SHOP.replace("{env: SHOP_PW}", f'"{reference}"')

    shop = connections_of(tmp_path, text, PW="from-the-environment")["shop"]

    assert shop.password is not None
    assert "from-the-environment" not in repr(shop)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{env: SHOP_PW}", "hunter2", "POLYNYA-CFG-035 connections/shop.yml:5:1: password"),
        ("{env: SHOP_PW}", '"${env:PW:-hunter2}"', "POLYNYA-CFG-035"),
        ("postgresql", "postgres", "did you mean `postgresql`"),
        ("host: db.example.com", "hots: db.example.com", "did you mean `host`"),
        ("db.example.com", "db.example.com@x", "is not the name or the address of a host"),
        ("database: shop\n", "", "POLYNYA-GTW-061"),
        ("user: reader", "user: reader\ntls: {mode: disable}", "POLYNYA-GTW-064"),
        ("user: reader", "user: reader\ntargets: {prd: {port: 1}}", "no target `prd`"),
    ],
)
def test_what_is_wrong_says_where(tmp_path, old, new, said):
    found = errors_of(tmp_path, SHOP.replace(old, new))

    assert any(said in error for error in found), found
    assert all("connections/shop.yml:" in error for error in found)
    assert not any("hunter2" in error for error in found)


def test_the_way_may_be_plain_on_this_machine_only(tmp_path):
    plain = SHOP.replace("db.example.com", "127.0.0.1") + "tls: {mode: disable}\n"
    assert connections_of(tmp_path, plain)["shop"].tls.mode == "disable"

    moved = plain + "targets: {local: {host: db.example.com}}\n"
    [error] = errors_of(tmp_path, moved)
    assert error.startswith("POLYNYA-GTW-064 connections/shop.yml:7:19: targets.local.host")


def test_the_name_of_the_file_is_that_of_the_connection(tmp_path):
    [error] = errors_of(tmp_path, SHOP, name="shop-db.yml")

    assert error.startswith(
        "POLYNYA-CFG-010 connections/shop-db.yml: connection name `shop-db` is not usable"
    )


def test_a_broken_connection_stops_nobody_who_does_not_use_it(tmp_path):
    folder = write_project(tmp_path, users=USERS)
    (folder / "connections").mkdir()
    (folder / "connections" / "shop.yml").write_text("type: [", encoding="utf-8")

    project = load_project(folder, tolerant=True)

    assert [task.name for task in project.tasks] == ["users"]
    assert len(project.errors) == 1
