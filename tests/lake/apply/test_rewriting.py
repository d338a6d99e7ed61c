"""Data files that are written again by an apply: fewer files, the same rows to the last column."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.apply import removal
from polynya.lake.apply.fast import FastApplier
from polynya.lake.apply.removal import Rewriting
from polynya.lake.copy.copy import copy_batch
from polynya.lake.iceberg import commit
from polynya.lake.iceberg.commit import CommitStep, Committed
from polynya.lake.iceberg.deletes import Deleted
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.model.errors import ConflictError
from polynya.model.headers import Partition
from tests.lab.kept import Kept
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.twins import ALWAYS_AGAIN, NEVER_AGAIN
from tests.lake.apply.plain import PlainApplier
from tests.oracle.packs.read_back import READERS

WHOLE = [{"a": 1, "tags": ["x", None]}, None, {"a": None, "tags": []}]


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    users = module_lab.feed(history=False)
    users.apply(*(put(key, key, name=f"n{key}", more=WHOLE[key % 3]) for key in range(1, 11)))
    users.apply(put(1, 11, name="Ann"), put(2, 12, name="Ben"), put(11, 13))
    return Kept(users)


@pytest.fixture
def users(kept: Kept) -> Feed:
    """Ten rows in one file, of which two are deleted, and three in another."""
    return kept.again()


def step(users: Feed, *records: Any, how: Rewriting, table: DatasetTable | None = None) -> None:
    """Copy and apply records, with data files written again as `how` says."""
    table = table or users.table("owner")
    enter(table)
    copy_batch(table, users.batch(*records), FastApplier(), now=STARTED)
    FastApplier(rewriting=how).apply(table, table.shape(), reason="a test", now=STARTED)


def files(users: Feed) -> tuple[list[int], int]:
    """Rows of the data files of Current, and the number of delete files."""
    table = users.table()
    current = table.table.files(Partition.CURRENT, table.state.snapshot)
    assert table.state.snapshot is not None
    return sorted(one.rows for one in current), len(
        table.table.position_deletes(table.state.snapshot) or ()
    )


def test_rows_are_what_they_were_in_every_column(users: Feed, kept: Kept) -> None:
    """Also for other readers."""
    found: dict[str, Any] = {}
    for name, how in {"never": NEVER_AGAIN, "always": ALWAYS_AGAIN}.items():
        users = kept.again()
        step(users, put(3, 21, name="Cid"), drop(11, 22), how=how)
        found[name] = users.stored("current", "*"), users.stored("prior", "*"), files(users)

    assert found["always"][:2] == found["never"][:2]
    assert found["never"][2] == ([1, 3, 10], 2)
    assert found["always"][2] == ([10], 0)
    namespace, _, table = users.internal.partition(".")
    names, here = ("id", "name", "hdr__change_identifier"), "hdr__partition = 'current'"
    for read in READERS.values():
        rows = read(users.lab.project, namespace, table, names, here)
        seen = sorted((tuple(row[name] for name in names) for row in rows), key=repr)
        assert seen == users.stored("current", *names)


def test_what_a_table_knows_then_is_what_it_would_read(users: Feed) -> None:
    table = users.table("owner")
    before = table.state.snapshot
    rows = users.current("id", "name")
    for sequence, how in enumerate([ALWAYS_AGAIN, NEVER_AGAIN, Rewriting(), ALWAYS_AGAIN], 21):
        step(users, put(sequence % 5, sequence, name="x"), how=how, table=table)
        other = users.table("somebody else")
        snapshot = table.state.snapshot
        assert snapshot is not None
        for partition in (Partition.CURRENT, Partition.PRIOR):
            known, read = (one.table.files(partition, snapshot) for one in (table, other))
            assert {one.path for one in known} == {one.path for one in read}
        known, read = (one.table.position_deletes(snapshot) or () for one in (table, other))
        assert {one.path for one in known} == {one.path for one in read}

    old = f"SELECT id, name FROM {table.table.at(before or 0)} WHERE hdr__partition = 'current'"
    assert users.lab.rows(old) == rows


def test_delete_files_that_others_need_stay(users: Feed) -> None:
    """One names two files: of the large one much is deleted, of the other little."""
    step(users, *(put(key, 30 + key, name="y") for key in (12, 13, 14, 15)), how=NEVER_AGAIN)
    step(users, put(3, 51, name="z"), put(12, 52, name="z"), how=NEVER_AGAIN)
    assert files(users) == ([2, 3, 4, 10], 2)

    step(users, put(4, 61, name="w"), how=Rewriting(share=0.4))

    assert files(users) == ([2, 3, 4, 7], 1)
    assert len(users.current("id")) == 15


def just_before_the_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen between the staging of the next apply and its commit."""
    real = commit.commit_row_delta

    def late(table: IcebergTable, given: CommitStep) -> Committed:
        if given.summary.get("polynya.step", "").endswith("apply"):
            monkeypatch.setattr(dataset, "commit_row_delta", real)
            act()
        return real(table, given)

    monkeypatch.setattr(dataset, "commit_row_delta", late)


def test_a_row_that_somebody_deletes_meanwhile_does_not_come_back(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = f"DELETE FROM {users.relation} WHERE hdr__partition = 'current' AND id = 5"
    just_before_the_commit(monkeypatch, lambda: users.lab.spark.sql(delete))

    with pytest.raises(ConflictError):
        step(users, put(3, 21, name="Cid"), how=ALWAYS_AGAIN)
    step(users, put(4, 22, name="Dan"), how=ALWAYS_AGAIN)

    assert (5,) not in users.current("id")
    assert {(3, "Cid"), (4, "Dan")} < set(users.current("id", "name"))


def test_a_copy_that_commits_meanwhile_is_not_refused(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = users.table("owner")
    table.take_over()

    def copy_more() -> None:
        other = dataclasses.replace(users.table("owner"), epoch=table.epoch)
        copy_batch(other, users.batch(put(9, 31, name="Ida")), FastApplier(), now=STARTED)

    just_before_the_commit(monkeypatch, copy_more)

    step(users, put(3, 21, name="Cid"), how=ALWAYS_AGAIN, table=table)

    assert users.changes("id") == [(9,)]
    assert {(3, "Cid"), (9, "Ida")} < set(users.current("id", "name"))


def test_a_deleted_row_that_comes_back_would_be_seen(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a file is written again with what was deleted in earlier steps."""
    plan = removal.plan_removal

    def forgetful(run: Any, places: Any, deleted: Deleted | None, how: Rewriting) -> Any:
        assert deleted is not None
        nothing = dataclasses.replace(deleted, places=pa.array([], pa.int64()))
        return plan(run, places, nothing, how)

    monkeypatch.setattr("polynya.lake.apply.fast.plan_removal", forgetful)
    step(users, put(3, 21, name="Cid"), how=ALWAYS_AGAIN)

    assert len(users.current("id")) > 11


def test_a_file_that_arrow_does_not_read_keeps_position_deletes(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "is_read_by", lambda *_: False)

    step(users, put(3, 21, name="Cid"), how=ALWAYS_AGAIN)

    assert files(users) == ([1, 3, 10], 2)


@pytest.mark.slow
def test_the_plain_applier_takes_over_a_table_and_hands_it_back(users: Feed) -> None:
    step(users, put(3, 21, name="Cid"), how=ALWAYS_AGAIN)
    table = users.table("owner")
    table.take_over()
    PlainApplier().apply(table, table.shape(), reason="a test", now=STARTED)

    step(users, put(3, 22, name="Cleo"), how=ALWAYS_AGAIN, table=table)

    assert (3, "Cleo") in users.current("id", "name")
    assert len(users.current("id")) == 11
