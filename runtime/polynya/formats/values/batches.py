"""From records to one batch: types, order and faults are settled together, with row accounting.

Each format passes its own function that places typed records in an order (`Placer`); everything
else is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import OLD_KEY_FIELD, DatasetBatch
from polynya.formats.values.arrow import Service, all_rejected, no_old_keys, rows_table
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Builder, Faults, TypedColumn
from polynya.formats.values.rows import ColumnTypes, Record, TypedRecords, typed_records
from polynya.observe.trace import span

# Each pass hears fewer broken records; so many different breaks in one batch are enough.
_MAX_PASSES = 10


@dataclass(frozen=True, slots=True)
class Placement:
    """Order and time of the records of a batch, one entry a record; times in microseconds.

    `positions` are places that the source itself gives, None where it gives none. A record named
    in `faults` has no place.
    """

    identifiers: Sequence[str | None]
    tails: Sequence[str | None]
    positions: Sequence[str | None]
    times: Sequence[int | None]
    faults: Faults


#: typed columns of a batch → where its records stand
Placer: TypeAlias = Callable[[Mapping[str, TypedColumn]], Placement]


@dataclass(frozen=True, slots=True)
class SettledRecords:
    """Typed records with their place; `faults` names every record that is refused.

    `met` are the columns of all records, refused ones too.
    """

    typed: TypedRecords
    placement: Placement
    faults: Faults
    met: frozenset[str]


@span("type")
def settled(
    records: Sequence[Record],
    types: ColumnTypes,
    builder: Builder,
    place: Placer,
    *,
    needed: Sequence[str] = (),
) -> SettledRecords:
    """Type and place the records so that a refused one has no say in the types of new columns.

    Otherwise one broken record at the start could settle a column for good, against all others.
    """
    refused: Faults = {}
    met: frozenset[str] = frozenset()
    for _ in range(_MAX_PASSES):
        typed = typed_records(records, types, builder, needed=needed)
        met |= typed.met
        placement = place(typed.columns)
        found = {i: fault for i, fault in _final(typed, placement).items() if i not in refused}
        if not found:
            break
        refused.update(found)
        records = [{} if index in refused else record for index, record in enumerate(records)]
    # A column's fault comes before the order's that follows from it.
    return SettledRecords(typed, placement, {**placement.faults, **typed.faults, **refused}, met)


def _final(typed: TypedRecords, placement: Placement) -> Faults:
    """Faults that no other type of a new column would avoid."""
    names = {i: fault for i, fault in typed.faults.items() if fault[0] == "bad_column"}
    places = {i: fault for i, fault in placement.faults.items() if i not in typed.faults}
    return {**places, **names}


@dataclass(frozen=True, slots=True)
class Extras:
    """What only some formats know of their records.

    Attributes:
        operations: one entry a record; None lets the settings decide.
        unsent: columns that the source did not send, one entry a record; empty means none at all.
        old_keys: the column `__old`; None when no record changed its key.
        filtered: records that were read and left out, by the reason.
    """

    operations: Sequence[str | None]
    unsent: Sequence[Sequence[str] | None] = ()
    old_keys: TypedColumn | None = None
    filtered: Mapping[str, int] = field(default_factory=dict)


def batch_of(
    buffer: RecordBuffer, done: SettledRecords, keys: tuple[str, ...], extras: Extras
) -> DatasetBatch:
    """The batch of settled records and of what the files refused."""
    count = len(buffer.records)
    schema = done.typed.schema()
    place = done.placement
    service = Service(
        operations=extras.operations,
        identifiers=place.identifiers,
        tails=place.tails,
        positions=place.positions,
        times=place.times,
        unsent=extras.unsent or [None] * count,
    )
    old_keys = extras.old_keys or no_old_keys(keys, schema, count)
    filtered = sum(extras.filtered.values())
    return DatasetBatch(
        rows=rows_table(buffer, service, done.typed.columns, old_keys, done.faults),
        schema=schema,
        keys=keys,
        rejected=all_rejected(buffer, done.faults),
        rows_in=count + len(buffer.rejected) + filtered,
        rows_filtered=filtered,
        files=dict(buffer.progress),
        counters=dict(extras.filtered),
        changes=done.typed.changes,
        declared=done.typed.declared,
        met=done.met,
    )


_UNSENT = "__unsent"


def reshaped(
    batch: DatasetBatch, renames: Mapping[str, str], drops: Collection[str]
) -> DatasetBatch:
    """The batch with renamed columns (old name → new name) and without dropped ones.

    Records from before the renaming have their value under the old name.
    """
    rows = batch.rows
    for old, new in renames.items():
        both = pc.coalesce(rows.column(new), rows.column(old))
        rows = rows.drop_columns([new]).set_column(rows.column_names.index(old), new, both)
    gone = [name for name in drops if name in rows.column_names]
    schema = {
        renames.get(name, name): kind
        for name, kind in batch.schema.items()
        if name not in drops and name not in renames.values()
    }
    source = batch.source and {
        renames.get(name, name): kind for name, kind in batch.source.items() if name not in drops
    }
    named = _with_old_keys(_with_names(rows.drop_columns(gone), renames), renames)
    keys = tuple(renames.get(name, name) for name in batch.keys)
    return replace(batch, rows=named, schema=schema, source=source, keys=keys)


def _with_old_keys(rows: pa.Table, renames: Mapping[str, str]) -> pa.Table:
    """Former keys with the names of columns as they are now."""
    old = rows.column(OLD_KEY_FIELD)
    if not {field.name for field in old.type} & renames.keys():
        return rows
    fields = [field.with_name(renames.get(field.name, field.name)) for field in old.type]
    values = old.combine_chunks()
    parts = [values.field(index) for index in range(len(fields))]
    named = pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null())
    return rows.set_column(rows.column_names.index(OLD_KEY_FIELD), OLD_KEY_FIELD, named)


def _with_names(rows: pa.Table, renames: Mapping[str, str]) -> pa.Table:
    column = rows.column(_UNSENT)
    if column.null_count == len(column):
        return rows
    named = [names and [renames.get(name, name) for name in names] for names in column.to_pylist()]
    place = rows.column_names.index(_UNSENT)
    return rows.set_column(place, rows.schema.field(place), pa.array(named, column.type))


def without_truncates(batch: DatasetBatch) -> DatasetBatch:
    """The batch without the events that its source calls truncates; they count as filtered.

    The drop of the source table is none of them.
    """
    kept = batch.rows.filter(pc.invert(_are_truncates(batch)))
    ignored = batch.rows.num_rows - kept.num_rows
    if not kept.num_rows:
        # A filter that keeps nothing leaves columns without a chunk, which Spark does not take.
        kept = kept.schema.empty_table()
    counters = {**batch.counters, "ignored_truncates": ignored}
    return replace(batch, rows=kept, rows_filtered=batch.rows_filtered + ignored, counters=counters)


def truncates(batch: DatasetBatch) -> int:
    """Number of events that the source calls truncates."""
    return int(pc.sum(_are_truncates(batch)).as_py() or 0)


def _are_truncates(batch: DatasetBatch) -> pa.Array | pa.ChunkedArray:
    """Whether each row is a truncate, and not the drop of the source table."""
    found = pc.equal(pc.fill_null(batch.rows.column("__op"), ""), "T")
    if not batch.dropped:
        return found
    files, offsets = (batch.rows.column(name).to_pylist() for name in ("__file", "__offset"))
    drops = [place in batch.dropped for place in zip(files, offsets, strict=True)]
    return pc.and_not(found, pa.array(drops, pa.bool_()))
