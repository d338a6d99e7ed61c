"""Plans over the API: made, decided by a person, applied to the same files only. No JVM."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.cli.main import main
from polynya.server.app import app_of
from polynya.server.plans import changed_files, plan_says
from polynya.server.routes import operations
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from polynya.store.configuration import FolderSource, plan_fingerprint
from tests.projects import USERS, write_project

#: What stands in for `polynya`: it says what a file holds, and ends well.
_COMMAND = """
import os, pathlib, sys
if "plan" in sys.argv:
    print(pathlib.Path(sys.argv[1]).read_text(), end="", flush=True)
pathlib.Path(os.environ["POLYNYA_OPERATION"], "exit").write_text("0")
"""
CHANGE = {
    "kind": "type_rewritten", "what": "columns: n is int, bigint is declared",
    "means": "rewrites 10 rows", "action": "apply", "destructive": False,
    "rewrites": {"rows": 10, "size_bytes": 900, "files": 2},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path, users=USERS)


def fingerprint(folder: Path) -> str:
    return plan_fingerprint(FolderSource(folder).read().files)


def says(folder: Path) -> None:
    """What the next plan of the project as it is now says."""
    lines = [
        {"type": "plan.dataset", "dataset": "shop.users", "task": "users", "changes": [CHANGE]},
        {
            "type": "plan", "changes": True, "datasets": 1, "to_decide": 0, "destructive": 0,
            "fingerprint": fingerprint(folder),
        },
    ]  # fmt: skip
    (folder / "says.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    says(folder)
    command = [sys.executable, "-S", "-c", _COMMAND, str(folder / "says.jsonl")]
    monkeypatch.setattr(operations, "command_of", lambda _: command)
    state = ServerState(folder, None, SystemClock())
    with TestClient(app_of(state), raise_server_exceptions=False) as client:
        yield client


def shown(client: TestClient, name: str) -> dict[str, Any]:
    """A plan whose operations have ended."""
    for _ in range(400):
        found: dict[str, Any] = client.get(f"/api/v1/plans/{name}").json()
        if found["state"] not in {"making", "applying"}:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def made(client: TestClient) -> str:
    answer = client.post("/api/v1/plans")
    assert answer.status_code == 202, answer.text
    name: str = answer.json()["id"]
    assert answer.headers["location"] == f"/api/v1/plans/{name}"
    return name


def edit(folder: Path, text: str = "# another comment\n") -> None:
    file = folder / "tasks" / "users.yml"
    file.write_text(file.read_text() + text)


def did(client: TestClient, name: str, what: str, **body: Any) -> tuple[int, str]:
    answer = client.post(f"/api/v1/plans/{name}/{what}", json=body)
    read = answer.json()
    return answer.status_code, read.get("code") or read["state"]


def test_a_plan_is_made_approved_and_applied_and_the_next_one_shows_what_differs(
    client: TestClient, folder: Path
) -> None:
    name = made(client)
    ready = shown(client, name)
    (effect,) = client.get(f"/api/v1/plans/{name}/effects").json()["items"]
    approved = did(client, name, "approve", comment="fine")
    started = client.post(f"/api/v1/plans/{name}/apply", json={})
    applied = shown(client, name)
    edit(folder)
    says(folder)
    second = made(client)
    (file,) = client.get(f"/api/v1/plans/{second}/files").json()["items"]

    assert (ready["state"], ready["changes"], ready["effects"]) == ("ready", True, 1)
    assert (ready["base"], ready["files"]) == (None, None)
    assert (effect["kind"], effect["name"]) == ("dataset", "shop.users")
    assert effect["changes"][0]["rewrites"] == {
        "rows": 10, "files": 2, "bytes": 900, "seconds": None
    }  # fmt: skip
    assert approved == (200, "approved")
    operation = client.get(started.headers["location"]).json()
    assert operation["command"] == (
        f"polynya --target=local migrate --yes --if-unchanged={fingerprint_of(ready)}"
    )
    assert (applied["state"], applied["applied"]["operation"]) == ("applied", operation["id"])
    assert applied["decision"]["comment"] == "fine"
    assert shown(client, second)["base"] == name
    assert (file["path"], file["change"]) == ("tasks/users.yml", "changed")
    assert "+# another comment" in file["diff"]
    ids = [one["id"] for one in client.get("/api/v1/plans").json()["items"]]
    assert ids == [second, name]
    (only,) = client.get("/api/v1/plans?state=applied").json()["items"]
    assert only["id"] == name


def fingerprint_of(plan: dict[str, Any]) -> str:
    found: str = plan["fingerprint"]
    return found


def test_a_plan_of_other_files_is_neither_approved_nor_applied(
    client: TestClient, folder: Path
) -> None:
    first, second = made(client), made(client)
    shown(client, first), shown(client, second)
    assert did(client, first, "approve") == (200, "approved")
    edit(folder)

    assert shown(client, first)["state"] == "outdated"
    assert did(client, first, "apply") == (409, "POLYNYA-SRV-085")
    assert did(client, second, "approve") == (409, "POLYNYA-SRV-085")
    assert did(client, second, "reject", comment="too late") == (200, "rejected")


def test_a_plan_is_decided_once_and_applied_once(client: TestClient) -> None:
    name, other = made(client), made(client)
    shown(client, name), shown(client, other)

    assert did(client, name, "apply") == (409, "POLYNYA-SRV-086")
    assert did(client, name, "reject") == (200, "rejected")
    assert did(client, name, "approve") == (409, "POLYNYA-SRV-086")
    assert did(client, name, "apply") == (409, "POLYNYA-SRV-086")
    assert did(client, other, "approve") == (200, "approved")
    assert did(client, other, "apply", command="run")[0] == 202
    shown(client, other)
    assert did(client, other, "apply") == (409, "POLYNYA-SRV-086")
    assert did(client, "none", "approve") == (404, "POLYNYA-SRV-001")


def test_a_request_for_a_plan_can_be_repeated_with_its_key(client: TestClient) -> None:
    key = {"Idempotency-Key": "release-7"}
    first, again = (client.post("/api/v1/plans", headers=key).json()["id"] for _ in range(2))

    assert first == again
    assert client.get("/api/v1/plans").json()["total"] == 1


def test_changes_of_other_files_leave_a_plan_as_it_is(client: TestClient, folder: Path) -> None:
    name = made(client)
    shown(client, name)
    (folder / "automations").mkdir()
    (folder / "automations" / "nightly.yml").write_text("kind: automation\n")

    assert shown(client, name)["state"] == "ready"


def test_the_lines_of_a_plan_become_effects() -> None:
    found = plan_says(
        [
            {"type": "version"},
            {"type": "plan.task", "task": "new", "means": "the next run discovers its tables"},
            {"type": "plan.step", "dataset": "a.b", "task": "t", "means": "it computes all"},
            {
                "type": "plan.impact", "dataset": "a.b", "task": "t", "columns": ["x"],
                "changed": {"dataset": "c.d", "column": "y", "what": "gone"}, "fails": "no y",
            },
            {"type": "plan.mirror", "mirror": "m", "statements": [1, 2]},
            {"type": "error", "code": "POLYNYA-TRF-001", "message": "wrong"},
        ]
    )  # fmt: skip

    assert [(one.kind, one.name) for one in found.effects] == [
        ("task", "new"), ("step", "a.b"), ("impact", "a.b"), ("mirror", "m")
    ]  # fmt: skip
    assert found.effects[1].text == "it computes all"
    assert found.effects[2].text.endswith("it reaches x; its query then fails: no y")
    assert [one["code"] for one in found.errors] == ["POLYNYA-TRF-001"]


def test_files_that_come_change_and_go() -> None:
    before, after = {"a": "1\n", "b": "1\n"}, {"b": "2", "c": "3\n"}

    found = {one.path: one.change for one in changed_files(before, after)}

    assert found == {"a": "removed", "b": "changed", "c": "added"}
    assert changed_files(None, after) == ()


@pytest.mark.parametrize("command", ["migrate", "run"])
def test_the_command_line_refuses_files_that_are_not_those_of_the_plan(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--project", str(folder), "--json"]) == 3
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (plan,) = (one for one in lines if one["type"] == "plan")
    assert plan["fingerprint"] == fingerprint(folder)
    edit(folder)

    code = main(
        [command, "--project", str(folder), "--json", "--if-unchanged", plan["fingerprint"]]
    )

    assert code not in {0, 3}
    assert "POLYNYA-SRV-085" in capsys.readouterr().out
