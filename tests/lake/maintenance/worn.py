"""A table in which every action of maintenance has something to do, and each action by its name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from polynya.lake.maintenance import fenced, orphans, rewrite_deletes, snapshots
from polynya.lake.maintenance import rewrite_data_files as data_files
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.manifests import rewrite_manifests
from polynya.lake.maintenance.orphans import remove_orphan_files
from polynya.lake.maintenance.retention import expire_changes, expire_rows
from polynya.lake.maintenance.rewrite_data_files import rewrite_data_files, rewrite_layout
from polynya.lake.maintenance.rewrite_deletes import rewrite_position_delete_files
from polynya.lake.maintenance.snapshots import Keep, expire_snapshots
from polynya.lake.maintenance.statistics import compute_statistics
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from tests.lab.lab import STARTED, Feed, Lab, put
from tests.lab.owned import copied, owned, step

#: The clock is at 1 June: rows of days before this one are too old.
LIMIT = date(2026, 3, 3)
OLD, YOUNG = "2026-01-10", "2026-05-10"


def worn(lab: Lab, action: str) -> Feed:
    """Small files, deleted and old rows, many manifests and snapshots, and a file of nobody.

    For the actions that need it applied events that are kept, or another layout than files have.
    """
    kept = {"changes_retention": "10d"} if action == "expire_changes" else {}
    users = lab.feed(
        **kept,
        retention={"column": "day", "keep": "90d"},
        columns={"day": "date"},
        maintenance={"enabled": False},
    )
    users.apply(put(1, 1, name="Ann", day=OLD), put(2, 2, name="Ben", day=OLD))
    users.apply(put(3, 3, name="Cid", day=OLD), put(4, 4, name="Dan", day=YOUNG))
    lab.spark.sql(
        f"ALTER TABLE {users.relation} "
        "SET TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')"
    )
    table = owned(users)
    step(users, table, put(4, 5, name="Dana", day=YOUNG), put(5, 6, name="Eve", day=YOUNG))
    step(users, table, put(5, 7, name="Eva", day=YOUNG), put(6, 8, name="Flo", day=YOUNG))
    copied(users, table, put(7, 9, name="Gil", day=YOUNG), put(6, 10, name="Floh", day=YOUNG))
    for number in range(2):
        lost = Path(str(table.table.java.location())) / "data" / f"lost-{number}.parquet"
        lost.write_bytes(b"nobody")
        os.utime(lost, (time.time() - 9 * 86_400,) * 2)
    if action == "rewrite_layout":
        users.configure(partition_by=["month(day)"])
    return users


def seen(users: Feed, action: str) -> Any:
    """What the views show; of what `expire_rows` leaves, and without kept events that may go.

    The first version of a key that is left is an update by then, so its operation does not count.
    """
    views = [
        users.current("id", "name", "day"),
        users.history("id", "name", "day"),
        users.changes("id", "name", "day"),
    ]
    if action == "expire_changes":
        return views[:2]
    if action != "expire_rows":
        return views
    young = [[row for row in rows if row[2] >= LIMIT] for rows in views]
    return [[(*row[:3], *row[4:]) for row in rows] for rows in young]


def _expire_snapshots(table: DatasetTable) -> ActionOutcome:
    later = ActionLimits(datetime.now(UTC) + timedelta(hours=3))
    return expire_snapshots(table, limits=later, keep=Keep(at_least=1), readers=lambda: [])


#: Each does something to a worn table.
ACTIONS: dict[str, Callable[[DatasetTable], ActionOutcome]] = {
    "rewrite_data_files": lambda table: rewrite_data_files(
        table, ActionLimits(STARTED), data_files.RULE.thorough()
    ),
    "rewrite_position_delete_files": lambda table: rewrite_position_delete_files(
        table, ActionLimits(STARTED), rewrite_deletes.RULE.thorough()
    ),
    "rewrite_manifests": lambda table: rewrite_manifests(
        table, limits=ActionLimits(STARTED), many=2
    ),
    "expire_snapshots": _expire_snapshots,
    "remove_orphan_files": lambda table: remove_orphan_files(
        table, limits=ActionLimits(datetime.now(UTC))
    ),
    "rewrite_layout": lambda table: rewrite_layout(table, ActionLimits(STARTED), data_files.RULE),
    "expire_changes": lambda table: expire_changes(
        table, ActionLimits(STARTED + timedelta(days=20))
    ),
    "expire_rows": lambda table: expire_rows(table, ActionLimits(STARTED)),
    "compute_statistics": lambda table: compute_statistics(table, ActionLimits(STARTED)),
}

STEP, SWAP = (dataset, "commit_row_delta"), (fenced, "swap")
#: The boundaries of each: the functions, by their modules, that change what others see, and how
#: often each is called.
BOUNDARIES: dict[str, list[tuple[tuple[Any, str], int]]] = {
    "rewrite_data_files": [(STEP, 1)],
    "rewrite_position_delete_files": [(STEP, 1)],
    "rewrite_manifests": [(SWAP, 1)],
    "expire_snapshots": [((snapshots, "_expired"), 1), ((snapshots, "delete"), 1)],
    "remove_orphan_files": [((orphans, "delete"), 1)],
    "rewrite_layout": [(STEP, 1)],
    "expire_changes": [(STEP, 1)],
    # First whole files, then rows of others.
    "expire_rows": [(STEP, 2)],
    "compute_statistics": [(SWAP, 1)],
}
