"""The pages about data show hostile values as text: nothing of them is an element, or hides."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.model.errors import DependencyError
from polynya.server.app import app_of
from polynya.server.pages import ListPage
from polynya.server.routes import (
    captures,
    datasets,
    documents,
    latency,
    operations,
    projects,
    runs,
    streams,
)
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.console.hostile import HOSTILE, SEEN, TAME, Elements, filled, hidden
from tests.projects import USERS, write_project

MOMENT = "2026-11-29T10:00:00+00:00"
STATUS_NUMBERS = (
    "rows_in", "rows_out", "rows_filtered", "rows_quarantined", "rows_unparsed", "pending_rows",
    "pending_bytes", "pending_files", "applies", "inserts", "updates", "deletes", "truncates",
    "retained_rows", "retained_bytes", "lost_batches", "lost_messages", "reload_rows",
    "rows_per_second", "pending_age_seconds", "last_apply_seconds", "earlier_shape_changes",
)  # fmt: skip
STATUS_TEXTS = (
    "suspended", "copied_at", "copied_to", "applied_at", "last_apply_reason", "counted_since",
    "reload_next", "reload_ended", "owner",
)  # fmt: skip
HEALTH_NUMBERS = (
    "score", "files", "average_bytes", "delete_files", "deleted_share", "snapshots", "manifests",
    "metadata_bytes",
)  # fmt: skip
PATHS = (
    "/console",
    "/console/latest-operations",
    "/console/tasks",
    "/console/tasks/x",
    "/console/tasks/x/settings",
    "/console/tasks/x/operations",
    "/console/datasets",
    "/console/datasets/x",
    "/console/datasets/x/latency",
    "/console/tasks/x/latency",
    "/console/datasets/x/schema",
    "/console/datasets/x/quarantine",
    "/console/datasets/x/rows",
    "/console/datasets/x/snapshots",
    "/console/datasets/x/files",
    "/console/captures",
    "/console/captures/x",
    "/console/streams",
    "/console/streams/x/y",
    "/console/events",
    "/console/runs",
    "/console/runs/x",
)
#: Their texts are of the product, or they read no text of others.
WITHOUT_TEXT = {"/console/datasets/x/latency", "/console/tasks/x/latency"}


def listed(model: Any, text: str, of: Any = ListPage, **given: Any) -> Any:
    more = {"missing": [text]} if of is not ListPage else {}
    return of.model_construct(items=[filled(model, text, **given)], total=1, next=text, **more)


def answers(text: str) -> dict[tuple[Any, str], Any]:
    """What each route of the API answers, with a text in every field."""
    details = filled(
        datasets.DatasetDetails,
        text,
        status={
            **dict.fromkeys(STATUS_NUMBERS, 3),
            **dict.fromkeys(STATUS_TEXTS, text),
            "conflicts": {text: 3},
            "counters": {text: 3},
            "shape_changes": [
                {"at": text, "change": text, "says": text, "policy": text, "accepted": True}
            ],
        },
    )
    details = details.model_copy(update={"keys": [text], "columns": {text: text}})
    files = filled(
        datasets.TableFiles, text, health={**dict.fromkeys(HEALTH_NUMBERS, 3), "oldest": text}
    )
    latencies = filled(latency.Latencies, text)
    latencies.items[0].at = MOMENT
    return {
        (projects, "project"): filled(
            projects.ProjectShown,
            text,
            datasets={"healthy": 3},
            errors=[dict.fromkeys(("code", "message", "where", "why", "state", "fix"), text)],
        ),
        (projects, "task"): filled(projects.TaskShown, text, kind="landing"),
        (projects, "tasks"): listed(projects.TaskShown, text),
        (projects, "changes"): filled(projects.RecentChanges, text),
        (datasets, "dataset"): details,
        (datasets, "datasets"): listed(datasets.DatasetShown, text),
        (latency, "dataset_latency"): latencies,
        (latency, "task_latency"): latencies,
        (datasets, "quarantined"): listed(datasets.QuarantinedRecord, text),
        (datasets, "files"): files,
        (datasets, "rows"): datasets.SampleRows(
            columns={text: text}, rows=[{text: text}], more=True, sql=text
        ),
        (documents, "document"): type("Answer", (), {"body": text.encode("utf-8", "replace")}),
        (operations, "operations"): listed(operations.OperationShown, text, objects=[text]),
        (runs, "table_commits"): listed(runs.CommitShown, text, at=MOMENT),
        (runs, "events"): listed(runs.EventShown, text, runs.EventList),
        (runs, "runs"): listed(runs.RunShown, text, runs.RunList),
        (runs, "run"): filled(runs.RunShown, text),
        (captures, "captures"): listed(captures.CaptureShown, text),
        (captures, "capture"): filled(captures.CaptureShown, text),
        (captures, "captured_tables"): listed(captures.CapturedTableShown, text, state="error"),
        (streams, "streams"): listed(streams.StreamShown, text),
        (streams, "stream"): filled(streams.StreamShown, text),
        (streams, "positions"): listed(streams.StreamPlace, text),
    }


COROUTINES = {"project", "task", "tasks", "changes", "dataset", "datasets", "task_latency"}


def answering(found: Any, name: str) -> Any:
    async def later(*_: Any, **__: Any) -> Any:
        return found

    return later if name in COROUTINES else lambda *_, **__: found


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    state = ServerState(write_project(tmp_path, users=USERS), None, SystemClock())
    return TestClient(app_of(state), raise_server_exceptions=True)


def page(client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str, text: str) -> str:
    with monkeypatch.context() as patched:
        for (module, name), found in answers(text).items():
            patched.setattr(module, name, answering(found, name))
        answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.mark.parametrize("path", PATHS)
def test_hostile_values_are_text_and_all_of_it_is_visible(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    tame = Elements(page(client, monkeypatch, path, TAME))
    hostile = page(client, monkeypatch, path, HOSTILE)
    found = Elements(hostile)

    assert found.elements == tame.elements
    assert hidden(hostile) == []
    assert not any(
        one.startswith("on") or one == "style" for _, names in found.elements for one in names
    )
    assert [
        one for one in found.addresses if (one and one[0] not in "/#?") or one[:2] == "//"
    ] == []
    if path not in WITHOUT_TEXT:
        seen = found.text.replace("?", "\\ud800") if path.endswith("settings") else found.text
        assert [one for one in SEEN if one not in seen] == []


def test_a_command_to_copy_takes_a_name_for_a_name(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a; rm -rf $HOME"
    text = page(client, monkeypatch, "/console/datasets/x/files", name)

    (command,) = [one for one in Elements(text).words if one.startswith("polynya maintain")][:1]
    assert shlex.split(command) == ["polynya", "maintain", name, "--dry-run"]


def test_the_check_sees_a_value_that_is_not_escaped() -> None:
    assert Elements(f"<p>{HOSTILE}</p>").elements != Elements(f"<p>{TAME}</p>").elements
    assert hidden(HOSTILE) != []


@pytest.mark.parametrize(
    ("route", "path"),
    [
        ((datasets, "quarantined"), "/console/datasets/x/quarantine"),
        ((datasets, "files"), "/console/datasets/x/files"),
        ((datasets, "rows"), "/console/datasets/x/rows"),
        ((latency, "dataset_latency"), "/console/datasets/x/latency"),
    ],
)
def test_a_part_that_cannot_be_had_says_why_and_leaves_the_page(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, route: tuple[Any, str], path: str
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise DependencyError("POLYNYA-DEP-001", HOSTILE, fix="wait `a moment`")

    for (module, known), found in answers(TAME).items():
        monkeypatch.setattr(module, known, answering(found, known))
    monkeypatch.setattr(*route, fails)
    answer = client.get(path)

    assert answer.status_code == 200
    assert "POLYNYA-DEP-001" in answer.text
    assert "wait <code>a moment</code>" in answer.text
    assert "<script>alert" not in answer.text
    assert 'aria-label="Parts of the dataset"' in answer.text
