"""A table that an earlier version made gets what a new one has."""

from __future__ import annotations

from polynya.lake.iceberg.deletes.stage import other_deletes
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.layout import missing_bounds


def upgrade(table: IcebergTable, snapshot: int | None, format_version: int) -> None:
    """Raise the table to a version of the format, and bound its metadata.

    `snapshot` is the current one. Raises OperationError where its deletes cannot become those of
    that version.
    """
    lacking = missing_bounds(table.properties())
    if table.format_version() < format_version:
        if snapshot is not None and table.position_deletes(snapshot) is None:
            raise other_deletes(table)
        lacking["format-version"] = str(format_version)
    if lacking:
        table.set_properties(lacking)
