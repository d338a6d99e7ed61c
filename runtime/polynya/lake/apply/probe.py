"""Find the stored versions of some records: key columns first, the rest only where one matched.

Every data file is read row group by row group, several at a time. A row group whose range of keys
no touched key lies in is not read at all, and one without a match gives only its keys.
`NeededVersions` names the columns that a fold needs of a row group: what the footer proves is not
read (docs/adr/0013-applies-without-spark.md). Keys of a large file are looked up in an index where
that pays (docs/adr/0015-key-indexes.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from polynya.lake.apply.build import IndexSource
from polynya.lake.apply.key_index import KeyIndexes
from polynya.lake.apply.key_index_file import SortedRows
from polynya.lake.apply.records import (
    DELETES,
    FILE,
    FOUND,
    IN_CURRENT,
    PLACE,
    POS,
    RECORD,
    TIME,
    TouchedRecords,
    count_within,
)
from polynya.lake.iceberg.deletes import FILE_STEP
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import TableFile, each_read
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles

_TIMES_OF_LOADS = (h.FROM_TIMESTAMP, h.INSERTED_TIMESTAMP)

Column = Mapping[str, Any]
Columns = Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class _Part:
    """A row group that may hold a touched record: the number of its file, and columns to read.

    `hits` are the rows that hold one (RECORD, POS, the key, what an index keeps), None where the
    keys have to be read.
    """

    number: int
    group: int
    needed: Sequence[str]
    hits: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """What holds data files, these files, the columns of their table by name, those of its key.

    Keys of large files are looked up in `indexes`, where that pays. `keep`: the table is small, and
    what is read of it stays in memory.
    """

    store: DataFiles
    files: Sequence[tuple[DataFile, TableFile]]
    columns: Columns
    keys: Sequence[Column]
    indexes: KeyIndexes | None = None
    keep: bool = False

    @span("probe")
    def find(self, records: TouchedRecords, wanted: NeededVersions) -> pa.Table:
        """Stored versions of the records, dead ones among them.

        They have the columns FOUND, and data columns that are wanted.
        """
        parts = [self._parts(records, wanted, number) for number in range(len(self.files))]
        if self.indexes is not None:
            parts = self._looked_up(records, wanted, parts)
        read = each_read(
            self.store,
            lambda part: self._in_group(records, wanted, part),
            [part for of_file in parts for part in of_file],
        )
        matches = [match for match in read if match is not None]
        return pa.concat_tables([FOUND.empty_table(), *matches], promote_options="default")

    def _parts(self, records: TouchedRecords, wanted: NeededVersions, number: int) -> list[_Part]:
        """Row groups of a file that may hold a touched record which matters."""
        file, stored = self.files[number]
        needed = ((group, wanted.of(file, stored, group, self.columns)) for group in stored.groups)
        return [
            _Part(number, group, names) for group, names in needed
            if names and not self._is_elsewhere(records, stored, group)
        ]  # fmt: skip

    def _is_elsewhere(self, records: TouchedRecords, stored: TableFile, group: int) -> bool:
        """Whether the range of a key column says that no touched record is in a row group."""
        ranges = [self._range(stored, group, column) for column in self.keys]
        return any(
            bounds is not None and records.within(index, *bounds) == 0
            for index, bounds in enumerate(ranges)
        )

    def _range(self, stored: TableFile, group: int, column: Column) -> tuple[Any, Any] | None:
        return stored.bounds(group, column) if column["type"] in ("int", "long") else None

    @span("look up keys")
    def _looked_up(
        self, records: TouchedRecords, wanted: NeededVersions, parts: Sequence[list[_Part]]
    ) -> list[list[_Part]]:
        """The same parts, with their hits for each file that has an index."""
        names = [key["name"] for key in self.keys]
        touched = records.by_key(names) if any(map(self._is_large, parts)) else None
        if touched is None:
            return list(parts)
        return each_read(
            self.store,
            lambda of_file: (
                self._by_index(touched, wanted, of_file) if self._is_large(of_file) else of_file
            ),
            parts,
        )

    def _is_large(self, of_file: Sequence[_Part]) -> bool:
        return (
            self.indexes is not None
            and bool(of_file)
            and self.indexes.is_for(self.files[of_file[0].number][0])
        )

    def _by_index(
        self, touched: SortedRows, wanted: NeededVersions, parts: list[_Part]
    ) -> list[_Part]:
        assert self.indexes is not None
        file, stored = self.files[parts[0].number]
        kept = [self.columns[name] for name in wanted.always(file)]
        hits = self.indexes.find(
            IndexSource(file, stored, self.keys, kept),
            touched,
            read=sum(stored.footer.row_group(part.group).num_rows for part in parts),
            likely=self._likely(touched, stored, parts),
            far=self.store.far,
        )
        if hits is None:
            return parts
        hits = hits.set_column(hits.schema.get_field_index(POS), POS, hits[POS].cast(pa.int64()))
        hits = hits.sort_by(POS)
        bounds = pa.array([*stored.starts, file.rows], pa.int64())
        at = pc.search_sorted(hits.column(POS), bounds).to_pylist()
        return [
            replace(part, hits=hits.slice(at[part.group], at[part.group + 1] - at[part.group]))
            for part in parts
        ]

    def _likely(self, touched: SortedRows, stored: TableFile, parts: Sequence[_Part]) -> int:
        """How many touched keys may be in a file, by the range of the first column."""
        ranges = [self._range(stored, part.group, self.keys[0]) for part in parts]
        bounded = [bounds for bounds in ranges if bounds is not None]
        if len(bounded) < len(ranges):
            return len(touched)
        low, high = min(low for low, _ in bounded), max(high for _, high in bounded)
        return count_within(touched.keys[0], low, high)

    def _in_group(
        self, records: TouchedRecords, wanted: NeededVersions, part: _Part
    ) -> pa.Table | None:
        file, stored = self.files[part.number]
        hits = self._read_keys(records, part) if part.hits is None else part.hits
        if hits.num_rows == 0:
            return None
        pos, rows = hits.column(POS), hits
        names = [name for name in part.needed if name not in hits.column_names]
        for name in list(names):
            if (time := self._only_time(stored, part.group, name)) is not None:
                names.remove(name)
                rows = rows.append_column(name, pa.repeat(time, len(rows)))
        if names:
            at = pc.subtract(pos, stored.starts[part.group]).combine_chunks()
            columns = [self.columns[name] for name in names]
            taken = stored.read_at(part.group, columns, at, keep=self.keep)
            for name in names:
                rows = rows.append_column(name, taken.column(name))
        number = pa.repeat(pa.scalar(part.number, pa.int32()), len(rows))
        in_current = pa.repeat(pa.scalar(file.partition == Partition.CURRENT), len(rows))
        rows = rows.append_column(FILE, number)
        rows = rows.append_column(PLACE, pc.add(pos, part.number * FILE_STEP))
        return wanted.chosen(file, rows.append_column(IN_CURRENT, in_current))

    def _only_time(self, stored: TableFile, group: int, name: str) -> pa.Scalar | None:
        """The time that all rows of a row group have in a column, as those of one load have.

        None where they have several, or other values.
        """
        column = self.columns[name]
        bounds = stored.bounds(group, column) if name in _TIMES_OF_LOADS else None
        if bounds is None or bounds[0] != bounds[1] or stored.nulls(group, column) != 0:
            return None
        return pa.scalar(bounds[0], TIME)

    def _read_keys(self, records: TouchedRecords, part: _Part) -> pa.Table:
        """The rows of a row group that hold a touched record."""
        stored = self.files[part.number][1]
        keys = stored.read(part.group, self.keys, keep=self.keep)
        numbers = records.of([column.combine_chunks() for column in keys.columns])
        hits = pc.indices_nonzero(numbers.is_valid())
        pos = pc.add(hits.cast(pa.int64()), stored.starts[part.group])
        rows = pa.table({RECORD: numbers.take(hits), POS: pos})
        for name in keys.column_names:
            rows = rows.append_column(name, keys.column(name).take(hits))
        return rows


class NeededVersions(ABC):
    """What a fold needs of the stored versions; `columns` are those of the table, by name."""

    @abstractmethod
    def of(self, file: DataFile, stored: TableFile, group: int, columns: Columns) -> list[str]:
        """Columns to read of the versions in a row group; empty where none of them matters."""

    @abstractmethod
    def always(self, file: DataFile) -> list[str]:
        """Columns of these that every version in a file may be asked for: an index keeps them."""

    @abstractmethod
    def chosen(self, file: DataFile, rows: pa.Table) -> pa.Table:
        """Those of the versions of touched records that matter."""


@dataclass(frozen=True, slots=True)
class NeededOrder(NeededVersions):
    """Without history: whether events are newer, in sequence and in time, than what is stored.

    `oldest` is the lowest change identifier of the events and `earliest` their earliest time. A row
    group whose footer proves both gives no more than the time at which each record was inserted,
    and of Prior nothing. Operations are read where Current may hold a delete, or Prior anything
    else: the dataset had history or soft deletes before.
    """

    oldest: str
    earliest: Any

    @override
    def of(self, file: DataFile, stored: TableFile, group: int, columns: Columns) -> list[str]:
        columns_needed = self.always(file)
        newest = stored.bounds(group, columns[h.CHANGE_IDENTIFIER])
        if newest is None or newest[1] >= self.oldest:
            columns_needed += [h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL]
        if not _is_plain(file, stored.bounds(group, columns[h.OPERATION])):
            columns_needed.append(h.OPERATION)
        latest = stored.bounds(group, columns[h.FROM_TIMESTAMP])
        if latest is None or latest[1] > self.earliest:
            columns_needed.append(h.FROM_TIMESTAMP)
        return columns_needed

    @override
    def always(self, file: DataFile) -> list[str]:
        return [h.INSERTED_TIMESTAMP] if file.partition == Partition.CURRENT else []

    @override
    def chosen(self, _file: DataFile, rows: pa.Table) -> pa.Table:
        return rows


def _is_plain(file: DataFile, operations: tuple[Any, Any] | None) -> bool:
    """Whether a range of operations says that Current holds no delete, or Prior nothing else."""
    if operations is None:
        return False
    low, high = operations
    if file.partition == Partition.CURRENT:
        return not any(low <= delete.as_py() <= high for delete in DELETES)
    return low == high and low in DELETES.to_pylist()


@dataclass(frozen=True, slots=True)
class NeededRows(NeededVersions):
    """With history: the newest version of a record with all its columns, `names`.

    That is its row in Current, or its delete in Prior that nothing follows.
    """

    names: Sequence[str]

    @override
    def of(self, file: DataFile, stored: TableFile, group: int, columns: Columns) -> list[str]:
        if file.partition == Partition.PRIOR and not self._may_be_open(stored, group, columns):
            return []
        return list(self.names)

    @override
    def always(self, _file: DataFile) -> list[str]:
        return []

    @override
    def chosen(self, file: DataFile, rows: pa.Table) -> pa.Table:
        if file.partition == Partition.CURRENT:
            return rows
        deletes = pc.is_in(rows.column(h.OPERATION), value_set=DELETES)
        return rows.filter(pc.and_(deletes, rows.column(h.TO_TIMESTAMP).is_null()))

    def _may_be_open(self, stored: TableFile, group: int, columns: Columns) -> bool:
        operations = stored.bounds(group, columns[h.OPERATION])
        possible = operations is None or any(
            operations[0] <= delete.as_py() <= operations[1] for delete in DELETES
        )
        return possible and stored.nulls(group, columns[h.TO_TIMESTAMP]) != 0
