"""Tables of format v3: deleted rows in deletion vectors, one for a data file."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from polynya.engine.commands.plan import DatasetFacts, plan_dataset
from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.iceberg import deletes
from polynya.lake.iceberg.reading import FileAccess
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.model.errors import OperationError
from polynya.model.headers import Partition
from tests.lab.kept import Kept
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.twins import ALWAYS_AGAIN, NEVER_AGAIN
from tests.oracle.packs.read_back import READERS


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    users = module_lab.feed(history=False, format_version=3)
    users.apply(*(put(key, key, name=f"n{key}") for key in range(1, 11)))
    users.apply(put(1, 11, name="Ann"), put(2, 12, name="Ben"), put(11, 13))
    return Kept(users)


@pytest.fixture
def users(kept: Kept) -> Feed:
    """A table of format v3, with two files and a deletion vector."""
    return kept.again()


def step(users: Feed, *records: Any, how: Any = NEVER_AGAIN) -> DatasetTable:
    """Copy and apply records."""
    table = users.table("owner")
    enter(table)
    copy_batch(table, users.batch(*records), FastApplier(), now=STARTED)
    FastApplier(rewriting=how).apply(table, table.shape(), reason="a test", now=STARTED)
    return table


def vectors(users: Feed) -> dict[str, int]:
    """Rows that each deletion vector names, by data file; there are no deletes of another kind."""
    table = users.table()
    assert table.state.snapshot is not None
    found = table.table.position_deletes(table.state.snapshot) or ()
    named = [(one.blob.data_file, one.blob.rows) for one in found if one.blob is not None]
    assert len(named) == len(found) == len(dict(named))
    return dict(named)


def test_a_step_merges_what_was_deleted_before(users: Feed) -> None:
    assert sorted(vectors(users).values()) == [2]

    table = step(users, put(3, 21, name="Cid"), drop(11, 22), put(4, 23, name="Dan"))

    assert users.table().table.format_version() == 3
    assert sorted(vectors(users).values()) == [1, 4]
    assert users.current("id", "name")[:4] == [(1, "Ann"), (10, "n10"), (2, "Ben"), (3, "Cid")]
    assert len(users.current("id")) == 10
    known = table.table.position_deletes(table.state.snapshot or 0) or ()
    assert {(one.path, one.blob) for one in known} == {
        (one.path, one.blob)
        for one in users.table().table.position_deletes(table.state.snapshot or 0) or ()
    }


def test_vectors_of_another_engine_are_merged_too(users: Feed) -> None:
    delete = f"DELETE FROM {users.relation} WHERE hdr__partition = 'current' AND id IN (5, 6, 7)"
    users.lab.spark.sql(delete)

    step(users, put(3, 21, name="Cid"), put(5, 22, name="Eva"))

    assert sorted(vectors(users).values()) == [6]
    assert {one for (one,) in users.current("id")} == {1, 2, 3, 4, 5, 8, 9, 10, 11}


def test_a_file_that_is_written_again_takes_its_vector_with_it(users: Feed) -> None:
    step(users, put(3, 21, name="Cid"), drop(11, 22), how=ALWAYS_AGAIN)

    assert vectors(users) == {}
    assert len(users.current("id")) == 10


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_see_the_same_rows(users: Feed, reader: str) -> None:
    step(users, put(3, 21, name="Cid"), drop(11, 22))
    namespace, _, table = users.internal.partition(".")
    names, here = ("id", "name", "hdr__change_identifier"), "hdr__partition = 'current'"

    rows = READERS[reader](users.lab.project, namespace, table, names, here)

    seen = sorted((tuple(row[name] for name in names) for row in rows), key=repr)
    assert seen == users.stored("current", *names)


def test_a_table_is_upgraded_and_its_position_deletes_merged(lab: Lab) -> None:
    users = lab.feed(history=False)
    users.apply(*(put(key, key, name=f"n{key}") for key in range(1, 21)))
    users.apply(put(1, 31, name="Ann"), put(2, 32, name="Ben"))
    users.configure(format_version=3)
    assert [one.what for one in plan_dataset(facts(users)).changes] == ["format_version: 2 → 3"]

    users.apply(put(3, 33, name="Cid"))

    assert users.table().table.format_version() == 3
    assert sorted(vectors(users).values()) == [3]
    assert len(users.current("id")) == 20
    assert plan_dataset(facts(users)).changes == ()


def test_a_table_does_not_go_back(users: Feed) -> None:
    users.configure(format_version=2)
    (change,) = plan_dataset(facts(users)).changes

    with pytest.raises(OperationError) as caught:
        users.apply(put(3, 21, name="Cid"))

    assert (change.kind, change.action) == ("format_version", "decide")
    assert caught.value.code == "POLYNYA-LAKE-022"
    assert len(users.current("id")) == 11


def facts(users: Feed) -> DatasetFacts:
    """What a plan looks at."""
    return DatasetFacts(users.dataset, users.table().state.copy)


def test_a_vector_that_forgets_what_was_deleted_would_be_seen(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = deletes.deleted_places

    def forgetful(*parts: Any) -> Any:
        return dataclasses.replace(real(*parts), places=pa.array([], pa.int64()))

    monkeypatch.setattr(deletes, "deleted_places", forgetful)
    step(users, put(3, 21, name="Cid"))

    assert len(users.current("id")) == 13


@pytest.mark.slow
def test_where_arrow_reads_nothing_vectors_are_read_through_java(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = FileAccess("a test reads nothing", "nor writes")
    monkeypatch.setattr("polynya.lake.iceberg.table.reach_of", lambda *_: nothing)

    step(users, put(3, 21, name="Cid"), drop(11, 22))

    assert sorted(vectors(users).values()) == [1, 3]
    assert len(users.current("id")) == 10


@pytest.mark.slow
def test_quarantined_records_leave_by_a_vector(lab: Lab) -> None:
    users = lab.feed(history=False, format_version=3, columns={"n": "int"})
    users.apply(put(1, 1, n=1), b"{broken", put(2, 2, n=2))
    table = users.table()
    assert len(table.table.files(Partition.QUARANTINE, table.state.snapshot)) == 1
    places = lab.spark.sql(
        "SELECT hdr__partition AS part, _file AS file_path, _pos AS pos "
        f"FROM {users.relation} WHERE hdr__partition = 'quarantine'"
    ).toArrow()
    table.take_over()
    table.commit(copy=table.state.copy, removed=places, summary={"polynya.step": "replay"})

    assert users.rejected() == []
    assert sorted(vectors(users).values()) == [1]
