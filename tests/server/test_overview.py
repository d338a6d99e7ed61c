"""The overview of a project: what a failing source hides, and how it ages. No JVM, no tables."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.lake.read.inspect import DatasetStatus
from polynya.model.errors import ConfigError, DependencyError
from polynya.model.loader import LoadedProject, load_project
from polynya.server import overview
from polynya.server.health import HealthPart, HealthWord, parts_of, worst
from polynya.server.overview import DatasetOverview, OverviewKeeper, _Seen
from polynya.server.pages import page
from polynya.testing.fakes import FakeClock
from tests.projects import USERS, write_project

STATUS = DatasetStatus(
    dataset="shop.users", suspended=None, suspended_where=None, copied_to="9", copied_at=None,
    applied_to=None, applied_at=None, last_apply_reason=None, last_apply_seconds=None, applies=0,
    pending_rows=0, pending_bytes=0, pending_files=0, pending_age_seconds=None, current_rows=2,
    retained_rows=0, retained_bytes=0, retained_since=None, freshness_seconds=None, rows_in=2,
    rows_out=2, rows_filtered=0, rows_quarantined=0, counters={}, conflicts={}, epoch=1, owner="n",
)  # fmt: skip


def test_what_keeps_a_project_from_loading_is_said_and_ends_when_it_ends(tmp_path: Path) -> None:
    project = load_project(write_project(tmp_path, users=USERS))
    down = [DependencyError("POLYNYA-DEP-001", "S3 does not answer")]

    def load() -> LoadedProject:
        if down:
            raise down.pop()
        return project

    keeper = OverviewKeeper(load, FakeClock())
    first = keeper.newest()
    keeper.look()

    assert [error.code for error in first.errors] == ["POLYNYA-DEP-001"]
    assert keeper.newest().errors == ()
    assert list(keeper.newest().datasets) == ["shop.users"]


def test_a_task_that_fails_is_unknown_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = USERS.replace("name: users", "name: more").replace("path: users", "path: more")
    project = load_project(write_project(tmp_path, users=USERS, more=more))
    keeper = OverviewKeeper(lambda: project, FakeClock())
    keeper.look()
    real = overview.tables_of

    def failing(task, catalog):
        if task.name == "more":
            raise OSError("the catalog does not answer")
        return real(task, catalog)

    monkeypatch.setattr(overview, "tables_of", failing)
    keeper.look()

    words = {name: one.health for name, one in keeper.newest().datasets.items()}
    assert words == {"shop.users": HealthWord.NEW, "shop.more": HealthWord.UNKNOWN}
    assert len(keeper.newest().errors) == 1


def test_looks_give_way_to_requests_sooner_than_threads_of_python_do(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    project = load_project(write_project(tmp_path, users=USERS))
    keeper = OverviewKeeper(lambda: project, FakeClock())
    try:
        keeper.start()
        keeper.stop()
        assert sys.getswitchinterval() < 0.001
    finally:
        sys.setswitchinterval(before)


def test_ages_go_on_while_a_table_has_no_new_commit() -> None:

    noon = datetime.fromisoformat("2026-11-29T12:00:00Z")
    status = replace(STATUS, freshness_seconds=5.0)
    seen = _Seen("a.json", noon, DatasetOverview("s.t", "t", HealthWord.HEALTHY, (), status))

    later = seen.now(noon + timedelta(seconds=20)).status

    assert later is not None
    assert (later.freshness_seconds, later.pending_age_seconds) == (25.0, None)


def test_the_health_of_a_dataset_is_that_of_its_worst_part() -> None:
    assert parts_of(STATUS, None, 100) == []
    bad = replace(STATUS, suspended="schema", rows_quarantined=3, lost_batches=1)
    parts = parts_of(bad, "too many files", 10)

    assert worst(parts) == HealthWord.SUSPENDED
    assert {part.part for part in parts} == {"run", "apply", "quarantine", "source", "table"}
    assert worst([HealthPart("a", HealthWord.NEW, "")]) == HealthWord.NEW
    assert worst([]) == HealthWord.HEALTHY


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3)), unique=True), st.integers(1, 5))
def test_pages_show_each_item_once_in_order(items: list[tuple[int, str]], limit: int) -> None:
    items.sort()
    shown, cursor = [], None
    while True:
        found = page(items, lambda one: one, limit, cursor)
        shown += found.items
        cursor = found.next
        if cursor is None:
            break
    assert shown == items


@pytest.mark.parametrize("content", [[1], [1, 2], {"a": 1}, "x", [None, "a"], [[1], "a"], None])
def test_a_cursor_of_another_list_is_refused(content: object) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(content).encode()).decode()
    with pytest.raises(ConfigError) as refused:
        page([(1, "a"), (2, "b")], lambda one: one, 1, cursor)
    assert refused.value.code == "POLYNYA-SRV-002"
