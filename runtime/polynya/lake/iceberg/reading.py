"""Read data files as Arrow, without Spark: columns by field id, one row group at a time.

A data file never changes, so what its footer says stays known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.arrow_columns import arrow_type, field_id, holds, typed
from polynya.lake.iceberg.kept import KEPT, Columns
from polynya.store.data_files import DataFiles, ReadFiles

T = TypeVar("T")
R = TypeVar("R")

#: Footers that stay in memory; each is some kilobytes.
KNOWN_FOOTERS = 2000


def is_read_by(files: ReadFiles, location: str) -> bool:
    """Whether a location is one of these files, and of Parquet."""
    return location.endswith(".parquet") and files.holds(location)


def each_read(files: ReadFiles, read: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """`read` of each, as many at the same time as these files are best read. Raises its errors."""
    things = list(things)
    if len(things) < 2 or files.readers < 2:
        return [read(one) for one in things]
    with ThreadPoolExecutor(files.readers) as pool:
        return list(pool.map(read, things))


class StoredFile:
    """One Parquet file of a table. Columns are given as Iceberg writes a schema in JSON."""

    def __init__(self, files: DataFiles, location: str) -> None:
        self._files, self._location = files, location
        with files.open(location) as source:
            self.footer = pq.read_metadata(source)
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

    def own(self, columns: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those of the columns that the file has; the others are NULL in each of its rows."""
        return [one for one in columns if one["id"] in self._fields]

    def reads_all(self, columns: Sequence[Mapping[str, Any]]) -> bool:
        """Whether its rows are known from `own` of these columns, all that the table has."""
        defaults = any(
            "initial-default" in one and one["id"] not in self._fields for one in columns
        )
        return not defaults and self.reads(self.own(columns))

    def empty(self, columns: Sequence[Mapping[str, Any]]) -> pa.Table:
        """No row of `own` of these columns."""
        own = [(one, self._fields[one["id"]].type) for one in self.own(columns)]
        return pa.schema(
            [pa.field(one["name"], typed(kind, one["type"])) for one, kind in own]
        ).empty_table()

    def read(
        self, group: int, columns: Sequence[Mapping[str, Any]], *, keep: bool = False
    ) -> pa.Table:
        """Columns of a row group under their names in the table; one that it lacks is NULL.

        `keep`: they are likely to be read again.
        """
        there = {one["id"]: self._fields[one["id"]] for one in columns if one["id"] in self._fields}
        rows = self._columns(group, [field.name for field in there.values()], keep=keep)
        count = self.footer.row_group(group).num_rows
        found: dict[str, Any] = {}
        for one in columns:
            field = there.get(one["id"])
            column = pa.nulls(count, arrow_type(one["type"])) if field is None else rows[field.name]
            found[one["name"]] = column.cast(typed(column.type, one["type"]))
        return pa.table(found)

    def _columns(self, group: int, names: Sequence[str], *, keep: bool) -> Columns:
        place = (self._files, self._location, group)
        known = KEPT.of(place, names) if keep else {}
        missing = [name for name in names if name not in known]
        if not missing:
            return known
        # Not `pq.read_table`: threads that it leaves may abort a process that exits right after.
        # Ranges of columns that are side by side are asked for at once.
        with (
            self._files.open(self._location) as source,
            pq.ParquetFile(source, metadata=self.footer, pre_buffer=True) as file,
        ):
            rows = file.read_row_group(group, columns=missing, use_threads=False)
        read = {name: rows.column(name) for name in missing}
        if keep:
            KEPT.add(place, read)
        return known | read

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


@lru_cache(maxsize=KNOWN_FOOTERS)
def stored_file(files: DataFiles, location: str) -> StoredFile:
    """The file at a location, with its footer. Raises OSError."""
    return StoredFile(files, location)
