"""The settings `maintenance:`: actions that keep tables healthy, and their budget.

They are merged key by key, also inside their parts: settings of a dataset override those of its
task, and these override those of the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, get_args

from pydantic import Field

from polynya.model.config.fields import Duration, Frozen, Size

#: As the procedures of Iceberg are called, but for those that it does not have.
ActionName: TypeAlias = Literal[
    "rewrite_data_files",
    "rewrite_layout",
    "rewrite_position_delete_files",
    "rewrite_manifests",
    "expire_snapshots",
    "expire_rows",
    "expire_changes",
    "remove_orphan_files",
    "compute_statistics",
]
ACTIONS: Final[tuple[ActionName, ...]] = get_args(ActionName)


class Actions(Frozen):
    """Which actions are taken. Each is on unless it is `false`."""

    rewrite_data_files: bool = Field(
        default=True,
        description="Join small files, and rewrite files with many deleted rows. Default: true.",
    )
    rewrite_layout: bool = Field(
        default=True,
        description="Rewrite files with another `partition_by` or `sort_by` than the dataset's. "
        "Default: true.",
    )
    rewrite_position_delete_files: bool = Field(
        default=True, description="Join position delete files. Default: true."
    )
    rewrite_manifests: bool = Field(default=True, description="Join manifests. Default: true.")
    expire_snapshots: bool = Field(
        default=True,
        description="Remove old snapshots, with the files that only they have. Default: true.",
    )
    expire_rows: bool = Field(
        default=True, description="Remove rows that are older than their retention. Default: true."
    )
    expire_changes: bool = Field(
        default=True,
        description="Remove applied events that are older than `changes_retention`, if no apply "
        "removes them. Default: true.",
    )
    remove_orphan_files: bool = Field(
        default=True, description="Remove files that no snapshot has. Default: true."
    )
    compute_statistics: bool = Field(
        default=True,
        description="Write numbers of distinct values for query planners. Default: true.",
    )


class SnapshotExpiry(Frozen):
    """When a snapshot is old. One that is in use, tagged or the head of a branch stays."""

    age: Duration = Field(
        default=timedelta(hours=2),
        description="How long a snapshot stays after another one followed. Default: `2h`.",
    )
    keep: int = Field(
        default=10, gt=0, description="Number of newest snapshots that stay, however old."
    )
    at_most: int = Field(
        default=1000,
        gt=0,
        description="Maximum number of snapshots that stay by their `age`: every commit rewrites "
        "the entries of all snapshots, 1.3 KB each. Snapshots that were current "
        "within the last 30 minutes, or within `age` if that is shorter, stay in any "
        "case.",
    )


class OrphanFiles(Frozen):
    """When files that no snapshot has are looked for."""

    older_than: Duration = Field(
        default=timedelta(days=3),
        description="Minimum age of a removed file; younger files may belong to a running commit."
        " At least `1d`. Default: `3d`.",
        ge=timedelta(days=1),
    )
    every: Duration = Field(
        default=timedelta(days=1), description="Interval between two searches. Default: `1d`."
    )


class MaintenanceBudget(Frozen):
    """What maintenance may cost. Before a dataset is maintained, all that its process did counts.

    `polynya maintain` has no budget unless it is given one.
    """

    bytes_per_hour: Size = Field(
        default=32 * 2**30, description="Maximum bytes written within an hour. Default: `32GB`."
    )
    share: float = Field(
        default=0.25,
        gt=0,
        le=1,
        description="Maximum share of the last hour in which a maintenance action may run, on one"
        " thread.",
    )


class Maintenance(Frozen):
    """What keeps the tables in shape. It never changes a result."""

    enabled: bool = Field(
        default=True,
        description="`false`: runs take no maintenance action; `polynya maintain` still does. "
        "Default: true.",
    )
    actions: Actions = Field(default_factory=Actions, description="Actions to take.")
    snapshot_expiry: SnapshotExpiry = Field(
        default_factory=SnapshotExpiry, description="When snapshots expire."
    )
    orphan_files: OrphanFiles = Field(
        default_factory=OrphanFiles, description="When orphan files are removed."
    )
    budget: MaintenanceBudget = Field(
        default_factory=MaintenanceBudget, description="What maintenance may cost."
    )

    def allows(self, action: ActionName) -> bool:
        """Whether runs take an action."""
        return self.enabled and bool(getattr(self.actions, action))

    def over(self, defaults: Maintenance | None) -> Maintenance:
        """These settings, with those of `defaults` where nothing is written here."""
        if defaults is None:
            return self
        return Maintenance.model_validate(_over(_written(self), _written(defaults)))


def _written(settings: Maintenance) -> dict[str, Any]:
    return settings.model_dump(exclude_unset=True)


def _over(own: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Key by key, also in the parts."""
    merged = {**defaults, **own}
    for name in own.keys() & defaults.keys():
        if isinstance(own[name], Mapping) and isinstance(defaults[name], Mapping):
            merged[name] = _over(own[name], defaults[name])
    return merged
