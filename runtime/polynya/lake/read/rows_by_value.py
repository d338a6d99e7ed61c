"""The rows of a live view whose columns have some values, at one snapshot, read by Arrow.

Of each data file the columns that are compared are read, and the others only of row groups that
hold such a row. Where the compared columns are the key, small files come first: a record has one
row in Current, so that larger files are read for the keys that are left. Of pending changes the
newest one of each record is shown. Where that is not all that a view shows, the answer is the
reason, as a sentence, and Spark reads the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.in_memory_fold import follows_on, sequences, shifted
from polynya.lake.apply.records import DELETES, TouchedRecords, is_exact
from polynya.lake.fold.live_views import shows_newest_rows
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.deletes import FILE_STEP, Deleted, deleted_places, positions
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import TableFile, each_read, is_read_by, stored_file
from polynya.lake.spark.api import Py4JError
from polynya.lake.table.dataset import DatasetTable
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.headers import Partition
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles

#: Rows and bytes that are handed to Spark sooner than Spark finds them itself.
MOST_ROWS: Final = 3_000_000
MOST_BYTES: Final = 256 * 1024 * 1024
#: Bytes of the stored rows of Current up to which one machine looks through them, on disk and over
#: a network.
_LOCAL_BYTES, _FAR_BYTES = 2 * 1024 * 1024 * 1024, 128 * 1024 * 1024
#: Pending changes that fit into memory.
_MOST_PENDING: Final = 1_000_000
#: A file of up to so many rows for each key that is looked for is read before larger ones.
_SMALL_SHARE: Final = 4
_PENDING: Final = (
    h.CHANGE_IDENTIFIER,
    h.SEQUENCE_TAIL,
    h.OPERATION,
    h.COPY_CHANGE_IDENTIFIER,
    h.UNSENT,
    h.OLD_KEY,
)

Column = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowsByValue:
    """The live view of a table at one snapshot: rows by the values of columns."""

    store: DataFiles
    shape: Shape
    columns: Mapping[str, Column]
    current: tuple[DataFile, ...]
    changes: tuple[DataFile, ...]
    deleted: Deleted

    @span("rows by value")
    def find(self, names: Sequence[str], wanted: pa.Table) -> pa.Table | str:
        """Columns `names` of the rows whose values are among those of `wanted`, or why not.

        `wanted` has some columns of the table under their names, and a row for each combination of
        values. NULL is a value. A row of the answer occurs once.
        """
        try:
            return self._find(names, wanted)
        except (OSError, pa.ArrowException) as error:
            return f"a file was not read: {error}"

    def _find(self, names: Sequence[str], wanted: pa.Table) -> pa.Table | str:
        compared = wanted.column_names
        needed = {name: self.columns[name] for name in dict.fromkeys((*compared, *names))}
        types = {name: arrow_type(column["type"]) for name, column in needed.items()}
        if not all(is_exact(self.shape.columns[name]) for name in compared):
            return "a compared column has a type whose values are not compared exactly"
        values = [wanted.column(name).combine_chunks().cast(types[name]) for name in compared]
        files = [(file, stored_file(self.store, file.path)) for file in self.current]
        read = [*needed.values(), self.columns[h.OPERATION]]
        if not _are_readable([stored for _, stored in files], read):
            return "a file has other types than the table"
        pending = self._pending(needed)
        if isinstance(pending, str):
            return pending
        search = _Search(self, list(needed.values()), compared, files, pending)
        parts = search.found(TouchedRecords(values))
        if isinstance(parts, str):
            return parts
        none = pa.table(
            {name: pa.array([], kind) for name, kind in types.items() if kind is not None}
        ) if all(types.values()) else None  # fmt: skip
        if none is not None:
            parts = [none, *parts]
        if not parts:
            return "it is not known which types no row has"
        return pa.concat_tables(parts).select(list(names))

    def _pending(self, needed: Mapping[str, Column]) -> _Pending | str | None:
        """The newest pending change of each record; None without any, or why they are not known."""
        if not self.changes:
            return None
        if sum(file.rows for file in self.changes) > _MOST_PENDING:
            return "its pending changes are too many"
        headers = {name: self.columns[name] for name in _PENDING}
        keys = {name: self.columns[name] for name in self.shape.keys}
        read = list((headers | keys | dict(needed)).values())
        stored = [stored_file(self.store, file.path) for file in self.changes]
        if not _are_readable(stored, read):
            return "a file has other types than the table"
        parts = [(one, group) for one in stored for group in one.groups]
        events = pa.concat_tables(
            each_read(self.store, lambda part: part[0].read(part[1], read), parts)
        ).combine_chunks()
        for name in (h.UNSENT, h.OLD_KEY):
            if events.column(name).null_count != events.num_rows:
                return "pending changes carry what only the fold knows"
        if events.column(h.COPY_CHANGE_IDENTIFIER).null_count:
            return "a pending change may be late"
        if pc.any(pc.equal(events.column(h.OPERATION), "T")).as_py():
            return "a truncate is pending"
        records = TouchedRecords([events.column(key).combine_chunks() for key in self.shape.keys])
        places = pa.table({"record": records.numbers, "sequence": sequences(events)})
        order = pc.sort_indices(
            places, sort_keys=[("record", "ascending"), ("sequence", "ascending")]
        )
        places = places.take(order)
        record = places.column("record").combine_chunks()
        sequence = places.column("sequence").combine_chunks()
        follows = follows_on(record)
        if pc.any(pc.and_(follows, pc.equal(shifted(sequence), sequence))).as_py():
            return "pending changes claim one place"
        last = pc.invert(pa.concat_arrays([follows[1:], pa.array([False])]))
        newest = events.take(order).filter(last)
        shown = newest.filter(pc.invert(pc.is_in(newest.column(h.OPERATION), value_set=DELETES)))
        return _Pending(records, shown.select(list(needed)))


@dataclass(frozen=True, slots=True)
class _Pending:
    """The records with pending changes, and their rows: those whose newest change is no delete."""

    records: TouchedRecords
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class _Search:
    """A search of the rows of a view; `columns` are read, those called `compared` are compared."""

    view: RowsByValue
    columns: Sequence[Column]
    compared: Sequence[str]
    files: Sequence[tuple[DataFile, TableFile]]
    pending: _Pending | None

    def found(self, records: TouchedRecords) -> list[pa.Table] | str:
        """The rows of some records of values, in parts, or that they are too many."""
        found: list[pa.Table] = []
        if self.pending is not None:
            rows = self.pending.rows
            hits = records.of([rows.column(name).combine_chunks() for name in self.compared])
            found.append(rows.filter(hits.is_valid()))
        sorted_files = sorted(range(len(self.files)), key=lambda n: self.files[n][0].rows)
        is_key = set(self.compared) == set(self.view.shape.keys)
        few = _SMALL_SHARE * records.count if is_key else 0
        small = [n for n in sorted_files if self.files[n][0].rows <= few]
        large = sorted_files[len(small) :]
        for numbers in (small, large):
            left = self._left(records, found) if is_key else records
            if left is None:
                break
            found += self._in_files(left, numbers)
            rows_found = sum(part.num_rows for part in found)
            if rows_found > MOST_ROWS or sum(part.nbytes for part in found) > MOST_BYTES:
                return f"{rows_found:,} rows of it are concerned"
        return found

    def _left(self, records: TouchedRecords, found: Sequence[pa.Table]) -> TouchedRecords | None:
        """The records of which no row was found and no change is pending; None without any."""
        numbers = [
            records.of([part.column(name).combine_chunks() for name in self.compared])
            for part in found
        ]
        keys = records.keys()
        if self.pending is not None:
            by_name = dict(zip(self.compared, keys, strict=True))
            changed = self.pending.records.of([by_name[key] for key in self.view.shape.keys])
            numbers.append(pc.indices_nonzero(changed.is_valid()).cast(pa.int32()))
        if not numbers:
            return records
        seen = pa.concat_arrays(numbers)
        left = pc.invert(pc.is_in(pa.arange(0, records.count).cast(pa.int32()), value_set=seen))
        keys = [key.filter(left) for key in keys]
        return TouchedRecords(keys) if len(keys[0]) else None

    def _in_files(self, records: TouchedRecords, numbers: Iterable[int]) -> list[pa.Table]:
        parts = [
            (number, group)
            for number in numbers
            for group in self.files[number][1].groups
            if not self._is_elsewhere(records, self.files[number][1], group)
        ]
        read = each_read(self.view.store, lambda part: self._in_group(records, *part), parts)
        return [rows for rows in read if rows is not None]

    def _is_elsewhere(self, records: TouchedRecords, stored: TableFile, group: int) -> bool:
        for index, name in enumerate(self.compared):
            column = self.view.columns[name]
            if column["type"] not in ("int", "long") or records.has_nulls(index):
                continue
            bounds = stored.bounds(group, column)
            if bounds is not None and records.within(index, *bounds) == 0:
                return True
        return False

    def _in_group(self, records: TouchedRecords, number: int, group: int) -> pa.Table | None:
        stored = self.files[number][1]
        by_name = {column["name"]: column for column in self.columns}
        keys = stored.read(group, [by_name[name] for name in self.compared])
        numbers = records.of([keys.column(name).combine_chunks() for name in self.compared])
        at = pc.indices_nonzero(numbers.is_valid())
        if len(at):
            places = pc.add(at.cast(pa.int64()), stored.starts[group] + number * FILE_STEP)
            at = at.filter(pc.invert(self.view.deleted.hold(places)))
        if not len(at):
            return None
        shape = self.view.shape
        hidden = [*shape.keys] if self.pending is not None else []
        # Current may hold deleted records from a time when deletes were soft.
        others = [h.OPERATION] if shape.holds_deletes else []
        names = dict.fromkeys((*by_name, *hidden, *others))
        missing = [name for name in names if name not in keys.column_names]
        more = stored.read_at(group, [self.view.columns[name] for name in missing], at)
        rows = keys.take(at)
        for name in missing:
            rows = rows.append_column(name, more.column(name))
        if self.pending is not None:
            of_pending = self.pending.records.of(
                [rows.column(key).combine_chunks() for key in shape.keys]
            )
            rows = rows.filter(of_pending.is_null())
        if others:
            deletes = pc.is_in(rows.column(h.OPERATION), value_set=DELETES)
            rows = rows.filter(pc.invert(deletes))
        return rows.select(list(by_name))


def _are_readable(files: Iterable[TableFile], columns: Sequence[Column]) -> bool:
    defaults = any("initial-default" in column for column in columns)
    return not defaults and all(file.reads(columns) for file in files)


@contextmanager
def rows_by_value(
    target: DatasetTable, dataset: ResolvedDataset, snapshot: int
) -> Iterator[RowsByValue | str]:
    """The live view of a table at a snapshot, for the time of a block; or why Arrow cannot read it.

    `dataset` is that of the view. The text is a sentence.
    """
    table, shape = target.table, target.shape()
    store = table.reach().reads
    reason = str(store) if isinstance(store, str) else None
    if not shows_newest_rows(dataset, shape) or shape.bridged or not shape.keys:
        reason = "its view shows more than the newest changes"
    if reason is not None or isinstance(store, str):
        yield str(reason)
        return
    with table.keeping(snapshot):
        try:
            opened = _opened(target, shape, store, snapshot)
        except Py4JError as error:
            # It may have expired. Spark says what there is to say.
            opened = f"its files were not found: {str(error).splitlines()[0][:200]}"
        yield opened


def _opened(
    target: DatasetTable, shape: Shape, store: DataFiles, snapshot: int
) -> RowsByValue | str:
    table = target.table
    current = table.files(Partition.CURRENT, snapshot)
    changes = table.files(Partition.CHANGES, snapshot)
    if sum(file.size_bytes for file in current) > (_FAR_BYTES if store.far else _LOCAL_BYTES):
        return "it is so large that all executors look through it"
    if not all(is_read_by(store, file.path) for file in (*current, *changes)):
        return "a file is not of Parquet, or in another place"
    deletes = table.position_deletes(snapshot)
    if deletes is None:
        return "another engine deleted rows of it by their values"
    paths = [file.path for file in (*current, *changes)]
    try:
        deleted = deleted_places(store, paths, deletes, keep=True)
    except OSError as error:
        return f"a file was not read: {error}"
    if deleted is None:
        return "a file of deletes is in another place"
    if any(len(positions(deleted.places, n)) for n in range(len(current), len(paths))):
        return "pending changes were deleted"
    columns = {column["name"]: column for column in table.columns()}
    return RowsByValue(store, shape, columns, current, changes, deleted)
