"""Tasks of Spark write files again; what they leave when they fail or give way is removed.

`test_rewrite.py` holds that they write what the driver writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.maintenance import rewrite_data_files as by_tasks
from polynya.lake.maintenance import rewrite_data_files as data_files
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.job import RewriteJob, write
from polynya.lake.maintenance.rewrite_data_files import RULE, rewrite_data_files
from polynya.lake.read.verify import verify
from polynya.lake.table.dataset import DatasetTable
from tests.lab.kept import Kept
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.owned import owned, step
from tests.lab.twins import written_by

LIMITS = ActionLimits(STARTED)
Work = Callable[[int], Iterator[pa.RecordBatch]]


@pytest.fixture(autouse=True)
def by(monkeypatch: pytest.MonkeyPatch) -> None:
    written_by("tasks", monkeypatch)


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    users = module_lab.feed(sort_by=["name desc"])
    users.apply(*(put(key, key, name=f"n{key % 3}") for key in range(1, 9)))
    users.apply(put(1, 11, name="Ann"), put(9, 12))
    users.apply(drop(2, 13))
    return Kept(users)


@pytest.fixture
def users(kept: Kept) -> Feed:
    """Eight records in two files of Current, older versions in two of Prior."""
    return kept.again()


def rewrite(table: DatasetTable, limits: ActionLimits = LIMITS) -> ActionOutcome:
    return rewrite_data_files(table, limits, RULE.thorough())


def everything(users: Feed) -> list[Any]:
    """All rows, stored and in the views."""
    return [users.stored("current", "*"), users.stored("prior", "*"), users.history("*")]


def in_place_of(
    monkeypatch: pytest.MonkeyPatch, other: Callable[[Sequence[RewriteJob], Work], Work]
) -> None:
    """Let the tasks do something else."""
    real = by_tasks._writing
    monkeypatch.setattr(by_tasks, "_writing", lambda jobs: other(jobs, real(jobs)))


def test_rows_that_are_deleted_while_tasks_write_do_not_come_back(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, real = owned(users), data_files.land

    def late(*arguments: Any) -> Any:
        step(users, table, put(3, 21, name="Cid"), drop(4, 22))
        return real(*arguments)

    monkeypatch.setattr(data_files, "land", late)

    done = rewrite(table)

    assert done.why == "4 files became 2, without 2 deleted rows"
    assert users.current("id", "name") == [
        (1, "Ann"), (3, "Cid"), (5, "n2"), (6, "n0"), (7, "n1"), (8, "n2"), (9, None),
    ]  # fmt: skip
    assert not verify(table).findings


@pytest.mark.slow
def test_a_task_that_fails_leaves_nothing(users: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    table, before, files = owned(users), everything(users), users.files()

    def failing(jobs: Sequence[RewriteJob], real: Work) -> Work:
        def work(number: int) -> Iterator[pa.RecordBatch]:
            yield from real(number)
            if number == 1:
                raise OSError("the disk is full")

        return work

    with monkeypatch.context() as patch:
        in_place_of(patch, failing)
        done = rewrite(table)

    assert (done.why, done.whole) == (
        "a file was not read or written: OSError: the disk is full",
        False,
    )
    assert (everything(users), users.files()) == (before, files)
    assert rewrite(table).whole
    assert everything(users) == before


@pytest.mark.slow
def test_files_of_an_attempt_before_are_removed(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor dies when it has written: Spark begins its task again on another."""
    table, before, files = owned(users), everything(users), users.files()

    def twice(jobs: Sequence[RewriteJob], real: Work) -> Work:
        row, schema = by_tasks._row, by_tasks._NEW_FILES

        def work(number: int) -> Iterator[pa.RecordBatch]:
            write(jobs[number], lambda: None, 0)
            rows = [row(number, 1, one) for one in write(jobs[number], lambda: None, 1)]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)

        return work

    in_place_of(monkeypatch, twice)

    assert rewrite(table).whole

    new = [path for path in users.files() - files if path.suffix == ".parquet"]
    assert sum("-0-00000" in path.name for path in new) == 0
    assert sum("-1-00000" in path.name for path in new) == 2
    assert everything(users) == before


@pytest.mark.slow
def test_tasks_end_at_once_for_whoever_waits(users: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    table, before, files = owned(users), everything(users), users.files()

    def endless(jobs: Sequence[RewriteJob], real: Work) -> Work:
        def work(number: int) -> Iterator[pa.RecordBatch]:
            yield from real(number)
            time.sleep(600)

        return work

    in_place_of(monkeypatch, endless)
    began = time.monotonic()

    def waits() -> bool:
        return len(users.files() - files) == 2

    done = rewrite(table, ActionLimits(STARTED, give_way=waits))

    assert (done.why, done.whole) == ("it gave way", False)
    assert time.monotonic() - began < 300
    assert (everything(users), users.files()) == (before, files)
