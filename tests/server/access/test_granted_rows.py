"""What a person may read of real tables, over HTTP: queries with masks, the catalog, documents."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.cli.commands import run_command_line
from polynya.server.access.actions import Action
from polynya.server.access.control import AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.server.access.served import HOST, ROLES

ACCESS = f"""apiVersion: polynya/v1
kind: access
{ROLES.replace('["group:analysts"]', "[cora@example.com]")}
grants:
- to: [cora@example.com]
  datasets: [shop.users]
  masked: [name]
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_masked_column_is_null_before_a_statement_sees_it(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    assert run_command_line(["init", str(root)]) == 0
    command = [sys.executable, "-m", "polynya", "-p", str(root), "run", "--once"]
    subprocess.run(command, check=True, capture_output=True)
    (root / "access.yml").write_text(ACCESS)
    app = app_of(ServerState(root, None, SystemClock()))
    control = guard(app, AccessSettings("127.0.0.1", loopback=True, tls=False))
    client = TestClient(app, base_url=HOST, raise_server_exceptions=False)

    def headers(name: str) -> dict[str, str]:
        text, _ = control.tokens.create(
            name, frozenset(Action), timedelta(days=1), longest=timedelta(days=2)
        )
        return {"Authorization": f"Bearer {text}"}

    def asked(name: str, sql: str) -> Any:
        return client.post("/api/v1/queries", json={"sql": sql}, headers=headers(name)).json()

    ann, cora = "ann@example.com", "cora@example.com"
    whole = asked(ann, "SELECT name FROM shop.users WHERE name IS NOT NULL")["rows"]

    assert whole
    assert asked(cora, "SELECT count(*) AS n FROM shop.users")["rows"][0]["n"] >= len(whole)
    assert {row["name"] for row in asked(cora, "SELECT name FROM shop.users")["rows"]} == {None}
    sample = client.get("/api/v1/datasets/shop.users/rows", headers=headers(cora)).json()["rows"]
    assert len(sample) >= len(whole)
    assert {row["name"] for row in sample} == {None}
    page = client.get("/console/datasets/shop.users/rows", headers=headers(cora)).text
    assert "NULL" in page and not any(row["name"] in page for row in whole)
    value = whole[0]["name"]
    for sql in (
        f"SELECT userId FROM shop.users WHERE name = '{value}'",
        f"SELECT userId FROM shop.users WHERE name LIKE '{value[0]}%'",
        "SELECT userId FROM shop.users WHERE name IS NOT NULL",
        "SELECT u.userId FROM shop.users u JOIN shop.users v ON u.name = v.name",
    ):
        answer = asked(cora, sql)
        assert answer.get("rows") == [], (sql, answer)
    assert asked(cora, "SELECT * FROM shop.users__changes")["code"] == "POLYNYA-ACC-003"
    assert asked(cora, "SELECT * FROM shop.nothing")["code"] == "POLYNYA-ACC-003"
    catalog = client.get("/iceberg/v1/namespaces", headers=headers(cora))
    assert catalog.status_code == 403
    for path in ("datasets/shop.users/quarantine", "documents", "documents/access.yml"):
        assert client.get(f"/api/v1/{path}", headers=headers(cora)).status_code in {403, 404}, path
    assert client.get("/api/v1/datasets", headers=headers(cora)).status_code in {200, 403}
