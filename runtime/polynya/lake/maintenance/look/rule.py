"""What a dataset's settings mean for its actions; also for those who only explain them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from polynya.lake.maintenance.base import ActionName
from polynya.lake.maintenance.rewrite.plan import Rule
from polynya.lake.table.state import ApplyState
from polynya.model.config.dataset import ResolvedDataset

#: The actions that there are. Others are never chosen.
BUILT_NAMES: Final[frozenset[ActionName]] = frozenset(
    {
        "rewrite_data_files",
        "rewrite_layout",
        "rewrite_position_delete_files",
        "rewrite_manifests",
        "expire_snapshots",
        "remove_orphan_files",
        "expire_rows",
        "expire_changes",
        "compute_statistics",
    }
)
_RULE: Final = Rule()


def rule_of(dataset: ResolvedDataset) -> Rule:
    """When data files of a dataset are written again."""
    return _RULE.sized(dataset.layout.file_bytes)


def kept_for(dataset: ResolvedDataset) -> timedelta | None:
    """For how long rows of a dataset are kept, None for ever."""
    retention = dataset.kept.retention
    return None if retention is None else retention.keep


def events_kept_for(dataset: ResolvedDataset) -> timedelta | None:
    """For how long applied events of a dataset are kept, None for not at all or for ever."""
    keep = dataset.kept.changes_retention
    return keep if isinstance(keep, timedelta) else None


def oldest_event(state: ApplyState) -> datetime | None:
    """When the oldest of the applied events that are kept was applied, None where none are."""
    oldest = None if state.retaining is None else state.retaining.oldest
    return None if oldest is None else datetime.fromisoformat(oldest)
