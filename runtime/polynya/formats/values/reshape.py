"""A batch as if its columns had always been called and chosen as they are now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import OLD_KEY_FIELD, DatasetBatch

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
