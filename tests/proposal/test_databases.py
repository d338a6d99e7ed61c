"""`init --from` with the URL of a database: what is read of it, proposed, and never written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from examples.servers.postgresql import PostgresServer
from polynya.cli.main import main
from polynya.model.errors import ConfigError
from polynya.model.loader import LoadedProject, load_project
from polynya.proposal.databases import database_url, looked_at
from tests.mariadb import new_server
from tests.postgresql import postgres_server

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server with tables of many kinds in the database `shop`."""
    with postgres_server() as server:
        server.run(
            f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'",
            f"CREATE ROLE follower LOGIN REPLICATION PASSWORD '{PASSWORD}'",
            "CREATE DATABASE shop",
            "GRANT CREATE ON DATABASE shop TO follower",
        )
        server.run(
            "CREATE TABLE orders (id int PRIMARY KEY, city text)",
            "INSERT INTO orders SELECT n, 'Tepic' FROM generate_series(1, 1000) n",
            "CREATE TABLE events (what text)",
            "ALTER TABLE events REPLICA IDENTITY FULL",
            "CREATE TABLE hours (id int PRIMARY KEY, opens timetz, flags bit(3), b bit, t text[])",
            "CREATE TABLE bare (what text)",
            "CREATE VIEW everything AS SELECT * FROM orders",
            'CREATE TABLE "${env:HOME}" (id int)',
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader, follower",
            "ANALYZE",
            database="shop",
        )
        yield server


def url_of(server: PostgresServer, user: str = "follower", password: str = "") -> str:
    return f"postgresql://{user}{password}@127.0.0.1:{server.port}/shop"


@pytest.fixture(autouse=True)
def _variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", PASSWORD)


def proposed(folder: Path, url: str, *more: str) -> LoadedProject:
    """The project that is proposed, as it loads."""
    assert main(["init", str(folder), "--from", url, "--password-env", "PW", *more]) == 0
    return load_project(folder)


def test_a_database_becomes_a_capture_and_a_task_that_makes_tables(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = proposed(tmp_path / "p", url_of(postgres))

    [capture], [store] = project.captures, project.tasks
    assert (capture.name, capture.update_method) == ("shop_capture", "cdc")
    assert capture.tables.include == ("public.*",)
    assert set(capture.tables.exclude) == {"public.bare", "public.${env:HOME}"}
    assert (store.landing.path, store.landing.format) == ("shop_capture", "debezium")
    said = capsys.readouterr().err
    assert "shop: a run loads 3 tables, about 1,000 rows" in said
    assert "then captures each change" in said
    assert "without a key: public.events; each of their events is a row" in said
    assert "left out: public.everything: changes of public.everything cannot be captured" in said
    assert 'ALTER TABLE "public"."bare" REPLICA IDENTITY FULL' in said


def test_types_of_which_values_are_lost_are_named(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proposed(tmp_path / "p", url_of(postgres))

    assert (
        "not kept exactly: public.hours.opens (time with time zone: its offset is lost), "
        "public.hours.flags (bit(3): the number of bits is lost), "
        "public.hours.t (text[]: one dimension only)\n"
    ) in capsys.readouterr().err


def test_programs_get_the_tables_too(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proposed(tmp_path / "p", url_of(postgres), "--json")

    results = map(json.loads, capsys.readouterr().out.splitlines())
    [[capture]] = [one["captures"] for one in results if "captures" in one]
    tables = {one["name"]: (one["key"], one["rows_estimate"]) for one in capture["tables"]}
    assert tables["public.orders"] == (["id"], 1000)
    assert capture["method"] == "cdc"


def test_without_the_right_to_replicate_a_nightly_load_is_proposed(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = proposed(tmp_path / "p", url_of(postgres, "reader"))

    [capture] = project.captures
    assert (capture.update_method, capture.tables.exclude) == ("reload", ())
    assert capture.schedule is not None
    assert 'fix: ALTER ROLE "reader" REPLICATION' in capsys.readouterr().err
    text = (tmp_path / "p/tasks/shop_capture.yml").read_text()
    assert '# To capture changes: ALTER ROLE "reader" REPLICATION' in text


def test_no_password_is_written_or_shown(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = PASSWORD.replace(" ", "%20")
    url = url_of(postgres, password=f":{secret}")

    assert main(["init", str(tmp_path / "p"), "--from", url]) == 0

    shown = capsys.readouterr()
    written = [file.read_text() for file in (tmp_path / "p").rglob("*") if file.is_file()]
    for text in (shown.out, shown.err, *written):
        assert PASSWORD not in text
        assert secret not in text
    assert "password: {env: SHOP_PASSWORD}" in (tmp_path / "p/connections/shop.yml").read_text()
    assert "the password in the URL was used and is in no file" in shown.err
    assert "next: set SHOP_PASSWORD to the password" in shown.err


def test_a_password_is_asked_for(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return PASSWORD

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("getpass.getpass", answer)

    assert main(["init", str(tmp_path / "p"), "--from", url_of(postgres)]) == 0

    assert asked == [f"Password of {url_of(postgres)} (empty for none): "]


def test_tables_are_chosen_by_patterns(postgres: PostgresServer, tmp_path: Path) -> None:
    project = proposed(tmp_path / "p", url_of(postgres), "--tables", "public.ord%")

    assert project.captures[0].tables.include == ("public.ord%",)
    assert project.tasks[0].include == ("public.ord%",)


def test_each_schema_gets_a_task_of_its_own(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.run("CREATE DATABASE two")
    statements = (
        f"CREATE SCHEMA {name}; CREATE TABLE {name}.orders (id int PRIMARY KEY)"
        for name in ("eu", "us")
    )
    postgres.run(*statements, database="two")
    url = f"postgresql://lake:{postgres.password}@127.0.0.1:{postgres.port}/two"

    assert main(["init", str(tmp_path / "p"), "--from", url]) == 0

    tasks = {task.name: (task.schema_, task.include) for task in load_project(tmp_path / "p").tasks}
    assert tasks == {"two_eu": ("two_eu", ("eu.*",)), "two_us": ("two_us", ("us.*",))}
    assert main(["init", str(tmp_path / "q"), "--from", url, "--tables", "%.orders"]) == 0
    tasks = {task.name: (task.schema_, task.include) for task in load_project(tmp_path / "q").tasks}
    assert tasks == {"two_eu": ("two_eu", ("eu.orders",)), "two_us": ("two_us", ("us.orders",))}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://ann@127.0.0.1:1/shop", "PostgreSQL does not answer"),
        ("postgresql://127.0.0.1/shop", "names no user"),
        ("postgresql://ann:hunter2@127.0.0.1", "names no database"),
        ("postgresql://ann:hunter2@127.0.0.1:x/shop", "host or port cannot be read"),
        ("postgresql://ann:hunter2#x@127.0.0.1/shop", "host or port cannot be read"),
        ("postgresql://ann:1/hunter2@127.0.0.1/shop", "names no user"),
        ("postgresql://ann:[hunter2@127.0.0.1/shop", "host or port cannot be read"),
        ("postgresql://ann:hunter2@db.example.com/shop?sslmode=disable", "without encryption"),
        ("postgresql://ann:hunter2@127.0.0.1/shop?options=hunter2", "`options` is not known"),
        ("mysql://$%7Benv:HOME%7D:hunter2@127.0.0.1/shop", "cannot be written"),
        ("mysql://ann:hunter2@a,b/shop", "is not the name or the address of a host"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused_without_its_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str, reason: str
) -> None:
    assert main(["init", str(tmp_path / "p"), "--from", url, "--password-env", "PW"]) == 2

    shown = capsys.readouterr().err
    assert "POLYNYA-CLI-006" in shown
    assert reason in shown
    assert "hunter2" not in shown
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("url", "tls"),
    [
        ("postgresql://ann@localhost/shop", "disable"),
        ("postgresql://ann@db.example.com/shop", "verify"),
        ("postgresql://ann@db.example.com/shop?sslmode=prefer", "verify"),
        ("postgresql://ann@db.example.com/shop?sslmode=require", "require"),
        ("mysql://ann@db.example.com/shop?ssl-mode=VERIFY_IDENTITY", "verify"),
    ],
)
def test_a_database_elsewhere_is_reached_with_tls(url: str, tls: str) -> None:
    assert database_url(url).tls == tls


def test_a_connection_that_another_project_has_stays(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    (tmp_path / "p/connections").mkdir(parents=True)
    (tmp_path / "p/connections/shop.yml").write_text("type: postgresql\n")

    url = url_of(postgres)

    assert main(["init", str(tmp_path / "p"), "--from", url, "--password-env", "PW"]) == 2


def test_options_of_a_database_need_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")

    assert main(["init", str(tmp_path / "p"), "--tables", "a.*"]) == 2
    assert (
        main(["init", str(tmp_path / "p"), "--from", str(tmp_path / "a.csv"), "--tables", "a"]) == 2
    )


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a database `shop`, and a user for each right."""
    server = new_server(tmp_path_factory.mktemp("mariadb"))
    try:
        server.start()
        server.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id INT PRIMARY KEY, city TEXT)",
            "INSERT INTO shop.orders VALUES (1, 'Tepic'), (2, 'Leon')",
            "CREATE TABLE shop.past (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
            "CREATE TABLE shop.odd (id INT PRIMARY KEY, x TEXT COMPRESSED)",
            "CREATE VIEW shop.everything AS SELECT * FROM shop.orders",
            f"CREATE USER reader@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
            "GRANT SELECT ON shop.* TO reader@'127.0.0.1'",
        )
        yield server
    finally:
        server.close()


def mariadb_url(server: Server, user: str) -> str:
    return f"mariadb://{user}@127.0.0.1:{server.port}/shop"


def test_what_a_binlog_does_not_have_as_it_is_is_left_out(
    mariadb: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("PW", mariadb.password)

    project = proposed(tmp_path / "p", mariadb_url(mariadb, mariadb.user))

    [capture] = project.captures
    assert (capture.update_method, capture.tables.include) == ("cdc", ("shop.*",))
    assert set(capture.tables.exclude) == {"shop.past", "shop.odd"}
    said = capsys.readouterr().err
    assert "left out: shop.odd: shop.odd.x (text" in said
    assert "left out: shop.everything: shop.everything are views" in said


def test_a_reader_of_mariadb_loads_every_night(
    mariadb: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = proposed(tmp_path / "p", mariadb_url(mariadb, "reader"))

    assert project.captures[0].update_method == "reload"
    assert set(project.captures[0].tables.exclude) == {"shop.past", "shop.odd"}
    assert "fix: GRANT REPLICATION SLAVE ON *.*" in capsys.readouterr().err


def test_a_database_without_tables_is_refused(postgres: PostgresServer) -> None:
    postgres.run("CREATE DATABASE nothing")
    url = database_url(f"postgresql://lake@127.0.0.1:{postgres.port}/nothing")

    with pytest.raises(ConfigError, match="no table can be read"):
        looked_at(url, postgres.password)
