"""What a table knows after its own commits is what it would read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.iceberg.files import DataFile
from polynya.lake.table.dataset import DatasetTable
from polynya.model.headers import Partition
from tests.lab.lab import STARTED, Feed, Lab, drop, put

pytestmark = pytest.mark.spark


def figures(files: Sequence[DataFile]) -> list[tuple[str, str, int, int]]:
    """Files in a fixed order, without their Java objects."""
    return sorted((one.path, one.partition, one.rows, one.size_bytes) for one in files)


def check(table: DatasetTable, users: Feed) -> None:
    """State and files are those that somebody else reads from the table."""
    other = users.table("somebody else")
    assert table.state == other.state
    snapshot = table.state.snapshot
    for partition in Partition:
        known, read = (one.table.files(partition, snapshot) for one in (table, other))
        assert figures(known) == figures(read)
    assert snapshot is not None
    deletes, others = (one.table.position_deletes(snapshot) for one in (table, other))
    assert {one.path for one in deletes or ()} == {one.path for one in others or ()}


def test_states_and_files_after_each_step(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 1, name="Ben"))
    table = users.table("owner")
    table.take_over()
    applier = FastApplier()

    for sequence, record in enumerate([put(2, 2, name="Bea"), drop(1, 3), put(3, 4, name="Cid")]):
        copy_batch(table, users.batch(record), applier, now=STARTED)
        check(table, users)
        if sequence != 1:
            applier.apply(table, table.shape(), reason="a test", now=STARTED)
            check(table, users)


def test_a_commit_of_somebody_else_in_between_is_read(lab: Lab) -> None:
    """Maintenance by another engine: the step stands, and nothing old is believed."""
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    table = users.table("owner")
    table.take_over()
    known = table.state.snapshot
    lab.spark.sql(
        f"ALTER TABLE {users.internal} SET TBLPROPERTIES ('commit.retry.num-retries'='9')"
    )
    lab.spark.sql(f"DELETE FROM {users.internal} WHERE hdr__partition = 'quarantine'")
    lab.spark.sql(
        f"INSERT INTO {users.internal} (hdr__partition, hdr__change_identifier) "
        "VALUES ('reload', 'foreign')"
    )

    copy_batch(table, users.batch(put(2, 2, name="Ben")), FastApplier(), now=STARTED)

    assert table.state.snapshot != known
    assert sum(file.rows for file in table.table.files(Partition.RELOAD, table.state.snapshot)) == 1
    check(table, users)
