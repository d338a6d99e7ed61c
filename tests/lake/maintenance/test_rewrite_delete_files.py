"""Many files of position deletes become few, and the same rows stay deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.iceberg import commit
from polynya.lake.iceberg.commit import CommitStep, Committed
from polynya.lake.iceberg.files import DeleteFile, FilePartition
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.maintenance import rewrite_deletes
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.rewrite_data_files import rewrite_data_files
from polynya.lake.maintenance.rewrite_deletes import (
    RULE,
    PositionDeletes,
    plan_deletes,
    rewrite_position_delete_files,
)
from polynya.lake.read.verify import verify
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from tests.lab.kept import Kept
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.owned import owned, step
from tests.oracle.packs.read_back import READERS

LIMITS = ActionLimits(STARTED)
CURRENT, PRIOR = FilePartition("current"), FilePartition("prior")


def deletes(number: int, *places: int, slot: FilePartition | None = CURRENT) -> PositionDeletes:
    name = f"deletes {number}"
    return PositionDeletes(DeleteFile(None, name), pa.array(places, pa.int64()), slot)


def test_small_ones_of_a_partition_become_one() -> None:
    found = [deletes(n, n) for n in range(8)] + [deletes(8, *range(100, 140))]
    found += [deletes(9, 1, slot=PRIOR)]

    fold = plan_deletes(found, RULE)

    assert fold is not None
    assert [one.file.path for one in fold.gone] == [f"deletes {n}" for n in range(8)]
    assert fold.places.to_pylist() == list(range(8))


def test_few_of_each_partition_stay_however_many_there_are() -> None:
    found = [deletes(n, n, slot=FilePartition("current", 1, f'["{n // 7}"]')) for n in range(70)]

    assert plan_deletes(found, RULE) is None
    fold = plan_deletes([*found, deletes(70, 70, slot=found[0].slot)], RULE)
    assert fold is not None
    assert len(fold.gone) == 8


def test_what_names_no_live_file_goes() -> None:
    fold = plan_deletes([deletes(0, slot=None), deletes(1, 7)], RULE)

    assert fold is not None
    assert ([one.file.path for one in fold.gone], len(fold.places)) == (["deletes 0"], 0)
    assert plan_deletes([deletes(1, 7)], RULE) is None


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    """Three delete files of Current, for two data files and more."""
    return made(module_lab.feed(history=False))


def made(users: Feed) -> Kept:
    users.apply(*(put(key, key, name=f"n{key}") for key in range(1, 13)))
    table = owned(users)
    for sequence in range(3):
        step(users, table, put(1, 21 + sequence, name="x"), drop(4 + sequence, 22 + sequence))
    return Kept(users)


@pytest.fixture
def users(kept: Kept) -> Feed:
    return kept.again()


def rewrite(table: DatasetTable, limits: ActionLimits = LIMITS) -> ActionOutcome:
    return rewrite_position_delete_files(table, limits, RULE.thorough())


def count(table: DatasetTable) -> int:
    assert table.state.snapshot is not None
    return len(table.table.position_deletes(table.state.snapshot) or ())


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen when delete files were read, before what they say is committed."""
    real = rewrite_deletes._land

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(rewrite_deletes, "_land", real)
        act()
        return real(*arguments)

    monkeypatch.setattr(rewrite_deletes, "_land", late)


def test_the_same_rows_stay_deleted(users: Feed) -> None:
    """For other readers too, and for the applies and rewrites that come next."""
    table = owned(users)
    assert count(table) == 3
    assert rewrite_position_delete_files(table, LIMITS).why == "the delete files are few"
    assert rewrite(table, ActionLimits(STARTED, budget_bytes=1)).why == "the budget is used up"
    rows = users.current("*")

    done = rewrite(table)

    assert (done.why, done.whole) == ("3 small delete files became 1", True)
    assert (done.files_removed, done.files_added) == (3, 1)
    assert 0 < done.written_bytes < done.read_bytes
    assert count(table) == count(users.table()) == 1
    assert users.current("*") == rows
    assert not verify(table).findings
    namespace, _, name = users.internal.partition(".")
    for read in READERS.values():
        found = read(users.lab.project, namespace, name, ("id",), "hdr__partition = 'current'")
        assert sorted(str(row["id"]) for row in found) == sorted(
            str(key) for (key,) in users.stored("current", "id")
        )
    assert rewrite(table).why == "the delete files are few"
    step(users, table, put(2, 41, name="y"), drop(9, 42))
    assert rewrite(table).files_removed == 2
    assert rewrite_data_files(table, LIMITS).whole
    assert len(users.current("id")) == 8
    assert (2, "y") in users.current("id", "name")


def test_an_apply_meanwhile_is_as_good(users: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    table = owned(users)
    meanwhile(monkeypatch, lambda: step(users, table, put(2, 31, name="Ben"), drop(12, 32)))

    assert rewrite(table).whole

    assert count(table) == count(users.table()) == 2
    assert (2, "Ben") in users.current("id", "name")
    assert len(users.current("id")) == 8


@pytest.mark.slow
def test_what_another_step_removes_meanwhile_is_left_to_it(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = owned(users)
    meanwhile(monkeypatch, lambda: rewrite(table))
    rows = users.current("*")

    done = rewrite(table)

    assert (done.why, done.whole) == ("another step has removed some of the files", False)
    assert (users.current("*"), count(table)) == (rows, 1)


@pytest.mark.slow
def test_a_delete_file_that_is_not_read_would_be_seen(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: what one of them says is forgotten."""
    table, real = owned(users), rewrite_deletes._read
    rows = users.current("*")

    def less(*arguments: Any) -> list[PositionDeletes]:
        first, *others = real(*arguments)
        return [PositionDeletes(first.file, first.places[:0], first.slot), *others]

    monkeypatch.setattr(rewrite_deletes, "_read", less)
    assert rewrite(table).whole

    assert users.current("*") != rows


class KilledError(BaseException):
    """The process dies: nothing of ours may catch this."""


@pytest.mark.slow
@pytest.mark.parametrize("committed", [False, True], ids=["before", "after"])
def test_killed_at_the_commit(
    users: Feed, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    rows, real = users.current("*"), commit.commit_row_delta

    def last(given: IcebergTable, made: CommitStep) -> Committed:
        if committed:
            real(given, made)
        raise KilledError

    table = owned(users)
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(dataset, "commit_row_delta", last)
        rewrite(table)
    assert users.current("*") == rows
    assert count(users.table()) == (1 if committed else 3)

    successor = owned(users)
    assert rewrite(successor).whole
    assert users.current("*") == rows
    assert count(successor) == count(users.table()) == 1


@pytest.mark.slow
def test_each_partition_of_the_layout_has_its_own(module_lab: Lab) -> None:
    users = module_lab.feed("parted", history=False, partition_by=["bucket(2, id)"])
    made(users)
    table = owned(users)
    before, rows = count(table), users.current("*")

    done = rewrite(table)

    assert done.files_removed == before
    assert count(table) == count(users.table()) == done.files_added == 2
    assert users.current("*") == rows
    step(users, table, put(1, 41, name="y"), drop(9, 42))
    assert len(users.current("id")) == 8


@pytest.mark.slow
def test_vectors_are_left_alone(module_lab: Lab) -> None:
    users = module_lab.feed("vectors", history=False, format_version=3)
    made(users)

    assert rewrite(owned(users)).why == "with format v3 each data file has one vector"
