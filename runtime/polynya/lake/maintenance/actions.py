"""The table of maintenance actions: each is called in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.health import rule_of
from polynya.lake.maintenance.manifests import rewrite_manifests
from polynya.lake.maintenance.orphans import remove_orphan_files
from polynya.lake.maintenance.retention import expire_changes, expire_rows
from polynya.lake.maintenance.rewrite_data_files import rewrite_data_files, rewrite_layout
from polynya.lake.maintenance.rewrite_deletes import rewrite_position_delete_files
from polynya.lake.maintenance.snapshots import Keep, expire_snapshots
from polynya.lake.maintenance.statistics import compute_statistics
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.warehouse.readers import RunningReader
from polynya.model.config.maintenance import ActionName

#: Knows the long readers of the warehouse.
Readers: TypeAlias = Callable[[], Iterable[RunningReader]]


@dataclass(frozen=True, slots=True)
class Call:
    """What an action is given: a table that this process has taken over, and its limits."""

    target: DatasetTable
    limits: ActionLimits
    readers: Readers


def _rewrite_data_files(call: Call) -> ActionOutcome:
    return rewrite_data_files(call.target, call.limits, rule_of(call.target.dataset))


def _rewrite_layout(call: Call) -> ActionOutcome:
    return rewrite_layout(call.target, call.limits, rule_of(call.target.dataset))


def _expire_snapshots(call: Call) -> ActionOutcome:
    expiry = call.target.dataset.maintenance.snapshot_expiry
    keep = Keep(expiry.age, expiry.keep, expiry.at_most)
    return expire_snapshots(call.target, limits=call.limits, keep=keep, readers=call.readers)


def _remove_orphan_files(call: Call) -> ActionOutcome:
    older_than = call.target.dataset.maintenance.orphan_files.older_than
    return remove_orphan_files(call.target, limits=call.limits, older_than=older_than)


#: By name. One that is missing is not built, and is never chosen.
BUILT: Final[Mapping[ActionName, Callable[[Call], ActionOutcome]]] = {
    "rewrite_data_files": _rewrite_data_files,
    "rewrite_layout": _rewrite_layout,
    "rewrite_position_delete_files": lambda call: rewrite_position_delete_files(
        call.target, call.limits
    ),
    "rewrite_manifests": lambda call: rewrite_manifests(call.target, limits=call.limits),
    "expire_snapshots": _expire_snapshots,
    "remove_orphan_files": _remove_orphan_files,
    "expire_changes": lambda call: expire_changes(call.target, call.limits),
    "expire_rows": lambda call: expire_rows(call.target, call.limits),
    "compute_statistics": lambda call: compute_statistics(call.target, call.limits),
}
