"""`polynya validate`, `diff`, `export` and `import` of a project with bindings per target."""

from __future__ import annotations

import json
import socket

import pytest

from polynya.cli.main import main
from tests.projects import PROJECT, USERS, write_project

TARGETS = PROJECT + "  prod: {landing: './${var:PLACE}', warehouse: ./tables}\n"
EVENTS = """\
type: kafka
bootstrap_servers: 127.0.0.1:9092
properties:
  ssl.key.password: ${env:KAFKA_PW}
  ssl.keystore.certificate.chain: ${env:KAFKA_PW}
"""
CLICKS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: clicks
source: {kafka: {connection: events, topics: ["${var:TOPIC:-clicks}"]}}
"""
PROD = """\
connections:
  events:
    bootstrap_servers: broker.prod:9093
    properties: {ssl.key.password: "${secret:events#password}"}
variables: {TOPIC: visits, PLACE: in}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKA_PW", "hunter2")
    monkeypatch.delenv("POLYNYA_BINDINGS", raising=False)
    folder = write_project(tmp_path / "shop", project=TARGETS, users=USERS, clicks=CLICKS)
    (folder / "connections").mkdir()
    (folder / "connections" / "events.yml").write_text(EVENTS, encoding="utf-8")
    outside = tmp_path / "etc"
    outside.mkdir()
    (outside / "prod.yml").write_text(PROD, encoding="utf-8")
    return folder


@pytest.fixture
def run(capsys):
    """Run a command: its exit code, output and messages; JSON as a list."""

    def call(*arguments, code=0):
        found = main([str(argument) for argument in arguments])
        out, messages = capsys.readouterr()
        assert found == code, (out, messages)
        assert "hunter2" not in out + messages
        if "--json" in arguments:
            return [json.loads(line) for line in out.splitlines()][1:], messages
        return out, messages

    return call


def test_validate_checks_a_target_with_its_bindings(project, run):
    outside = project.parent / "etc"

    out, _ = run("validate", "-p", project)
    without, _ = run("validate", "-p", project, "-t", "prod", "--json", code=2)
    bound, _ = run("validate", "-p", project, "-t", "prod", "--bindings", outside)

    assert "valid: project shop, target local" in out
    assert [one["code"] for one in without if one["type"] == "error"] == ["POLYNYA-CFG-050"]
    assert "valid: project shop, target prod" in bound


def test_validate_shows_where_each_setting_comes_from(project, run):
    outside = project.parent / "etc"

    text, _ = run("validate", "-p", project, "-t", "prod", "--bindings", outside, "--origins")
    lines, _ = run("validate", "-p", project, "-t", "prod", "--bindings", outside, "--json")

    assert (
        "connection events (kafka)\n"
        "  bootstrap_servers: broker.prod:9093\n"
        f"      {outside}/prod.yml:3:5, from the bindings of the target\n"
        "  properties.ssl.key.password: ${secret:events#password}\n"
    ) in text
    [connection] = [one for one in lines if one["type"] == "validation.connection"]
    assert connection["settings"][0] == {
        "name": "bootstrap_servers",
        "value": "broker.prod:9093",
        "where": f"{outside}/prod.yml:3:5",
        "from": "bindings",
    }


def test_validate_warns_of_what_has_no_effect_and_what_this_machine_cannot_resolve(project, run):
    (project / "connections" / "shop.yml").write_text(
        "type: postgresql\nhost: 127.0.0.1\ndatabase: shop\nuser: reader\n"
        "password: {env: NO_SUCH_PW}\n"
        "targets: {local: {port: 1}}\n"
    )
    (project / "bindings").mkdir()
    (project / "bindings" / "local.yml").write_text(
        "variables: {NEVER: 1}\nconnections: {shop: {port: 2}}\n"
    )

    _, messages = run("validate", "-p", project)

    assert "bindings/local.yml:1:13: no file names this variable" in messages
    assert "bindings/local.yml:2:15: no task names this connection" in messages
    assert "connections/shop.yml:6:19: the bindings of the target replace it" in messages
    assert "connection shop, password: the environment variable `NO_SUCH_PW` is not set" in messages


def test_validate_asks_the_servers_only_if_told_to(project, run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = EVENTS.replace("127.0.0.1:9092", f"127.0.0.1:{port}")
        (project / "connections" / "events.yml").write_text(text)

        good, _ = run("validate", "-p", project, "--reach")
    bad, _ = run("validate", "-p", project, "--reach", "--json", code=4)
    run("validate", "-p", project)
    tested, _ = run("connection", "test", "events", "-p", project, code=1)

    assert f"kafka: 127.0.0.1:{port}" in good
    [check] = [one for one in bad if one["type"] == "check"]
    assert (check["name"], check["status"]) == ("connection events", "fail")
    assert "does not answer" in check["detail"]
    assert "events cannot be used from here" in tested


def test_diff_compares_secrets_as_references(project, run):
    outside = project.parent / "etc"

    text, _ = run("diff", "local", "prod", "-p", project, "--bindings", outside, code=3)
    lines, _ = run("diff", "local", "prod", "-p", project, "--bindings", outside, "--json", code=3)
    same, _ = run("diff", "local", "local", "-p", project)

    assert (
        "connections.events.bootstrap_servers\n"
        "  local  127.0.0.1:9092  (connections/events.yml:2:1)\n"
        f"  prod   broker.prod:9093  ({outside}/prod.yml:3:5)\n"
    ) in text
    assert "variables.TOPIC\n  local  (not set)\n" in text
    assert "  used at tasks/clicks.yml:4:47\n" in text
    by_name = {one["setting"]: one["targets"] for one in lines if one["type"] == "diff.setting"}
    assert by_name["connections.events.properties.ssl.key.password"] == {
        "local": {"value": "${env:KAFKA_PW}", "where": "connections/events.yml:4:3"},
        "prod": {"value": "${secret:events#password}", "where": f"{outside}/prod.yml:4:18"},
    }
    assert by_name["landing"]["prod"]["value"] == "./in"
    assert lines[-1] == {
        "type": "diff",
        "first": "local",
        "second": "prod",
        "settings": len(by_name),
    }
    assert "no difference" in same


def test_diff_finds_what_a_short_form_says(project, run):
    prod = (
        "  prod:\n    landing: s3://acme-landing/in\n    warehouse: s3://acme-lake/tables\n"
        "    catalog: glue\n"
    )
    (project / "polynya.yml").write_text(PROJECT + prod)

    text, _ = run("diff", "local", "prod", "-p", project, code=3)

    assert "catalog.type\n  local  jdbc  (by default)\n  prod   glue  (polynya.yml:9:5)\n" in text


def test_a_project_is_passed_on_without_its_secrets(project, run, tmp_path, monkeypatch):
    archive = tmp_path / "shop.tar.gz"
    run("export", project, archive)
    monkeypatch.delenv("KAFKA_PW")

    text, _ = run("import", archive, tmp_path / "copy")
    bound, _ = run("import", archive, tmp_path / "again", "--bindings", tmp_path / "etc", "--json")

    assert "4 files in" in text
    assert "target prod: 3 bindings missing\n" in text
    assert "connections/events.yml:4:3: properties.ssl.key.password: environment variable" in text
    assert "polynya.yml:6:10: targets.prod.landing: variable `PLACE` is not bound" in text
    missing = {
        one["target"]: len(one["missing"]) for one in bound if one["type"] == "import.target"
    }
    assert missing == {"local": 2, "prod": 1}


def test_an_import_of_a_wrong_project_says_what_is_wrong_once(project, run, tmp_path):
    (project / "tasks" / "users.yml").write_text(USERS.replace("keys", "kees"))
    run("export", project, tmp_path / "shop.tar.gz")

    _, messages = run("import", tmp_path / "shop.tar.gz", tmp_path / "copy", code=2)

    assert messages.count("POLYNYA-CFG-007]") == 1
