"""A reload writes as much as differs, however large the table is, and says how far it is."""

from __future__ import annotations

import pytest

from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.model.config.dataset import DELETING
from tests.lab.lab import Feed, Lab

CHANGED = 100


def land(users: Feed, rows: int, *, mark: str) -> None:
    """Put a full load in the place of the one before; one record in a hundred has the mark."""
    ids = range(rows)
    names = [f"name of {n}{mark if n % CHANGED == 0 else ''}" for n in ids]
    users.land_table("load/1.parquet", id=list(ids), name=names, n=[n * 7 for n in ids])


@pytest.mark.parametrize(
    "rows", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)], ids="{:,} rows".format
)
def test_the_last_commit_writes_what_differs(lab: Lab, rows: int) -> None:
    limits = {"batch": {"max_rows": rows // 4}}
    users = lab.parquet_feed(initial_load="load/*.parquet", history=False)
    users.more |= limits
    land(users, rows, mark="")
    users.apply()
    lab.events.clear()
    land(users, rows, mark="!")

    result = reload(lab.context(), ReloadRequest(users.task, users.dataset, mode=DELETING))

    assert result is not None
    differing = rows // CHANGED
    assert (result.loaded, result.current, result.removed) == (rows, differing, differing)
    progress = [event.as_json() for event in lab.events if event.type == "reload.loaded"]
    assert sum(fields["rows_loaded"] for fields in progress) == rows
    ((summary,),) = lab.spark.sql(
        f"SELECT summary FROM {users.internal}.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).collect()
    current = users.table().table.files("current", users.table().state.snapshot)
    table = sum(file.size_bytes for file in current)
    # Files of a few rows have their own cost: schema and footers of two data files and one of
    # deletes, and the two states.
    assert int(summary["added-files-size"]) < table * 4 / CHANGED + 60_000
    assert int(summary["added-records"]) == differing + 2
    assert int(summary["added-position-deletes"]) == differing
