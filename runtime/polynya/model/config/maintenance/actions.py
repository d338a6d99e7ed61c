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
        description="Small files, and files with many deleted rows, become few full ones. "
        "Default: true.",
    )
    rewrite_layout: bool = Field(
        default=True,
        description="Files get the `partition_by` and `sort_by` that the dataset has now. "
        "Default: true.",
    )
    rewrite_position_delete_files: bool = Field(
        default=True, description="Many files of deletes become few. Default: true."
    )
    rewrite_manifests: bool = Field(
        default=True, description="Many manifests become few. Default: true."
    )
    expire_snapshots: bool = Field(
        default=True,
        description="Old snapshots go, with the files that only they have. Default: true.",
    )
    expire_rows: bool = Field(
        default=True, description="Rows go that are older than their retention. Default: true."
    )
    expire_changes: bool = Field(
        default=True,
        description="Applied events go that are older than `changes_retention`, also when no "
        "apply comes that lets go of them. Default: true.",
    )
    remove_orphan_files: bool = Field(
        default=True, description="Files go that no snapshot has. Default: true."
    )
    compute_statistics: bool = Field(
        default=True,
        description="Numbers of distinct values are written for planners. Default: true.",
    )
