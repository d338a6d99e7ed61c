"""The actions of maintenance: their names, and which of them are taken."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from pydantic import Field

from polynya.model.config.fields import Frozen

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
