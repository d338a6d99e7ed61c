"""Read data files as Arrow, without Spark: columns by field id, one row group at a time.

Only files of the local file system are read so. A data file never changes, so what its footer says
stays known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.arrow_columns import arrow_type, field_id, holds, typed

#: Footers that stay in memory; each is some kilobytes.
_KNOWN_FOOTERS = 1000


def local_path(location: str) -> str | None:
    """Path in the local file system, None for a file elsewhere or one that is no Parquet."""
    if not location.endswith(".parquet"):
        return None
    if location.startswith("/"):
        return location
    return f"/{location[5:].lstrip('/')}" if location.startswith("file:") else None


class StoredFile:
    """One Parquet file of a table. Columns are given as Iceberg writes a schema in JSON."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.footer = pq.read_metadata(path)
        fields = self.footer.schema.to_arrow_schema()
        self._fields = {number: one for one in fields if (number := field_id(one)) is not None}
        leaves = range(self.footer.num_columns)
        self._leaves = {self.footer.schema.column(index).path: index for index in leaves}
        rows = [self.footer.row_group(group).num_rows for group in self.groups]
        self.starts = [sum(rows[:group]) for group in self.groups]

    @property
    def groups(self) -> range:
        """Numbers of the row groups."""
        return range(self.footer.num_row_groups)

    def reads(self, columns: Sequence[Mapping[str, Any]]) -> bool:
        """Whether `read` can give these columns as the table has them now."""
        found = [(self._fields.get(one["id"]), one["type"]) for one in columns]
        return bool(self._fields) and all(
            arrow_type(kind) is not None if field is None else holds(field, kind)
            for field, kind in found
        )

    def read(self, group: int, columns: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Columns of a row group under their names in the table; one that it lacks is NULL."""
        there = {one["id"]: self._fields[one["id"]] for one in columns if one["id"] in self._fields}
        names = [field.name for field in there.values()]
        # Not `pq.read_table`: threads that it leaves may abort a process that exits right after.
        with pq.ParquetFile(self._path, metadata=self.footer) as file:
            rows = file.read_row_group(group, columns=names, use_threads=False)
        count = self.footer.row_group(group).num_rows
        found: dict[str, Any] = {}
        for one in columns:
            field = there.get(one["id"])
            column = (
                pa.nulls(count, arrow_type(one["type"]))
                if field is None
                else rows.column(field.name)
            )
            found[one["name"]] = column.cast(typed(column.type, one["type"]))
        return pa.table(found)

    def bounds(self, group: int, column: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Values that no value of a row group is below and above; None when it tells none."""
        told = self._statistics(group, column)
        return None if told is None or not told.has_min_max else (told.min, told.max)

    def nulls(self, group: int, column: Mapping[str, Any]) -> int | None:
        """Number of NULLs of a column in a row group; None when it tells none."""
        told = self._statistics(group, column)
        return None if told is None or not told.has_null_count else int(told.null_count)

    def _statistics(self, group: int, column: Mapping[str, Any]) -> Any:
        field = self._fields.get(column["id"])
        leaf = None if field is None else self._leaves.get(field.name)
        return None if leaf is None else self.footer.row_group(group).column(leaf).statistics


@lru_cache(maxsize=_KNOWN_FOOTERS)
def stored_file(path: str) -> StoredFile:
    """The file at a path, with its footer."""
    return StoredFile(path)
