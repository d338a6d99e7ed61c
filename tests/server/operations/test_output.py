"""What people see of the output of an operation who may not read every row."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from polynya.server.access.actions import Action
from polynya.server.operations.output import without_keys
from polynya.server.routes import operations
from polynya.store.clock import SystemClock
from tests.server.access.served import ROLES, Served, served

KEY = "ann@secret.example"
VERIFIED = {
    "type": "dataset.verified",
    "dataset": "shop.users",
    "findings": [{"rule": "one_current", "count": 2, "example": f"key {KEY}"}],
}
COMPARED = {
    "type": "table.compared",
    "table": "users",
    "differences": [{"fault": "missing", "key": KEY}],
    "undecided": [KEY],
}
ROWS: list[dict[str, Any]] = [VERIFIED, COMPARED, {"type": "compare", "ok": False}]
_SAY = "import sys; print(open(sys.argv[1]).read())"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    said = tmp_path / "said.jsonl"
    said.write_text("\n".join(map(json.dumps, ROWS)))
    command = [sys.executable, "-S", "-c", _SAY, str(said)]
    monkeypatch.setattr(operations, "command_of", lambda _: command)
    return served(tmp_path, ROLES, clock=SystemClock())


def output_for(server: Served, person: str, name: str, what: str) -> str:
    answer = server.client.get(
        f"/api/v1/operations/{name}/{what}", headers=server.token(person, *Action)
    )
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def test_keys_of_rows_are_for_people_who_may_read_every_view(server: Served) -> None:
    headers = server.token("oleg@example.com", *Action)
    with server.client:
        started = server.client.post("/api/v1/actions/verify", json={}, headers=headers).json()
        name = started["id"]
        deadline = time.monotonic() + 30
        while not json.loads(output_for(server, "ann@example.com", name, "output"))["lines"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        seen = {
            (person, what): KEY in output_for(server, f"{person}@example.com", name, what)
            for person in ("ann", "max", "oleg", "vera")
            for what in ("output", "events")
        }

    assert {who for who, keys in seen.items() if keys} == {
        ("ann", "output"), ("ann", "events"), ("max", "output"), ("max", "events"),
    }  # fmt: skip


def test_a_line_says_what_is_left_out_and_other_lines_stay_as_they_are() -> None:
    verified, compared, other = map(without_keys, ROWS)

    assert verified["findings"] == [{"rule": "one_current", "count": 2}]
    assert compared["differences"] == [{"fault": "missing"}]
    assert len(compared["undecided"]) == 1
    assert all("keys of rows" in one["hidden"] for one in (verified, compared))
    assert other == ROWS[2]
