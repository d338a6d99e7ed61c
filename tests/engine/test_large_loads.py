"""A full load that tasks read leaves the table that batches leave, and says how it went."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from polynya.formats.begun import Begun
from polynya.formats.loads import LoadLimits
from polynya.model.errors import SuspendedError
from polynya.observe import engine as events
from tests.lab.lab import Feed, Lab, put

BY_TASKS = LoadLimits(least_bytes=1, split_bytes=100)
IN_BATCHES = LoadLimits(least_bytes=1 << 60)
STORED = ("hdr__operation", "hdr__change_identifier", "hdr__sequence_tail", "hdr__timestamp",
          "hdr__key_hash", "hdr__from_timestamp", "hdr__was_current_from_timestamp",
          "hdr__inserted_timestamp", "hdr__modified_timestamp", "hdr__quarantine")  # fmt: skip


def row(key: Any, **values: Any) -> dict[str, Any]:
    """A record as a full load exports it."""
    return {"id": key, "name": f"customer {key}", **values}


def loaded(lab: Lab, name: str, limits: LoadLimits, *files: list[Any], **how: Any) -> Feed:
    """A dataset after a first full load of these files of records."""
    users = lab.feed(name, initial_load="load/*.json", apply_as_truncates=None, **how)
    users.applier = {"load_limits": limits}
    for number, records in enumerate(files):
        users.land(*records, file=f"load/{number}.json")
    users.run("never")
    return users


def left(users: Feed) -> dict[str, Any]:
    """What a load leaves, but for what names the dataset."""
    table = users.table()
    files = users.stored("quarantine", "hdr__quarantine.*")
    state = table.state.copy
    return {
        "rows": users.stored("current", *STORED, *users.columns()),
        "changes": users.stored("changes", *STORED, *users.columns()),
        "kept": users.stored("retained", *STORED, *users.columns()),
        "types": users.types(),
        "bad": sorted((row[1].rpartition("/")[2], *row[2:]) for row in files),
        "books": users.totals(),
        "position": (state.position.newest_event, state.position.copied_to,
                     state.position.load_started, list(state.position.files.values())),
        "columns": state.columns,
        "retaining": table.state.apply.retaining,
    }  # fmt: skip


def with_rows(users: Feed) -> list[Path]:
    """Files that hold more than a state, live or not."""
    return [path for path in users.files() if "name" in pq.read_schema(path).names]


def said(lab: Lab, kind: type[Any]) -> list[Any]:
    return [event for event in lab.events if isinstance(event, kind)]


@pytest.mark.parametrize("how", [{}, {"changes_retention": "keep"}], ids=["direct", "by SQL"])
def test_tasks_leave_what_batches_leave(lab: Lab, how: dict[str, Any]) -> None:
    files = (
        [row(1, size=1), row(2, size=2, op="D"), b"no record", row(None), b""],
        [row(3, seq=7, at="2026-01-01T00:00:00Z"), row(4, size=1.5, late=True), b'{"id":5,"id":6}'],
    )
    batches = loaded(lab, "batches", IN_BATCHES, *files, **how)
    assert not said(lab, events.LoadProgress)

    tasks = loaded(lab, "tasks", BY_TASKS, *files, **how)

    assert len(said(lab, events.LoadProgress)) == 1
    assert left(tasks) == left(batches)
    assert len(left(tasks)["rows"]) == 3


def test_tasks_read_csv_as_batches_do(lab: Lab) -> None:
    header = b"id,name,op,size,seq,at"
    files = (
        [header, b"1,Ann,U,1,1,2026-01-01T00:00:00Z", b"2,Bo,D,2,,", b"3,Cid"],
        [header, b'4,"Dee, E",U,1.5,2,', b",nobody,U,,,"],
    )
    left_by = {}
    for name, limits in {"batches": IN_BATCHES, "tasks": BY_TASKS}.items():
        task = {"landing": {"path": f"{lab.schema}/{name}", "format": "csv"}}
        left_by[name] = left(loaded(lab, name, limits, *files, task=task))

    assert said(lab, events.LoadProgress)
    assert left_by["tasks"] == left_by["batches"]
    assert (len(left_by["tasks"]["rows"]), len(left_by["tasks"]["bad"])) == (2, 2)


def test_columns_that_turn_out_otherwise_late_in_the_load_are_those_of_all_of_it(lab: Lab) -> None:
    early = [row(n, size=n) for n in range(2100)]
    files = (early, [row(9000, size=0.5), row(9001, late="yes")])
    batches = loaded(lab, "batches", IN_BATCHES, *files)

    tasks = loaded(lab, "tasks", replace(BY_TASKS, split_bytes=40_000), *files)

    assert said(lab, events.LoadProgress)
    assert tasks.types()["size"] == "double"
    assert left(tasks) == left(batches)


def test_a_key_that_stands_twice_is_folded_as_in_a_batch(lab: Lab) -> None:
    files = ([row(1, seq=1), row(2, seq=1)], [row(1, seq=2, city="Oulu")])
    batches = loaded(lab, "batches", IN_BATCHES, *files)

    tasks = loaded(lab, "tasks", BY_TASKS, *files)

    assert said(lab, events.LoadInBatches)[-1].reason == "a key is there twice"
    assert left(tasks) == left(batches)
    assert len(with_rows(tasks)) == len(with_rows(batches))


def test_a_load_of_several_commits_goes_on_where_it_stopped(lab: Lab) -> None:
    files = ([row(9), row(3), row(5)], [row(4), row(8), row(1)])
    limits = LoadLimits(least_bytes=1, split_bytes=40, commit_bytes=60)

    users = loaded(lab, "users", limits, *files)

    progress = said(lab, events.LoadProgress)
    assert len(progress) == 3
    assert progress[0].left_bytes > progress[1].left_bytes > progress[2].left_bytes == 0
    assert users.current("id") == [(1,), (3,), (4,), (5,), (8,), (9,)]
    assert all(done.complete for done in users.table().state.copy.position.files.values())


@pytest.mark.slow
def test_a_key_of_an_earlier_commit_is_not_loaded_again(lab: Lab) -> None:
    users = loaded(lab, "users", BY_TASKS, [row(7), row(1)])
    users.land(row(1, city="Oulu"), row(2), file="load/2.json")

    users.run("never")

    assert users.current("id", "name")[0] == (1, "customer 1")
    assert [key for (key,) in users.current("id")] == [1, 2, 7]


def test_a_parquet_load_sets_a_damaged_file_aside_and_takes_the_others(lab: Lab) -> None:
    users = lab.parquet_feed(initial_load="load/*.parquet")
    users.applier = {"load_limits": BY_TASKS}
    users.land_table("load/1.parquet", id=list(range(500)), name=["x"] * 500, seq=[1] * 500)
    users.land_table("load/2.parquet", id=list(range(500, 900)), name=[f"{n}" for n in range(400)],
                     seq=[1] * 400)  # fmt: skip
    users.land_table("load/3.parquet", id=list(range(900, 1000)), name=["z"] * 100, seq=[1] * 100)
    broken = users.folder / "load" / "2.parquet"
    data = broken.read_bytes()
    broken.write_bytes(data[:10] + b"\xff" * 600 + data[610:])

    users.run("never")

    assert len(users.current("id")) == 600
    assert [(offset, rule) for _, offset, rule in users.rejected()] == [(-1, "unreadable_file")]
    assert users.totals()["in"] == 601


def test_a_bad_record_suspends_after_the_files_before_it_where_the_settings_say_so(
    lab: Lab,
) -> None:
    files = [row(1)], [row(2), b"no record"], [row(3)]
    with pytest.raises(SuspendedError, match="bad_json") as caught:
        loaded(lab, "users", BY_TASKS, *files, on_bad_record="suspend")

    users = lab.feed("users")
    assert str(caught.value.where).endswith("load/1.json, record 2")
    assert users.current("id") == [(1,)]
    assert users.totals() == {"in": 1, "out": 1, "filtered": 0, "quarantined": 0}
    assert [event.rows for event in said(lab, events.LoadProgress)] == [1]


@pytest.mark.slow
def test_changes_after_a_load_are_applied_to_it(lab: Lab) -> None:
    users = loaded(lab, "users", BY_TASKS, [row(1), row(2)])
    users.land(put(1, 10, name="Anna"), put(3, 11, name="Cid"))

    users.run("always")

    assert users.current("id", "name") == [(1, "Anna"), (2, "customer 2"), (3, "Cid")]


def test_files_whose_load_killed_tasks_are_read_one_by_one_and_the_guilty_one_set_aside(
    lab: Lab, tmp_path: Path
) -> None:
    users = lab.feed("killed", initial_load="load/*.json", apply_as_truncates=None)
    for number in range(3):
        users.land(row(number), file=f"load/{number}.json")
    paths = [f"{lab.schema}/killed/load/{number}.json" for number in range(3)]
    begun = Begun(tmp_path, now=count(step=100).__next__)
    for _ in range(2):
        begun.load_in_vain(paths)
        begun.in_vain(paths[1:2])
    users.applier = {"load_limits": BY_TASKS, "begun": begun}

    users.run("never")

    assert sorted(key for (key,) in users.stored("current", "id")) == [0, 2]
    ((why,),) = users.stored("quarantine", "hdr__quarantine.error")
    assert "begun 3 times and never finished" in why
    assert not said(lab, events.LoadProgress)
    assert not any(begun.is_suspect(path) for path in paths)


@pytest.mark.slow
def test_empty_objects_of_a_large_load_are_those_of_a_batch(lab: Lab) -> None:
    files = [row(1, c={}, l=[{}], t={})], [row(2, c={"x": 1}, l=[{"y": [{}]}], t={})]
    tasks = loaded(lab, "tasks", BY_TASKS, *files)
    batches = loaded(lab, "batches", IN_BATCHES, *files)

    assert tasks.types()["c"] == "struct<x:bigint>"
    assert left(tasks) == left(batches)
