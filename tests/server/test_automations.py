"""Automations through the API: lists, runs, pauses and bundles of files. No JVM."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.automation.commands import ActionEnd
from polynya.automation.state import AutomationState, AutomationStore, LastLook, RunLog
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.server.access.served import Served, served

HEAD = "apiVersion: polynya/v1\nkind: automation\n"
NIGHTLY = f"""{HEAD}name: nightly
triggers:
  - {{schedule: "30 2 * * *", time_zone: Europe/Berlin}}
  - {{schedule: "0 4 1 1 *", time_zone: UTC}}
actions: [{{validate: true}}]
"""
HOURLY = f"{HEAD}name: hourly\nenabled: false\nactions: [{{validate: true}}]\n"
API = "/api/v1/automations"
BAD = ActionEnd(success=False, code="POLYNYA-TST-001", message="it broke")


@pytest.fixture
def here(tmp_path: Path) -> Served:
    (tmp_path / "automations").mkdir()
    (tmp_path / "automations" / "nightly.yml").write_text(NIGHTLY)
    (tmp_path / "automations" / "hourly.yml").write_text(HOURLY)
    return served(tmp_path, None)


@pytest.fixture
def ask(here: Served) -> Callable[..., Any]:
    def asked(path: str = "", method: str = "GET", status: int = 200, **more: Any) -> Any:
        answer = here.client.request(method, f"{API}{path}", **more)
        assert answer.status_code == status, answer.text
        return answer.json()

    return asked


def store_of(here: Served) -> AutomationStore:
    return AutomationStore(LocalObjectStore(here.root / "warehouse"))


def log_run(here: Served, minutes: int, state: Any = "success") -> RunLog:
    """The log of a run that began minutes after the first."""
    clock = here.clock
    assert isinstance(clock, FakeClock)
    at = clock.now() + timedelta(minutes=minutes)
    log = RunLog(
        id=f"{at:%Y%m%dT%H%M%S%f}Z", automation="nightly", due=at, why="asked", by="a:1",
        started=at, ended=at + timedelta(seconds=3), state=state,
    )  # fmt: skip
    store = store_of(here)
    store.log(log)
    store.change("nightly", lambda known: known.model_copy(update={"last": log.ending()}))
    return log


def test_the_list_shows_next_moments_states_and_last_runs(here: Served, ask) -> None:
    log_run(here, 0, "failure")
    (here.root / "automations" / "broken.yml").write_text(f"{HEAD}name: broken\n")

    page = ask("?moments=3")

    hourly, nightly = page["items"]
    assert (hourly["name"], hourly["state"], hourly["next"]) == ("hourly", "disabled", [])
    assert (nightly["state"], nightly["file"]) == ("waiting", "automations/nightly.yml")
    assert len(nightly["next"]) == 3
    assert nightly["next"] == sorted(nightly["next"])
    assert (nightly["last"]["state"], nightly["last"]["seconds"]) == ("failure", 3.0)
    assert [error["where"] for error in page["errors"]] == ["automations/broken.yml:1:1"]


def test_the_list_says_whether_a_process_looks(here: Served, ask) -> None:
    assert ask()["looked"] is None

    store_of(here).looked(LastLook(at=here.clock.now(), by="n1:7"))
    assert ask()["looked"]["by"] == "n1:7"


def test_a_moment_that_two_schedules_name_is_one(here: Served, ask) -> None:
    both = NIGHTLY.replace('"0 4 1 1 *"', '"30 * * * *"')
    (here.root / "automations" / "nightly.yml").write_text(both)

    moments = ask("/nightly?moments=20")["next"]

    assert len(set(moments)) == 20


def test_one_automation_has_its_definition(ask) -> None:
    details = ask("/nightly")

    assert details["definition"]["actions"][0]["validate"] is True
    assert len(details["next"]) == 5
    assert ask("/none", status=404)["code"] == "POLYNYA-SRV-001"


def test_runs_come_in_pages_with_their_steps_newest_first(here: Served, ask) -> None:
    logs = [log_run(here, minutes) for minutes in range(5)]

    first = ask("/nightly/runs?limit=3")
    rest = ask(f"/nightly/runs?limit=3&cursor={first['next']}")

    assert first["total"] == 5
    listed = [run["id"] for run in (*first["items"], *rest["items"])]
    assert listed == [log.id for log in reversed(logs)]
    assert ask(f"/nightly/runs/{logs[0].id}")["steps"] == []
    for path in ("/nightly/runs/none", "/nightly/runs/..%2f..%2fx", "/..%2f/runs", "/none/runs"):
        ask(path, status=404)


def test_a_pause_holds_until_it_is_resumed(here: Served, ask) -> None:
    paused = ask("/nightly/pause", "POST")
    again = ask("/nightly/pause", "POST")

    assert (paused["state"], paused["next"]) == ("paused", [])
    assert again["paused"] == paused["paused"]
    assert ask("/nightly/resume", "POST")["state"] == "waiting"
    assert store_of(here).read("nightly")[0] == AutomationState()


def test_a_run_by_hand_is_an_operation_and_only_of_an_automation_that_exists(
    here: Served,
) -> None:
    answer = here.client.post("/api/v1/actions/automation-run", json={"automation": "none"})
    assert (answer.status_code, answer.json()["code"]) == (404, "POLYNYA-SRV-001")


def test_an_export_is_imported_elsewhere_all_or_nothing(
    here: Served, ask, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bundle = ask("/export")
    other = served(tmp_path_factory.mktemp("other"), None)
    path = f"{API}/import"

    tried = other.client.post(f"{path}?dry_run=true", json=bundle).json()
    assert not (other.root / "automations").exists()
    done = other.client.post(path, json=bundle).json()
    assert (tried["written"], done["written"], tried["diff"]) == (False, True, done["diff"])
    assert other.client.get(f"{API}/export").json() == bundle

    again = other.client.post(path, json=bundle)
    assert (again.status_code, again.json()["code"]) == (412, "POLYNYA-SRV-008")
    bad = {name: text.replace("validate: true", "run: [none]") for name, text in
           bundle["documents"].items()}  # fmt: skip
    refused = other.client.post(path, json={"documents": bad, "replace": True})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "POLYNYA-AUT-001")
    assert other.client.get(f"{API}/export").json() == bundle


@pytest.mark.parametrize(
    "path", ["tasks/a.yml", "automations/../a.yml", "automations/a.sh", "/etc/a.yml", "a.yml"]
)
def test_an_import_writes_only_automations(ask, path: str) -> None:
    ask("/import", "POST", 422, json={"documents": {path: NIGHTLY}})
