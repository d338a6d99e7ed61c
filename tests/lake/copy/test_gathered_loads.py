"""A reload that tasks gather, or that is compared in memory, leaves what any reload leaves."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.formats.loads import LoadLimits
from polynya.lake.copy import compared_load
from polynya.model.config.dataset import DELETING
from polynya.observe import engine as events
from tests.lab.lab import Feed, Lab

BY_TASKS = LoadLimits(least_bytes=1, split_bytes=100)
IN_BATCHES = LoadLimits(least_bytes=1 << 60)
KEPT = ("hdr__operation", "hdr__change_identifier", "hdr__sequence_tail", "hdr__timestamp",
        "hdr__key_hash")  # fmt: skip
FIRST = [{"id": n, "name": f"customer {n}", "size": n / 2} for n in range(1, 9)]


def reloaded(lab: Lab, name: str, limits: LoadLimits, *files: list[Any], **how: Any) -> Feed:
    """A table after a first load and a reload of these files of records."""
    plain = {"timestamp": None, "apply_as_truncates": None, "except_columns": ["op", "seq"]}
    users = lab.feed(name, initial_load="load/*.json", **{**plain, **how})
    users.land(*FIRST, file="load/0.json")
    users.apply()
    for number, records in enumerate(files):
        users.land(*records, file=f"load/{number}.json")
    request = ReloadRequest(users.task, users.dataset, mode=DELETING, accept_incomplete=True)
    assert reload(lab.context(load_limits=limits), request) is not None
    return users


def left(users: Feed) -> dict[str, Any]:
    """What a reload leaves, but for what names the dataset."""
    state = users.table().state.copy
    bad = users.stored("quarantine", "hdr__quarantine.*")
    return {
        "current": users.stored("current", *KEPT, *users.columns()),
        "prior": users.stored("prior", *KEPT, *users.columns()),
        "reload": users.stored("reload", "id"),
        "bad": sorted((row[1].rpartition("/")[2], *row[2:]) for row in bad),
        "types": users.types(),
        "books": users.totals(),
        "files": list(state.position.files.values()),
        "columns": state.columns,
    }


def reasons(lab: Lab) -> list[str]:
    """Why loads were read in batches."""
    return [event.reason for event in lab.events if isinstance(event, events.LoadInBatches)]


def test_tasks_gather_what_batches_gather(lab: Lab) -> None:
    files = (
        [*FIRST[:3], {"id": 4, "name": "other", "size": None}, b"no record"],
        [{"id": 20, "name": "new", "size": 1.5}, {"id": None, "name": "nobody"}, *FIRST[4:6]],
    )
    batches = reloaded(lab, "batches", IN_BATCHES, *files)

    tasks = reloaded(lab, "tasks", BY_TASKS, *files)

    assert reasons(lab) == []
    assert left(tasks) == left(batches)
    assert len(left(tasks)["current"]) == 7
    assert len(left(tasks)["bad"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "record", [{"id": 4, "name": "x", "late": True}, {"id": 4, "size": "much"}], ids=["new", "type"]
)
def test_columns_that_differ_become_what_batches_make_of_them(
    lab: Lab, record: dict[str, Any]
) -> None:
    files = ([*FIRST[:3], record],)
    batches = reloaded(lab, "batches", IN_BATCHES, *files)

    tasks = reloaded(lab, "tasks", BY_TASKS, *files)

    assert left(tasks) == left(batches)


@pytest.mark.slow
def test_spark_and_memory_find_the_same_differences(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ([*FIRST[:3], {"id": 4, "name": None, "size": -0.0}, {"id": 9, "size": 0.0}],)
    memory = reloaded(lab, "memory", BY_TASKS, *files)
    monkeypatch.setattr(compared_load, "MOST_ROWS", 0)

    spark = reloaded(lab, "spark", BY_TASKS, *files)

    assert left(memory) == left(spark)
    assert len(left(memory)["prior"]) == 9
