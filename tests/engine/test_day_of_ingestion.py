"""The day of ingestion parts the files of a transform, and its rows leave by it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.retention import expire_rows
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.model.headers import Partition
from tests.lab.lab import STARTED, Lab
from tests.lab.landed import FILES, LandedTable
from tests.lab.transformed import KAFKA
from tests.oracle.packs.read_back import READERS

APPENDED: dict[str, Any] = {
    "mode": "append_only",
    "columns": [{"name": "taken", "expression": "get_processing_time()"}],
    "retention": "90d",
}
OLD = datetime(2026, 2, 1, 23, 30, tzinfo=UTC)


def owned(facts: LandedTable) -> DatasetTable:
    table = facts.look.table("owner")
    enter(table)
    return table


@pytest.mark.parametrize("source", [KAFKA, pytest.param(FILES, marks=pytest.mark.slow)])
def test_files_are_parted_by_the_day_and_old_days_leave_whole(
    lab: Lab, source: dict[str, Any]
) -> None:
    facts = LandedTable(lab, APPENDED, source)
    facts.take({"id": 1}, {"id": 2}, at=OLD)
    facts.take({"id": 3}, at=STARTED)
    table = facts.look.table()
    files = table.table.files(Partition.CURRENT, table.state.snapshot)

    namespace, _, name = facts.look.internal.partition(".")
    for read in READERS.values():
        rows = read(lab.project, namespace, name, ("id", "ingestion_date", "taken"),
                    "ingestion_date = '2026-02-01'")  # fmt: skip
        assert sorted((row["id"], row["ingestion_date"], row["taken"]) for row in rows) == [
            (1, date(2026, 2, 1), OLD), (2, date(2026, 2, 1), OLD),
        ]  # fmt: skip
    assert sorted(file.rows for file in files) == [1, 2]

    done = expire_rows(owned(facts), ActionLimits(STARTED))

    assert (done.files_removed, done.whole) == (1, True)
    assert facts.look.current("id", "ingestion_date") == [(3, date(2026, 6, 1))]
