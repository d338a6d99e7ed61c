"""Change files that tasks read leave the table that batches leave."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.engine.large_loads import decide_changes
from polynya.formats.batch import FilePart
from polynya.formats.files import Discovery
from polynya.formats.loads import LoadLimits, limits_of
from polynya.observe import engine as events
from tests.engine.test_large_loads import left, row, said
from tests.lab.lab import Feed, Lab

BY_TASKS = LoadLimits(split_bytes=100, least_change_bytes=1)
IN_BATCHES = LoadLimits()


def changed(
    lab: Lab, name: str, limits: LoadLimits, *files: list[Any], apply: Any = "never", **how: Any
) -> Feed:
    """A dataset with two records, and changes in these files of records."""
    users = lab.feed(name, **{"apply_as_truncates": None, **how})
    first = {"seq": 1, "at": "2026-01-01T00:00:00Z", "op": "I"}
    users.land(row(1, size=1, **first), row(2, size=2, **first), file="0.json")
    users.run("always")
    users.applier = {"load_limits": limits}
    for number, records in enumerate(files, 1):
        users.land(*records, file=f"{number}.json")
    users.run(apply)
    return users


FILES = (
    [row(1, seq=2, size=3, at="2026-01-02T00:00:00Z"), row(2, seq=3, op="D"), b"no record"],
    [row(None, seq=4), row(3, seq=4, size=1), row(4, size=1), row(1, seq=9, size=8), b""],
)


def test_tasks_leave_the_changes_that_batches_leave(lab: Lab) -> None:
    batches = changed(lab, "batches", IN_BATCHES, *FILES)
    assert not said(lab, events.LoadProgress)

    tasks = changed(lab, "tasks", BY_TASKS, *FILES)

    assert said(lab, events.LoadProgress)[-1].reason.startswith("change files of")
    assert left(tasks) == left(batches)
    assert tasks.table().state.copy.books == batches.table().state.copy.books
    assert len(left(tasks)["changes"]) == 4
    assert len(left(tasks)["bad"]) == 3


def test_changes_that_tasks_read_are_applied_as_those_of_batches(lab: Lab) -> None:
    how = {"apply": "always", "history": True}
    batches = changed(lab, "batches", IN_BATCHES, *FILES, **how)

    tasks = changed(lab, "tasks", BY_TASKS, *FILES, **how)

    assert said(lab, events.LoadProgress)
    for partition in ("current", "prior"):
        wanted = batches.stored(partition, "hdr__operation", *batches.columns())
        assert tasks.stored(partition, "hdr__operation", *tasks.columns()) == wanted


def test_files_that_bring_a_column_are_read_in_batches(lab: Lab) -> None:
    files = ([row(1, seq=2, city="Oulu")], [row(2, seq=3, size=0.5)])
    batches = changed(lab, "batches", IN_BATCHES, *files)

    tasks = changed(lab, "tasks", BY_TASKS, *files)

    assert said(lab, events.LoadInBatches)
    assert "city" in tasks.types()
    assert left(tasks) == left(batches)


def test_csv_changes(lab: Lab) -> None:
    header = b"id,name,op,size,seq,at"
    files = (
        [header, b"1,Ann,U,1,1,2026-01-01T00:00:00Z"],
        [header, b'1,"Ann, B",U,7,2,', b",nobody,U,,3,", b"2,Bo,D,,4,2026-01-04T00:00:00Z"],
    )
    left_by = {}
    for name, limits in {"batches": IN_BATCHES, "tasks": BY_TASKS}.items():
        task = {"landing": {"path": f"{lab.schema}/{name}", "format": "csv"}}
        users = lab.feed(name, apply_as_truncates=None, task=task, path="*.csv")
        users.applier = {"load_limits": limits}
        for number, lines in enumerate(files):
            users.land(*lines, file=f"{number}.csv")
            users.run("never")
        left_by[name] = left(users)

    assert said(lab, events.LoadProgress)
    assert left_by["tasks"] == left_by["batches"]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({}, None),
        ({"apply_as_truncates": "op = 'T'"}, "a truncate may be among the records"),
        ({"sequence_by": []}, "their order is that of reading"),
    ],
)
def test_what_would_have_to_be_looked_at_is_read_in_batches(
    lab: Lab, how: dict[str, Any], why: str | None
) -> None:
    users = changed(lab, "users", IN_BATCHES, **how)
    waiting = Discovery((FilePart("1.json", 500),), ())

    decision = decide_changes(waiting, users.table(), LoadLimits(least_change_bytes=400))

    assert decision.by_tasks == (why is None)
    assert decision.reason == (why or "change files of 500 bytes")


def test_only_on_a_cluster_do_tasks_read_changes_and_commits_grow_with_its_cores() -> None:
    assert limits_of(64, on_cluster=False) == LoadLimits()

    small, large = limits_of(2, on_cluster=True), limits_of(64, on_cluster=True)

    assert small.commit_bytes == LoadLimits().commit_bytes
    assert large.commit_bytes == 64 * 256 * 2**20
    assert small.least_change_bytes == 128 * 2**20
