"""`init --from` with the URL of a database: a run makes the tables that the command named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.postgresql import PostgresServer
from tests.oracle.packs.driver import CliDriver
from tests.postgresql import postgres_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        started.run(
            "CREATE DATABASE shop",
            f"CREATE ROLE reader LOGIN PASSWORD '{started.password}'",
        )
        started.run(
            "CREATE TABLE orders (id int PRIMARY KEY, city text, amount numeric(12,2))",
            "INSERT INTO orders SELECT n, 'Tepic', n FROM generate_series(1, 500) n",
            "CREATE TABLE events (what text)",
            "ALTER TABLE events REPLICA IDENTITY FULL",
            "INSERT INTO events SELECT 'seen' FROM generate_series(1, 20)",
            "CREATE TABLE bare (what text)",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
            "ANALYZE",
            database="shop",
        )
        yield started


@pytest.mark.parametrize(
    ("user", "method", "tables"),
    [
        ("lake", "cdc", {"orders": 500, "events": 20}),
        ("reader", "reload", {"orders": 500, "events": 20, "bare": 0}),
    ],
)
def test_a_run_makes_the_tables_of_the_proposal(
    server: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: str,
    method: str,
    tables: dict[str, int],
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", server.password)
    driver, project = CliDriver(), tmp_path / "p"
    url = f"postgresql://{user}@127.0.0.1:{server.port}/shop"

    made = driver.call(
        "init", str(project), "--from", url, "--password-env", "SHOP_PASSWORD", "--json"
    )

    assert made.code == 0, made.errors
    [said] = json.loads(made.output.splitlines()[-1])["captures"]
    assert said["method"] == method
    assert {one["name"]: one["rows_estimate"] for one in said["tables"]} == {
        f"public.{name}": rows for name, rows in tables.items()
    }
    driver.run_project(project, apply="always")
    filled = [name for name, rows in tables.items() if rows]
    found = driver.query(project, [f"SELECT count(*) AS n FROM p.{name}" for name in filled])
    assert {name: rows[0]["n"] for name, rows in zip(filled, found, strict=True)} == {
        name: tables[name] for name in filled
    }
