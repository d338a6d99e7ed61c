"""A gathered load compared with Current in memory: the events of `reload.differences`.

Arrow reads both sides and looks the keys of the one up in the other, so nothing is shuffled, and
only the rows that differ reach the apply. Values are equal here when they are for Spark (see
`compared_rows`). What does not fit, or takes SQL, is left to Spark: the answer is then the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.in_memory import LOCAL_EVENTS
from polynya.lake.apply.in_memory_fold import sequences
from polynya.lake.apply.records import DELETES, TouchedRecords, is_exact
from polynya.lake.copy.compared_rows import events_of, hashes_of
from polynya.lake.copy.stored_values import unequal
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.deletes import deleted_places, positions
from polynya.lake.iceberg.reading import TableFile, each_read, is_read_by, stored_file
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import Reloading
from polynya.model import headers as h
from polynya.model.config.dataset import DELETING
from polynya.model.headers import Partition
from polynya.model.types import DOUBLE, FLOAT
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles

#: Rows of one side, and bytes of the data files of both, that fit into memory beside an apply.
MOST_ROWS: Final = 3_000_000
MOST_BYTES: Final = 128 * 1024 * 1024
#: Columns beside the data: of the load, of Current, and of Current where a row may be newer.
_OF_LOAD: Final = (h.OPERATION, h.TIMESTAMP)
_OF_CURRENT: Final = (h.OPERATION,)
_ORDER: Final = (h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL)


@span("compare load in memory")
def compared_load(
    target: DatasetTable,
    shape: Shape,
    snapshot: int,
    reloading: Reloading,
    columns: Collection[str],
) -> pa.Table | str:
    """The events that turn Current into the load, with `KEY_HASH`; or why Spark compares them.

    A record changed if one of `columns` differs.
    """
    if shape.replaces:
        return "a record replaces its elements"
    if not all(is_exact(shape.columns[key]) for key in shape.keys):
        return "a key has a type whose values are not compared exactly"
    kinds = (shape.columns[name] for name in shape.data)
    if not all(is_exact(kind) or kind in (FLOAT, DOUBLE) for kind in kinds):
        return "a column has a type that Spark compares"
    with target.table.keeping(snapshot):
        try:
            sides = _both_sides(target, shape, snapshot, reloading)
        except (OSError, pa.ArrowException) as error:
            return f"a file was not read: {error}"
    if isinstance(sides, str):
        return sides
    return _events(target, shape, sides, reloading, columns)


_LOADED: Final = pa.array(["L", "D"])
_NO_PLACES: Final = pa.array([], pa.int64())


def has_only_inserts(target: DatasetTable, shape: Shape, snapshot: int) -> bool | str:
    """Whether a gathered load has each key once, and no delete; or why Spark has to say so."""
    table = target.table
    store = table.reach().reads
    if isinstance(store, str):
        return store
    if not all(is_exact(shape.columns[key]) for key in shape.keys):
        return "a key has a type whose values are not compared exactly"
    files = table.files(Partition.RELOAD, snapshot)
    rows = sum(file.rows for file in files)
    if rows > MOST_ROWS or not all(is_read_by(store, file.path) for file in files):
        return f"{rows:,} rows are too many, or in another place"
    by_name = {column["name"]: column for column in table.columns()}
    columns = [by_name[name] for name in (h.OPERATION, *shape.keys)]
    try:
        if not all(stored_file(store, file.path).reads(columns) for file in files):
            return "a file has other types than the table, or lacks a value"
        stored = [stored_file(store, file.path) for file in files]
        (loaded,) = _read(store, [_SideFiles(list(enumerate(stored)), columns)], _NO_PLACES)
    except (OSError, pa.ArrowException) as error:
        return f"a file was not read: {error}"
    if not pc.all(pc.equal(loaded.column(h.OPERATION), "L"), min_count=0).as_py():
        return False
    return bool(TouchedRecords(_keys(loaded, shape)).count == loaded.num_rows)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Rows of the load and of Current: the data columns with `_OF_LOAD`, and with `_OF_CURRENT`.

    Those of Current have `_ORDER` too, unless all of them are older than the load.
    """

    loaded: pa.Table
    current: pa.Table


@dataclass(frozen=True, slots=True)
class _SideFiles:
    """Files of one side with their numbers, and the columns that are read of them."""

    files: Sequence[tuple[int, TableFile]]
    columns: Sequence[Mapping[str, Any]]

    def none(self) -> pa.Table:
        """None of its rows."""
        return pa.table(
            {one["name"]: pa.array([], arrow_type(one["type"])) for one in self.columns}
        )


def _both_sides(
    target: DatasetTable, shape: Shape, snapshot: int, reloading: Reloading
) -> _Sides | str:
    table = target.table
    store = table.reach().reads
    if isinstance(store, str):
        return store
    parts = (Partition.RELOAD, Partition.CURRENT)
    sides = [table.files(partition, snapshot) for partition in parts]
    files = [file for side in sides for file in side]
    rows = max(sum(file.rows for file in side) for side in sides)
    size = sum(file.size_bytes for file in files)
    if rows > MOST_ROWS or size > MOST_BYTES:
        return f"{rows:,} rows, {size:,} bytes are too many"
    if not all(is_read_by(store, file.path) for file in files):
        return "a file is not of Parquet, or in another place"
    deletes = table.position_deletes(snapshot)
    if deletes is None:
        return "another engine deleted rows by their values"
    deleted = deleted_places(store, [file.path for file in files], deletes)
    if deleted is None:
        return "a file of deletes is in another place"
    by_name = {column["name"]: column for column in table.columns()}
    columns = [by_name[name] for name in (*_OF_LOAD, *_ORDER, *shape.data)]
    defaults = any("initial-default" in column for column in columns)
    stored = [stored_file(store, file.path) for file in files]
    if defaults or not all(one.reads(columns) for one in stored):
        return "a file has other types than the table, or lacks a value"
    numbered = list(enumerate(stored))
    many = len(sides[0])
    order = () if _are_older(stored[many:], by_name, reloading) else _ORDER
    of_both = ((*_OF_LOAD, *shape.data), (*_OF_CURRENT, *order, *shape.data))
    both = [
        _SideFiles(some, [by_name[name] for name in names])
        for some, names in zip((numbered[:many], numbered[many:]), of_both, strict=True)
    ]
    return _Sides(*_read(store, both, deleted.places))


def _are_older(
    files: Sequence[TableFile], columns: Mapping[str, Mapping[str, Any]], reloading: Reloading
) -> bool:
    """Whether the ranges of their row groups say that all rows are older than the load."""

    def is_older(file: TableFile, group: int) -> bool:
        identifiers, tails = (file.bounds(group, columns[name]) for name in _ORDER)
        if identifiers is None or identifiers[1] > reloading.place:
            return False
        # Loads in one place differ in their tails.
        at_most = tails is not None and tails[1] <= reloading.tail
        return identifiers[1] < reloading.place or at_most

    return all(is_older(file, group) for file in files for group in file.groups)


def _read(store: DataFiles, sides: Sequence[_SideFiles], deleted: pa.Array) -> list[pa.Table]:
    """The live rows of each side, in any order; `deleted` has the places by number of the file."""
    parts = [
        (side, number, file, group)
        for side in sides
        for number, file in side.files
        for group in file.groups
    ]
    # The largest first: then no reader has to wait for another one for long.
    parts.sort(key=lambda part: part[2].footer.row_group(part[3]).num_rows, reverse=True)

    def live(part: tuple[_SideFiles, int, TableFile, int]) -> pa.Table:
        side, number, file, group = part
        rows, gone = file.read(group, side.columns), positions(deleted, number)
        if not len(gone):
            return rows
        start = file.starts[group]
        places = pa.arange(start, start + rows.num_rows)
        return rows.filter(pc.invert(pc.is_in(places, value_set=gone)))

    read = list(zip(parts, each_read(store, live, parts), strict=True))
    return [
        pa.concat_tables(
            [side.none(), *(rows for part, rows in read if part[0] is side)]
        ).combine_chunks()
        for side in sides
    ]


def _events(
    target: DatasetTable,
    shape: Shape,
    sides: _Sides,
    reloading: Reloading,
    columns: Collection[str],
) -> pa.Table | str:
    loaded, current = sides.loaded, sides.current
    is_row = pc.is_in(loaded.column(h.OPERATION), value_set=_LOADED)
    if not pc.all(is_row, min_count=0).as_py():
        loaded = loaded.filter(is_row)
    records = TouchedRecords(_keys(loaded, shape))
    if records.count < loaded.num_rows:
        return "a record was loaded twice"
    of_current = records.of(_keys(current, shape))
    stored_live = pc.invert(pc.is_in(current.column(h.OPERATION), value_set=DELETES))
    older = _older(current, reloading)
    at = records.places(of_current)
    live = pc.equal(loaded.column(h.OPERATION), "L")
    was_live, was_older = (
        pc.fill_null(known.take(at), fill) for known, fill in ((stored_live, False), (older, True))
    )
    differs = pa.repeat(pa.scalar(value=False), loaded.num_rows)
    for name in columns:
        differs = pc.or_(differs, unequal(loaded.column(name), current.column(name).take(at)))
    ends = pc.and_(pc.invert(live), was_live)
    begins = pc.and_(live, pc.invert(was_live))
    changes = pc.and_(pc.and_(live, was_live), differs)
    operation = pc.if_else(ends, "d", pc.if_else(begins, "i", pc.if_else(changes, "u", None)))
    moved = pc.and_(pc.is_valid(operation), was_older)
    parts = [loaded.set_column(*_at(loaded, h.OPERATION), operation).filter(moved)]
    if reloading.mode == DELETING:
        lacking = pc.and_(pc.and_(of_current.is_null(), stored_live), older)
        gone = current.filter(lacking)
        gone = gone.set_column(*_at(gone, h.OPERATION), pa.repeat("d", gone.num_rows))
        no_time = pa.nulls(gone.num_rows, loaded.schema.field(h.TIMESTAMP).type)
        parts.append(gone.append_column(h.TIMESTAMP, no_time).select(loaded.column_names))
    rows = pa.concat_tables(parts).combine_chunks()
    if rows.num_rows > LOCAL_EVENTS:
        return f"{rows.num_rows:,} rows differ"
    types = {name: rows.schema.field(name).type for name in shape.data}
    hashed = rows.append_column(h.KEY_HASH, _hashes(target, shape, rows))
    events = events_of(hashed, shape, types, reloading)
    # A loaded row may tell when it changed; a delete has the time of the load.
    load_time = events.column(h.TIMESTAMP)
    is_delete = pc.is_in(rows.column(h.OPERATION), value_set=DELETES)
    own_time = pc.coalesce(rows.column(h.TIMESTAMP).cast(load_time.type), load_time)
    return events.set_column(*_at(events, h.TIMESTAMP), pc.if_else(is_delete, load_time, own_time))


def _older(current: pa.Table, reloading: Reloading) -> pa.Array:
    """Whether each row is older than the load: what changed after it began is not."""
    if not set(_ORDER) <= set(current.column_names):
        return pa.repeat(pa.scalar(value=True), current.num_rows)
    newer = pc.greater(sequences(current), reloading.sequence)
    return pc.invert(pc.fill_null(newer, False))  # noqa: FBT003 - of Arrow


def _keys(rows: pa.Table, shape: Shape) -> list[pa.Array]:
    return [rows.column(key).combine_chunks() for key in shape.keys]


def _at(rows: pa.Table, name: str) -> tuple[int, str]:
    """What `set_column` takes of a column."""
    return rows.schema.get_field_index(name), name


def _hashes(target: DatasetTable, shape: Shape, rows: pa.Table) -> pa.Array:
    return hashes_of(target, shape, rows.select(list(shape.keys)))
