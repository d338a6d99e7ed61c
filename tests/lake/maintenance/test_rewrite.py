"""Data files are written again: fewer files, the same rows, whatever happens meanwhile.

Every test is about the driver, which writes small groups, and about tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.iceberg import commit
from polynya.lake.iceberg.commit import CommitStep, Committed
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import PLACES
from polynya.lake.maintenance import rewrite_data_files as data_files
from polynya.lake.maintenance import rewrite_data_files as land
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.rewrite_data_files import RULE, rewrite_data_files
from polynya.lake.read.verify import verify
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.suspension import quarantined
from polynya.model.headers import Partition
from tests.lab.kept import Kept
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.owned import applied, copied, owned, step
from tests.lab.twins import WRITERS, written_by
from tests.lake.apply.plain import PlainApplier
from tests.oracle.packs.read_back import READERS

THOROUGH = RULE.thorough()
LIMITS = ActionLimits(STARTED)
WHOLE = [{"a": 1, "tags": ["x", None]}, None, {"a": None, "tags": []}]
VERSIONS = [pytest.param(2, id="v2"), pytest.param(3, id="v3", marks=pytest.mark.slow)]


@pytest.fixture(autouse=True, params=WRITERS)
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    written_by(request.param, monkeypatch)


@pytest.fixture(scope="module", params=VERSIONS)
def kept(request: pytest.FixtureRequest, module_lab: Lab) -> Kept:
    version = request.param
    users = module_lab.feed(f"users{version}", format_version=version)
    users.apply(*(put(key, key, name=f"n{key}", more=WHOLE[key % 3]) for key in range(1, 9)))
    table = owned(users)
    step(users, table, put(1, 11, name="Ann"), put(9, 12))
    step(users, table, drop(2, 13))
    return Kept(users)


@pytest.fixture
def users(kept: Kept) -> Feed:
    """Eight records in two files of Current, older versions in two of Prior, two delete files."""
    return kept.again()


def rewrite(table: DatasetTable, limits: ActionLimits = LIMITS) -> ActionOutcome:
    return rewrite_data_files(table, limits, THOROUGH)


def counts(table: DatasetTable) -> tuple[int, int, int]:
    """Data files of Current and of Prior, delete files."""
    snapshot = table.state.snapshot
    assert snapshot is not None
    found = [len(table.table.files(one, snapshot)) for one in (Partition.CURRENT, Partition.PRIOR)]
    return found[0], found[1], len(table.table.position_deletes(snapshot) or ())


def files_of(table: DatasetTable, partition: Partition) -> int:
    assert table.state.snapshot is not None
    return len(table.table.files(partition, table.state.snapshot))


def replayed(users: Feed, table: DatasetTable, number: int) -> None:
    """Read a quarantined record again, which has a key by now."""
    assert table.state.snapshot is not None
    everyone = users.stored("quarantine", "hdr__quarantine.id")
    _, chosen = quarantined(users.lab.spark, table.table, table.state.snapshot, everyone[number])
    batch = users.batch(put(50 + number, 50 + number))
    copy_batch(table, batch, FastApplier(), replayed=chosen, now=STARTED)


def everything(users: Feed) -> tuple[Any, ...]:
    """All rows of the table and of its views."""
    stored = [users.stored(one, "*") for one in ("current", "prior", "changes")]
    return (*stored, users.current("*"), users.history("id", "name", "more"), users.changes("*"))


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen when files were written, before they are committed."""
    real = data_files.land

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(data_files, "land", real)
        act()
        return real(*arguments)

    monkeypatch.setattr(data_files, "land", late)


def test_rows_stay_the_same_in_every_column(users: Feed) -> None:
    """For other readers too; and what the table knows then is what it would read."""
    table = owned(users)
    current, prior, deletes = counts(table)
    assert (current, prior) == (2, 2)
    before = everything(users)

    done = rewrite(table)

    assert everything(users) == before
    assert counts(table) == counts(users.table()) == (1, 1, 0)
    assert (done.whole, done.commits, done.files_removed) == (True, 1, 4 + deletes)
    assert done.files_added == 2
    assert done.why == "4 files became 2, without 2 deleted rows"
    assert not verify(table).findings
    namespace, _, name = users.internal.partition(".")
    names, here = ("id", "name", "hdr__change_identifier"), "hdr__partition = 'current'"
    for read in READERS.values():
        rows = read(users.lab.project, namespace, name, names, here)
        seen = sorted((tuple(row[one] for one in names) for row in rows), key=repr)
        assert seen == users.stored("current", *names)


def test_rejected_records_are_joined_and_can_still_be_replayed(users: Feed) -> None:
    """One is replayed before they are joined, one after."""
    table = owned(users)
    for seq in range(21, 25):
        copied(users, table, put(None, seq))
    replayed(users, table, 0)
    before = users.stored("quarantine", "hdr__quarantine")
    assert (files_of(table, Partition.QUARANTINE), len(before)) == (4, 3)

    done = rewrite(table)

    assert done.whole
    assert files_of(table, Partition.QUARANTINE) == 1
    assert users.stored("quarantine", "hdr__quarantine") == before
    replayed(users, table, 1)
    assert users.stored("quarantine", "hdr__quarantine") == [before[0], before[2]]
    assert not verify(table).findings


def test_what_is_in_shape_stays(users: Feed) -> None:
    table = owned(users)
    rewrite(table)
    snapshot, files = table.state.snapshot, users.files()

    done = rewrite(table)

    assert (done.why, done.whole) == ("no files are worth writing again", True)
    assert (table.state.snapshot, users.files()) == (snapshot, files)


def test_rows_that_an_apply_deletes_meanwhile_do_not_come_back(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = owned(users)
    changes = [put(3, 21, name="Cid"), drop(4, 22), drop(1, 23), put(2, 24, name="back")]
    meanwhile(monkeypatch, lambda: step(users, table, *changes))

    done = rewrite(table)

    assert done.whole
    assert counts(table)[0] == counts(users.table())[0] == 2
    assert users.current("id", "name") == [
        (2, "back"), (3, "Cid"), (5, "n5"), (6, "n6"), (7, "n7"), (8, "n8"), (9, None),
    ]  # fmt: skip
    assert len(users.stored("current", "id")) == 7
    step(users, table, put(3, 31, name="Cleo"), drop(2, 32))
    assert (3, "Cleo") in users.current("id", "name")
    assert len(users.current("id")) == 6
    assert len(users.history("id", "name")) == 17


def test_a_delete_that_is_lost_would_be_seen(users: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: what is deleted meanwhile is forgotten."""
    table = owned(users)
    meanwhile(monkeypatch, lambda: step(users, table, drop(4, 22)))
    monkeypatch.setattr(land, "_moved", lambda *_: PLACES.empty_table())

    rewrite(table)

    assert (4,) in users.current("id")


def test_a_copy_meanwhile_stays_pending(users: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    table = owned(users)
    meanwhile(monkeypatch, lambda: copied(users, table, put(3, 21, name="Cid")))

    assert rewrite(table).whole

    assert users.changes("id") == [(3,)]
    assert (3, "Cid") in users.current("id", "name")
    applied(table)
    assert (3, "Cid") in users.current("id", "name")


def test_files_that_another_step_rewrites_meanwhile_are_left_to_it(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = owned(users)
    meanwhile(monkeypatch, lambda: rewrite(table))
    before = everything(users)

    done = rewrite(table)

    assert not done.whole
    assert done.why == "another step has removed or rewritten some of its files"
    assert everything(users) == before
    assert counts(table) == (1, 1, 0)
    known = set(users.files())
    rewrite(table)
    assert known == set(users.files())


def test_it_waits_for_the_end_of_an_apply(users: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    table = owned(users)
    begun, ends = threading.Event(), threading.Event()

    def apply() -> None:
        with table.applying():
            begun.set()
            ends.wait(10)

    thread = threading.Thread(target=apply)
    thread.start()
    begun.wait(10)
    try:
        monkeypatch.setattr(data_files, "PATIENCE_SECONDS", 0.01)
        files = users.files()
        assert not rewrite(table).whole
        assert users.files() == files
        assert counts(table)[0] == 2
        monkeypatch.setattr(data_files, "PATIENCE_SECONDS", 10)
        threading.Timer(0.1, ends.set).start()
        assert rewrite(table).whole
    finally:
        ends.set()
        thread.join()
    assert counts(table) == (1, 1, 0)


class KilledError(BaseException):
    """The process dies: nothing of ours may catch this."""


@pytest.mark.parametrize(
    "committed",
    [pytest.param(False, id="before", marks=pytest.mark.slow), pytest.param(True, id="after")],
)
def test_killed_at_the_commit(
    users: Feed, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """The next owner finds all rows, ends what was begun, and applies to the result."""
    before, real = everything(users), commit.commit_row_delta

    def last(given: IcebergTable, made: CommitStep) -> Committed:
        if committed:
            real(given, made)
        raise KilledError

    table = owned(users)
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(dataset, "commit_row_delta", last)
        rewrite(table)
    assert everything(users) == before
    assert (counts(users.table()) == (1, 1, 0)) == committed

    successor = owned(users)
    assert rewrite(successor).whole
    assert everything(users) == before
    assert counts(successor) == counts(users.table()) == (1, 1, 0)
    step(users, successor, put(3, 31, name="Cid"), drop(4, 32))
    assert (3, "Cid") in users.current("id", "name")
    assert len(users.current("id")) == len(before[3]) - 1


def test_who_is_to_give_way_writes_nothing_more(users: Feed) -> None:
    table = owned(users)
    files, asked = users.files(), iter([False, True, True])

    done = rewrite(table, ActionLimits(STARTED, give_way=lambda: next(asked)))

    assert (done.why, done.whole) == ("it gave way", False)
    assert users.files() == files


def test_what_is_over_the_budget_waits(users: Feed) -> None:
    done = rewrite(owned(users), ActionLimits(STARTED, budget_bytes=100))

    assert (done.why, done.whole) == ("the budget is used up", False)


def test_somebody_else_deletes_a_row_at_the_last_moment(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another engine: the rewrite is refused, and the next one knows."""
    table = owned(users)
    delete = f"DELETE FROM {users.relation} WHERE hdr__partition = 'current' AND id = 5"
    real = commit.commit_row_delta

    def late(given: IcebergTable, made: CommitStep) -> Committed:
        monkeypatch.setattr(dataset, "commit_row_delta", real)
        users.lab.spark.sql(delete)
        return real(given, made)

    monkeypatch.setattr(dataset, "commit_row_delta", late)
    files = users.files()

    done = rewrite(table)
    assert not done.whole
    assert "another engine changed" in done.why
    assert len(users.files() - files) <= 1  # the delete file of the other engine

    assert rewrite(table).whole
    assert (5,) not in users.current("id")
    assert counts(table) == counts(users.table()) == (1, 1, 0)


@pytest.mark.slow
def test_the_plain_applier_and_a_late_event_after_it(users: Feed) -> None:
    table = owned(users)
    rewrite(table)
    step(users, table, put(1, 5, name="late"))
    copied(users, table, put(5, 31, name="Eve"))
    PlainApplier().apply(table, reason="a test", now=STARTED)
    rewrite(table)

    assert {(1, "Ann"), (5, "Eve")} < set(users.current("id", "name"))
    assert (1, "late", "U", 5.0, 11.0) in users.history("id", "name")


def test_rows_are_ordered_by_key_where_an_apply_looks_for_keys(users: Feed) -> None:
    table = owned(users)
    step(users, table, *(put(20 - key, 40 + key) for key in range(8)))

    rewrite(table)

    (file,) = table.table.files(Partition.CURRENT, table.state.snapshot)
    keys = pq.read_table(file.path.removeprefix("file:")).column("id").to_pylist()
    assert keys == sorted(keys)
