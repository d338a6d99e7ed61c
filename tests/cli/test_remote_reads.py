"""Commands with `--server URL` that show what a server says, against one on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.cli.commands import run_command_line
from polynya.cli.remote_reads import READS
from tests.projects import USERS, write_project
from tests.server.operations.test_client import served

NIGHTLY = """apiVersion: polynya/v1
kind: automation
name: nightly
triggers: [{schedule: "30 2 * * *", time_zone: UTC}]
actions: [{validate: true}]
"""
ONCALL = """apiVersion: polynya/v1
kind: notification
channels: {hook: {type: webhook, url: "http://127.0.0.1:9"}}
rules: {all: {}}
"""
CRM = """apiVersion: polynya/v1
kind: registered
name: crm
tables: [{name: persons, parquet: persons}]
"""
Call = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Run a command at a server of a project; its exit code and its JSON."""
    folder = write_project(tmp_path, users=USERS, crm=CRM)
    (folder / "persons").mkdir()
    persons = pa.table({"id": [1, 2], "name": ["Ann", None], "paid": [Decimal("1.50"), None]})
    parquet.write_table(persons, folder / "persons" / "1.parquet")
    for name, text in {"automations/nightly": NIGHTLY, "notifications/oncall": ONCALL}.items():
        (folder / name).parent.mkdir()
        (folder / f"{name}.yml").write_text(text)
    (folder / "warehouse").mkdir()
    with served(folder) as url:

        def run(*words: str) -> tuple[int, list[dict[str, Any]]]:
            code = run_command_line(["--server", url, "--json", *words])
            said = capsys.readouterr()
            lines = map(json.loads, (said.out + said.err).splitlines())
            return code, [one for one in lines if one.get("type") != "version"]

        yield run


def test_automations_of_a_server_are_shown_paused_and_resumed(call: Call) -> None:
    code, (listed,) = call("automation", "list")
    assert (code, listed["name"], listed["state"]) == (0, "nightly", "waiting")
    assert call("automation", "pause", "nightly")[1][0]["state"] == "paused"
    assert call("automation", "show", "nightly")[1][0]["state"] == "paused"
    assert call("automation", "resume", "nightly")[1][0]["type"] == "automation.resumed"
    assert call("automation", "runs", "nightly", "--steps") == (0, [])
    code, (error,) = call("automation", "show", "../x")
    assert (code, error["code"]) == (2, "POLYNYA-SRV-001")


def test_status_and_notifications_of_a_server(call: Call) -> None:
    code, (dataset,) = call("status")
    assert (code, dataset["name"], dataset["health"]) == (0, "shop.users", "new")
    assert call("status", "shop.none*")[1] == []
    assert call("notification", "list")[1][0]["route"] == "oncall.all.hook"
    code, (error,) = call("notification", "test", "oncall")
    assert (code, error["code"]) == (1, "POLYNYA-NTF-005")
    code, (error,) = call("status", "--watch")
    assert (code, error["code"]) == (2, "POLYNYA-SRV-051")


def test_rows_of_a_server_are_those_of_the_command_in_its_project(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT id, name, paid FROM crm.persons ORDER BY id"
    code, rows = call("query", sql)

    assert (code, rows[0]) == (0, {"id": 1, "name": "Ann", "paid": "1.50"})
    assert run_command_line(["-p", str(tmp_path), "--json", "query", sql]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows
    assert call("query", sql, "--limit", "1")[1] == rows[:1]
    (tmp_path / "two.sql").write_text(f"SELECT 1 AS n; {sql}")
    numbered = call("query", "--file", str(tmp_path / "two.sql"))[1]
    assert numbered == [{"statement": 1, "rows": [{"n": 1}]}, {"statement": 2, "rows": rows}]
    code, (error,) = call("query", "SELECT uuid() AS u FROM crm.persons")
    assert (code, error["code"]) == (1, "POLYNYA-QRY-002")
    code, (error,) = call("query", sql, "--engine", "spark")
    assert (code, error["code"]) == (2, "POLYNYA-SRV-051")


def test_rejected_records_and_clusters_of_a_server(call: Call) -> None:
    assert call("quarantine", "list") == (0, [])
    assert call("quarantine", "list", "shop.users", "--rule", "null_key") == (0, [])
    code, (error,) = call("quarantine", "list", "shop.none")
    assert (code, error["code"]) == (2, "POLYNYA-SRV-001")
    code, (cluster,) = call("cluster", "status")
    assert (code, cluster["type"], cluster["status"]) == (1, "cluster.status", "Unknown")
    assert call("cluster", "nodes") == (0, [])
    code, (error,) = call("cluster", "status", "--cluster", "other")
    assert (code, error["code"]) == (2, "POLYNYA-SRV-051")


def test_every_command_that_is_shown_is_one_of_the_command_line() -> None:
    from polynya.cli.commands import build_app

    for words in READS:
        first, *more = words.split()
        assert build_app([first])[first] is not None
        for word in more:
            assert word in set(build_app([first])[first])
