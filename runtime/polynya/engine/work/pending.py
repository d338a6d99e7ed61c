"""What of a dataset was copied and is not applied yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from polynya.engine.work.policy import PendingFacts
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract.headers import Partition


def pending_facts(table: DatasetTable, now: datetime) -> PendingFacts:
    """Facts about the pending changes of a dataset, out of file statistics."""
    state = table.state
    pending = table.table.files(Partition.CHANGES, state.snapshot)
    if not pending:
        return PendingFacts(0, 0, 0, 0)
    current = table.table.files(Partition.CURRENT, state.snapshot)
    since = state.copy.pending_since(state.apply)
    return PendingFacts(
        rows=sum(file.rows for file in pending),
        size_bytes=sum(file.size_bytes for file in pending),
        files=len(pending),
        current_rows=sum(file.rows for file in current),
        current_bytes=sum(file.size_bytes for file in current),
        age=max(now - since, timedelta()) if since else None,
    )
