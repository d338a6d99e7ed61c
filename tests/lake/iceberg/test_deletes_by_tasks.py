"""Deletes that tasks write remove the rows that those of the driver remove."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.lake.apply.removal import RemovedFacts, removed_by
from polynya.lake.iceberg.deletes_by_tasks import DeletesByTasks
from tests.lab.lab import Feed, Lab

PLACES = "SELECT hdr__partition AS part, _file AS file_path, _pos AS pos FROM {} WHERE {}"


def record(key: int) -> dict[str, Any]:
    """A record of the first load."""
    return {"id": key, "seq": 1, "at": "2026-01-01T00:00:00Z", "op": "I", "name": f"n{key}"}


def removed(lab: Lab, users: Feed, condition: str) -> None:
    """Remove rows by deletes that tasks write, in a commit of their own."""
    table = users.table()
    table.take_over()
    snapshot = table.state.snapshot
    assert snapshot is not None
    writing = DeletesByTasks.of(table.table, snapshot)
    assert not isinstance(writing, str), writing
    places = lab.spark.sql(PLACES.format(users.relation, condition))
    deletes, drop = writing.write(places, 2_500_000)
    table.commit(
        copy=table.state.copy, deletes=deletes, drop=drop, summary={"polynya.step": "a test"}
    )


@pytest.mark.parametrize("how", [{}, {"format_version": 3}, {"partition_by": ["bucket(3, id)"]}])
def test_rows_go_and_others_stay_also_after_earlier_deletes(lab: Lab, how: dict[str, Any]) -> None:
    users = lab.feed("users", apply_as_truncates=None, **how)
    for number in range(3):
        keys = range(number * 40, number * 40 + 40)
        users.land(*map(record, keys), file=f"{number}.json")
        users.run("always")

    removed(lab, users, "hdr__partition = 'current' AND id % 4 = 1")
    removed(lab, users, "hdr__partition = 'current' AND id % 4 = 2")

    left = [key for key in range(120) if key % 4 not in {1, 2}]
    assert sorted(users.stored("current", "id")) == [(key,) for key in left]
    # An apply reads these deletes, and replaces rows of the same files.
    users.land(record(3) | {"seq": 2, "name": "new"}, file="9.json")
    users.run("always")
    assert sorted(users.stored("current", "id")) == [(key,) for key in left]


@pytest.mark.parametrize(
    ("rows", "heap_mib", "on_cluster", "by_tasks", "reason"),
    [
        (10**9, 512, False, False, "Spark works in this process"),
        (100_000, 512, True, False, "100,000 places fit into the driver"),
        (170_000, 512, True, True, "170,000 places take 68,000,000 bytes of 67,108,864"),
        (170_000, 4096, True, False, "170,000 places fit into the driver"),
    ],
)
def test_tasks_write_deletes_that_are_too_many_for_the_driver(
    rows: int, heap_mib: int, *, on_cluster: bool, by_tasks: bool, reason: str
) -> None:
    decision = removed_by(RemovedFacts(rows, heap_mib * 2**20, on_cluster))

    assert (decision.tasks, decision.reason.startswith(reason)) == (by_tasks, True)
