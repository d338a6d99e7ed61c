"""Captures: their settings, what does not fit together, and the connection that they name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from polynya.model.config.capture import CaptureLanding
from polynya.model.config.connection import Connection, EngineSettings, Tls
from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from polynya.model.project_parts import with_files
from polynya.model.stream_checks import capture_problems, connected_problems, connection_problems
from tests.projects import CLICKS, USERS, write_project

SHOP = {
    "apiVersion": "polynya/v1",
    "kind": "landing",
    "name": "shop_db",
    "connection": "shop",
    "tables": {"include": ["public.*"], "exclude": ["public.tmp_%"]},
}
POSTGRESQL = Connection(type="postgresql", host="db", database="shop", user="reader")
SQLSERVER = Connection(type="sqlserver", host="db", database="shop", user="reader")
MARIADB = Connection(type="mariadb", host="db", user="reader")


def capture(**settings):
    return CaptureLanding.model_validate({**SHOP, **settings})


def test_what_a_capture_does_by_default():
    task = capture()

    assert (task.place, task.update_method, task.load.parallel) == ("shop_db", "cdc", 5)
    assert (task.write.roll.size, task.write.roll.age) == (32 * 2**20, timedelta(seconds=2))
    assert (task.errors.environment.retry, task.errors.table.then) == ("forever", "suspend")
    assert not list(capture_problems(task))
    assert not list(connected_problems(task, {"shop": POSTGRESQL}))


@pytest.mark.parametrize(
    ("settings", "path", "code"),
    [
        ({"update_method": "reload"}, ("update_method",), "061"),
        ({"schedule": "@daily"}, ("schedule",), "061"),
        ({"reload_mode": "drop_and_create"}, ("reload_mode",), "061"),
        (
            {"update_method": "reload", "schedule": "@daily", "slot": "shop"},
            ("slot",),
            "061",
        ),
        ({"update_method": "incremental", "schedule": "@daily"}, ("update_method",), "061"),
        (
            {"update_method": "incremental", "incremental": {"column": "at"}},
            ("update_method",),
            "061",
        ),
        (
            {
                "update_method": "incremental",
                "schedule": "@daily",
                "incremental": {"column": "at"},
                "publication": "p",
            },
            ("publication",),
            "061",
        ),
        ({"incremental": {"column": "at"}}, ("incremental",), "061"),
        (
            {
                "update_method": "incremental",
                "schedule": "@daily",
                "incremental": {"column": "at"},
                "mask": {"public.a": {"at": "drop"}},
            },
            ("mask", "public.a", "at"),
            "061",
        ),
        (
            {
                "update_method": "incremental",
                "schedule": "@daily",
                "incremental": {"tables": {"public.tmp_1": {"column": "at"}}},
            },
            ("incremental", "tables", "public.tmp_1"),
            "062",
        ),
        (
            {"update_method": "reload", "schedule": "@daily", "reload": {"schedule": "@daily"}},
            ("reload",),
            "061",
        ),
        (
            {"reload": {"schedule": "@daily"}, "load": {"filter": {"public.a": "b > 1"}}},
            ("reload", "mode"),
            "061",
        ),
        ({"load": {"order": {"public.*": "high"}}}, ("load", "order", "public.*"), "062"),
        ({"load": {"filter": {"shop.a": "b > 1"}}}, ("load", "filter", "shop.a"), "062"),
        ({"mask": {"public.tmp_1": {"a": "drop"}}}, ("mask", "public.tmp_1"), "062"),
        ({"rows": {"Public.a": "b > 1"}}, ("rows", "Public.a"), "062"),
        ({"mask": {"public.a": {"b": {}}}}, ("mask", "public.a", "b"), "063"),
        (
            {"mask": {"public.a": {"b": {"truncate": 1, "replace": None}}}},
            ("mask", "public.a", "b"),
            "063",
        ),
        (
            {"errors": {"environment": {"from": "1h", "to": "1m"}}},
            ("errors", "environment", "from"),
            "061",
        ),
    ],
)
def test_settings_that_do_not_fit_say_where(settings, path, code):
    [problem] = capture_problems(capture(**settings))

    assert (problem.path, problem.error.code) == (path, f"POLYNYA-GTW-{code}")


def test_a_column_may_be_replaced_by_nothing():
    assert not list(capture_problems(capture(mask={"public.a": {"b": {"replace": None}}})))


def test_a_connection_that_is_not_there_is_named_with_those_that_are():
    [missing] = connected_problems(capture(), {"shopp": POSTGRESQL})
    [none] = connected_problems(capture(), {})

    assert missing.error.code == "POLYNYA-GTW-060"
    assert "did you mean `shopp`" in str(missing.error.fix)
    assert none.error.fix == "add `connections/shop.yml`"


def test_a_connection_with_errors_of_its_own_is_no_second_error():
    assert not list(connected_problems(capture(slot="a"), {"shop": None}))


def test_what_only_postgresql_has_is_refused_for_others():
    [problem] = connected_problems(capture(publication="shop"), {"shop": MARIADB})

    assert problem.path == ("publication",)
    assert "of type mariadb" in problem.error.message


CAPTURE = """\
apiVersion: polynya/v1
kind: landing
name: shop_db
connection: shop
tables: {include: ["public.*"]}
"""
CONNECTION = """\
type: postgresql
host: db.example.com
database: shop
user: reader
password: {env: SHOP_PW}
targets: {local: {host: 127.0.0.1}}
"""


@pytest.fixture
def load(tmp_path):
    def load(text=CAPTURE, connection=CONNECTION, *, tolerant=False, **tasks):
        folder = write_project(tmp_path, shop_db=text, **tasks)
        (folder / "connections").mkdir(exist_ok=True)
        (folder / "connections" / "shop.yml").write_text(connection, encoding="utf-8")
        return load_project(folder, tolerant=tolerant)

    return load


def errors_of(load, *given, **tasks):
    with pytest.raises(ConfigErrors) as caught:
        load(*given, **tasks)
    return [f"{error.code} {error}" for error in caught.value.errors]


def test_a_capture_has_its_connection_as_the_target_has_it(load):
    project = load(users=USERS)

    [task] = project.captures
    assert (task.name, task.database.host, task.database.user) == ("shop_db", "127.0.0.1", "reader")
    assert [one.name for one in project.works] == ["shop_db", "users"]
    assert project.where("shop_db", "tables", "include") == "tasks/shop_db.yml:5:10"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("connection: shop", "connection: shopp", "POLYNYA-GTW-060 tasks/shop_db.yml:4:1"),
        ("connection: shop", "conection: shop", "did you mean `connection`"),
        ("connection: shop", "connection: shop\nslot: A-b", "tasks/shop_db.yml:5:1: slot"),
        (
            "connection: shop",
            "connection: shop\nmask: {public.a: {b: {hash: {key: pepper}}}}",
            "POLYNYA-CFG-035 tasks/shop_db.yml:5:30: mask.public.a.b.hash.key",
        ),
        (
            "connection: shop",
            "connection: shop\nmask: {public.a: {b: hide}}",
            "tasks/shop_db.yml:5:19: mask.public.a.b",
        ),
        ("connection: shop", "connection: shop\nfolder: ../x", "POLYNYA-CFG-011"),
    ],
)
def test_what_is_wrong_with_a_capture_says_where(load, old, new, said):
    found = errors_of(load, CAPTURE.replace(old, new))

    assert any(said in error for error in found), found
    assert not any("pepper" in error for error in found)


def test_a_key_may_stand_in_a_file(load):
    mask = 'mask: {public.a: {b: {hash: {key: "${file:/run/pepper}"}}}}\n'

    [task] = load(CAPTURE + mask).captures

    assert "pepper" not in task.model_dump_json()


def test_two_landings_have_two_folders(load):
    clicks = CLICKS + "folder: shop_db/clicks\n"

    [error] = errors_of(load, clicks=clicks)

    assert error.startswith("POLYNYA-STR-004")


def test_a_capture_whose_connection_is_broken_waits_for_it(load):
    project = load(connection="type: postgresql\n", tolerant=True, users=USERS)

    assert not project.captures
    assert [task.name for task in project.tasks] == ["users"]
    assert all(str(error.where).startswith("connections/shop.yml") for error in project.errors)


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"mask": {"public.a": {"b": "drop"}}}, ("mask",)),
        ({"load": {"parallel": 2}}, ("load",)),
        ({"update_method": "reload", "schedule": "@daily"}, ("update_method",)),
        ({"reload": {"schedule": "@daily"}}, ("reload",)),
        ({"rows": {"public.a": "b > 1"}}, ("rows",)),
    ],
)
def test_what_debezium_alone_cannot_do_is_refused(settings, path):
    (problem,) = connected_problems(capture(**settings), {"shop": SQLSERVER})

    assert (problem.path, problem.error.code) == (path, "POLYNYA-GTW-061")
    assert "sqlserver" in problem.error.message


def test_jars_are_of_the_types_that_need_them(tmp_path):
    wrong = MARIADB.model_copy(update={"engine": EngineSettings(jars=("jars",))})
    right = SQLSERVER.model_copy(update={"engine": EngineSettings(jars=("jars", "/other"))})

    (problem,) = connection_problems(wrong)

    assert (problem.path, problem.error.code) == (("engine",), "POLYNYA-GTW-061")
    assert not list(connection_problems(right))
    assert with_files(right, tmp_path).engine.jars == ("jars", "/other")
    assert (SQLSERVER.port_number, MARIADB.port_number) == (1433, 3306)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connector.class", "evil.Connector"),
        ("converters", "evil"),
        ("transforms", "evil"),
        ("snapshot.mode.custom.name", "evil"),
        ("schema.history.internal", "evil.History"),
        ("driver.socketFactoryClass", "evil.Factory"),
        ("driver.clientRerouteServerListJNDIName", "ldap://evil"),
        ("mongodb.authentication.class", "evil.Provider"),
        ("database.url", "jdbc:oracle:thin:@ldap://evil/x"),
        ("database.url", "jdbc:oracle:thin:@//db/x?TNS_ADMIN=/tmp"),
        ("database.url", "jdbc:h2:mem:x;INIT=RUNSCRIPT"),
    ],
)
def test_no_setting_of_a_connector_names_a_class(name, value):
    wrong = SQLSERVER.model_copy(update={"engine": EngineSettings(properties={name: value})})

    (problem,) = connection_problems(wrong)

    assert (problem.path, problem.error.code) == (("engine", "properties", name), "POLYNYA-GTW-061")
    assert value not in problem.error.message


def test_settings_of_a_connector_for_snapshots_and_tls_are_taken():
    given = {
        "snapshot.isolation.mode": "snapshot",
        "driver.trustStore": "/t.jks",
        "log.mining.strategy": "online_catalog",
        "database.url": "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=tcps)(HOST=db)))",
    }
    right = SQLSERVER.model_copy(update={"engine": EngineSettings(properties=given)})

    assert not list(connection_problems(right))


def test_a_database_elsewhere_is_verified_or_said_not_to_be():
    unverified = SQLSERVER.model_copy(update={"host": "db.acme", "tls": Tls(mode="require")})

    (problem,) = connection_problems(unverified)

    assert (problem.path, problem.error.code) == (("tls", "mode"), "POLYNYA-GTW-064")
    allowed = {"tls": Tls(mode="require", allow_unverified=True)}
    for right in (allowed, {"host": "127.0.0.1"}, {"host": "localhost"}, {"tls": Tls()}):
        assert not list(connection_problems(unverified.model_copy(update=right)))


@pytest.mark.parametrize(
    ("window", "says"),
    [
        ({"rrule": "FREQ=DAILY;BYHOUR=25", "duration": "8h"}, "is not a rule"),
        ({"rrule": "FREQ=DAILY", "duration": "8h", "time_zone": "Mars/Base"}, "no time zone"),
        ({"rrule": "FREQ=DAILY", "duration": "0s"}, "longer than 0 seconds"),
    ],
)
def test_a_window_that_is_none_says_what_is_wrong(window, says):
    with pytest.raises(ValueError, match=says):
        capture(active=window)


def test_a_window_may_stand_alone_or_in_a_list():
    window = {"rrule": "FREQ=DAILY", "duration": "8h"}

    assert capture(active=window).active == capture(active=[window]).active
    assert len(capture(maintenance=[window, window]).reading_times.maintenance) == 2
