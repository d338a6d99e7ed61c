"""When tasks of a cluster have ended: by commits, backlogs and failures of all its nodes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.automation.due import TaskEnds
from polynya.automation.state import AutomationStore, UnitProgress
from polynya.cluster.task_ends import FIRST_LOOK, GONE, TaskProgress, after_job, ends_of
from polynya.store.object_store import LocalObjectStore

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
SHOP = frozenset({"shop"})


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def job(state: str = "running", *, step: float | None = None, **values: Any) -> dict[str, Any]:
    """A job of a report; `step` is when it committed last, in seconds after noon."""
    last = None if step is None else {"type": "batch.copied", "subject": "a", "at": at(step)}
    files, behind = values.pop("files", 0), values.pop("behind", 0.0)
    return {
        "state": state, "reason": "runs", "held": False, "failed_in_a_row": 0, "rounds": 1,
        "epoch": 1, "version": "v1", "last_step": last, "lag_seconds": behind,
        "backlog": {"files": files}, "streams": {}, "captures": {}, "mirrors": {}, **values,
    }  # fmt: skip


FAILING = {"failed_in_a_row": 1, "reason": "POLYNYA-LAKE-001: no such column"}


@pytest.mark.parametrize(
    ("values", "since", "fresh"),
    [
        ({}, 0, 300),
        # It has worked for less than a minute, or has not ended a round: it may not have looked.
        ({}, 270, None),
        ({"rounds": 0}, 0, None),
        # The oldest file was first seen 100 s ago, while this node worked on the unit.
        ({"files": 3, "behind": 100.0}, 0, 200),
        # It lay there when the node took the unit over: nobody knows for how long.
        ({"files": 3, "behind": 299.0}, 0, None),
        (FAILING, 0, None),
        ({"held": True}, 0, None),
    ],
)
def test_a_unit_is_as_fresh_as_the_oldest_change_that_waits(
    values: dict[str, Any], since: float, fresh: float | None
) -> None:
    progress = after_job(None, job(**values), at(300), at(since))

    assert progress.fresh == (None if fresh is None else at(fresh))


def test_what_was_known_of_a_unit_goes_never_back() -> None:
    before = UnitProgress(epoch=3, fresh=at(90), step=at(80))

    after = after_job(before, job(epoch=None, step=10, files=1, behind=500.0), at(300), at(0))

    assert after == before


def test_a_unit_that_fails_again_and_again_fails_once_until_it_works() -> None:
    states = [FAILING, FAILING, {}, FAILING]
    progress, failed = None, []
    for number, values in enumerate(states, 1):
        progress = after_job(progress, job(**values), at(100 * number), at(0))
        failed.append(progress.failed)

    assert failed == [at(100), at(100), at(100), at(400)]
    # One that waits for another process does not fail.
    waits = job("waiting", failed_in_a_row=2, reason="POLYNYA-AGT-001: taken over")
    assert after_job(None, waits, at(100), None).failing is False


def test_a_task_ends_when_all_units_have_taken_in_what_came_before_its_commit() -> None:
    one, other = UnitProgress(fresh=at(10), step=at(20)), UnitProgress(fresh=at(60))
    assert ends_of([one, None], None) == (TaskEnds(), at(20))
    assert ends_of([one, other], None) == (TaskEnds(fresh=at(10)), at(20))
    # Commits that follow meanwhile do not put the end off.
    one = UnitProgress(fresh=at(50), step=at(55))
    assert ends_of([one, other], at(20)) == (TaskEnds(at(20), fresh=at(50)), at(55))
    assert ends_of([one, other], at(55)) == (TaskEnds(fresh=at(50)), at(55))
    # A unit without any commit has nothing to end.
    assert ends_of([other], None) == (TaskEnds(fresh=at(60)), None)


def test_a_task_with_a_failing_unit_has_not_ended_well() -> None:
    good = UnitProgress(fresh=at(60), step=at(20))
    bad = UnitProgress(fresh=at(40), failed=at(50), failing=True)

    assert ends_of([good, bad], at(20)) == (TaskEnds(None, at(50), at(40)), at(20))


class Nodes:
    """The files that nodes share, and reports of what they do."""

    def __init__(self, folder: Path) -> None:
        (folder / "warehouse").mkdir()
        self.store = AutomationStore(LocalObjectStore(folder / "warehouse"))

    def node(self) -> TaskProgress:
        return TaskProgress(self.store)

    @staticmethod
    def report(seconds: float, node: str, **jobs: dict[str, Any]) -> dict[str, Any]:
        return {
            "at": at(seconds), "node": node, "cluster": "main", "state": "running",
            "tasks": {"shop": {"jobs": jobs}},
        }  # fmt: skip

    def tell(self, node: TaskProgress, name: str, *moments: float, **jobs: dict[str, Any]) -> None:
        for seconds in moments:
            node.tell(self.report(seconds, name, **jobs), SHOP)

    def ends(self, leader: TaskProgress, seconds: float) -> TaskEnds:
        """As a leader sees it that owns nothing of the task."""
        known = self.report(seconds, "leader", a=job("elsewhere"), b=job("elsewhere"))
        found = leader.ends(known, SHOP)["shop"]
        assert found.is_settling
        return replace(found, is_settling=False)


ELSEWHERE = job("elsewhere")


def test_units_of_several_nodes_make_the_end_of_a_task(tmp_path: Path) -> None:
    here = Nodes(tmp_path)
    first, second, leader = here.node(), here.node(), here.node()
    here.tell(first, "n1", 0, 100, a=job(step=95), b=ELSEWHERE)
    assert here.ends(leader, 101) == TaskEnds()
    here.tell(second, "n2", 0, 90, a=ELSEWHERE, b=job())
    assert here.ends(leader, 102) == TaskEnds(fresh=at(90))
    here.tell(second, "n2", 121, a=ELSEWHERE, b=job())

    assert here.ends(leader, 122) == TaskEnds(at(95), fresh=at(100))
    # The next leader knows the same.
    assert here.ends(here.node(), 123) == TaskEnds(at(95), fresh=at(100))
    assert here.store.ends("shop").success == at(95)


def test_the_next_owner_of_a_unit_begins_with_what_was_known(tmp_path: Path) -> None:
    here = Nodes(tmp_path)
    first, second = here.node(), here.node()
    here.tell(first, "n1", 0, 100, a=job(step=95), b=job(**FAILING))
    # It takes both over; files lie there, and it has committed nothing itself.
    late = {"files": 9, "epoch": 2}
    here.tell(second, "n2", 200, a=job(behind=0.0, **late), b=job(**{**FAILING, "epoch": 2}))
    here.tell(second, "n2", 300, a=job(behind=95.0, **late), b=job(**{**FAILING, "epoch": 2}))
    # What the owner of before still says does not count.
    here.tell(first, "n1", 400, a=job(step=390), b=job())

    assert here.ends(here.node(), 401) == TaskEnds(failure=at(0))
    units = here.store.progress()["main/n2"].units["shop"]
    assert units["a"].fresh == at(100)


def test_a_leader_that_has_just_begun_waits_until_all_units_have_looked(tmp_path: Path) -> None:
    leader = Nodes(tmp_path).node()
    report = Nodes.report
    leader.tell(report(0, "n1", a=job()), SHOP)

    settling = [leader.ends(report(at, "n1", a=job()), SHOP)["shop"] for at in (0, 170, 190)]

    assert [one.is_settling for one in settling] == [True, True, False]


def test_nothing_is_written_while_nothing_happens_but_twice_a_minute(tmp_path: Path) -> None:
    here = Nodes(tmp_path)
    node = here.node()
    written = set()
    for seconds in range(0, 400, 10):
        here.tell(node, "n1", seconds, a=job(step=5), b=ELSEWHERE)
        written.add(here.store.progress()["main/n1"].at)

    assert len(written) == 1 + (400 - 60) // 30 + 1
    here.tell(node, "n1", 401, a=job(step=400), b=ELSEWHERE)
    assert here.store.progress()["main/n1"].at == at(401)


def test_files_of_nodes_that_are_gone_are_removed(tmp_path: Path) -> None:
    here = Nodes(tmp_path)
    failing = job("suspended", rounds=0)
    here.tell(here.node(), "old", 0, a=job(), b=ELSEWHERE)
    stays = here.node()
    for day in range(9):
        here.tell(stays, "stays", day * 86_400 + day, a=ELSEWHERE, b=failing)
    here.ends(here.node(), GONE.total_seconds() + 86_400)

    assert list(here.store.progress()) == ["main/stays"]


@given(data=st.data())
def test_an_end_comes_after_all_that_came_before_it_was_taken_in(data: st.DataObject) -> None:
    """Random changes at two units: no end is told while an older change waits, and the last is."""
    waiting: dict[str, list[float]] = {"a": [], "b": []}
    progress: dict[str, UnitProgress | None] = {"a": None, "b": None}
    steps: dict[str, float | None] = {"a": None, "b": None}
    awaited, ends, now = None, TaskEnds(), FIRST_LOOK.total_seconds()
    for move in data.draw(st.lists(st.sampled_from("cCwWab"), max_size=60)):
        now += data.draw(st.integers(1, 200))
        unit = move.lower() if move in "ab" else "a" if move in "cw" else "b"
        if move in "cC":
            waiting[unit].append(now)
        elif move in "wW" and waiting[unit]:
            waiting[unit].pop(0)
            steps[unit] = now
        else:
            behind = now - waiting[unit][0] if waiting[unit] else 0.0
            values = {"files": len(waiting[unit]), "behind": behind, "step": steps[unit]}
            progress[unit] = after_job(progress[unit], job(**values), at(now), at(0))
        found, awaited = ends_of(list(progress.values()), awaited)
        ends = ends.with_later(found)
        left = [moment for unit in waiting.values() for moment in unit]
        for end in (ends.success, ends.fresh):
            # The first changes came when a unit may not have looked yet.
            assert end is None or all(at(moment) >= end for moment in left)
