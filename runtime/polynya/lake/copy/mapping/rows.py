"""The rows of a mapped batch with their service columns, and the records that are set aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import OLD_KEY_FIELD, SERVICE_FIELDS, DatasetBatch, Rejected
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.copy.mapping.elements import Elements, Typed


def rows_of(
    batch: DatasetBatch,
    elements: Elements,
    columns: Mapping[str, Typed],
    said: Mapping[str, pa.Array],
) -> pa.Table:
    """Service columns of a batch for each row, but for those of `said`, then these columns.

    Raw bytes are left out where a record is several rows: `raw_of` has them.
    """
    schema = {name: one.kind for name, one in columns.items()}
    plain = batch.rows
    if elements.records is not None:
        place = plain.column_names.index("__raw")
        plain = plain.set_column(place, "__raw", pa.nulls(plain.num_rows, pa.binary()))
    service = {field.name: elements.of(plain.column(field.name)) for field in SERVICE_FIELDS}
    service["__tail"] = _tails(service["__tail"], elements.numbers)
    service |= {name: said[name] for name in service if name in said}
    old = said[OLD_KEY_FIELD]
    fields = [
        *SERVICE_FIELDS,
        pa.field(OLD_KEY_FIELD, old.type),
        *(pa.field(name, arrow_type(kind)) for name, kind in schema.items()),
    ]
    values = [*service.values(), old, *(one.array for one in columns.values())]
    return pa.Table.from_arrays(values, schema=pa.schema(fields))


def kept_rows(rows: pa.Table, stays: pa.Array) -> pa.Table:
    """The rows that stay."""
    kept = rows.filter(stays)
    # A filter that keeps nothing leaves columns without a chunk, which Spark does not take.
    return kept if kept.num_rows else kept.schema.empty_table()


def raw_of(batch: DatasetBatch) -> Callable[[str, int], bytes]:
    """Gives the raw bytes of a record of a batch, by its file and offset."""
    if batch.raw_of is not None:
        return batch.raw_of

    @cache
    def places() -> dict[tuple[str, int], int]:
        files, offsets = (batch.rows.column(n).to_pylist() for n in ("__file", "__offset"))
        return {place: index for index, place in enumerate(zip(files, offsets, strict=True))}

    def found(file: str, offset: int) -> bytes:
        return batch.rows.column("__raw")[places()[file, offset]].as_py() or b""

    return found


def _tails(tails: pa.Array, numbers: pa.Array | None) -> pa.Array:
    """Rows of one record stand one after the other, and before the next record.

    `!` sorts before everything that a source's tail has.
    """
    if numbers is None:
        return tails
    digits = pc.utf8_lpad(numbers.cast(pa.string()), 10, "0")
    later = pc.binary_join_element_wise(pc.fill_null(tails, ""), digits, "!")
    return pc.if_else(pc.equal(numbers, 0), tails, later)


def with_refused(
    batch: DatasetBatch, refused: Mapping[int, tuple[str, str]]
) -> tuple[Rejected, ...]:
    """The rejected records of a batch with more of its records, by index with rule and error."""
    if not refused:
        return batch.rejected
    wanted = pa.array([index in refused for index in range(batch.rows.num_rows)])
    rows = batch.with_raw(wanted).select(["__file", "__offset", "__raw"]).filter(wanted)
    found = [
        Rejected(row["__file"], row["__offset"], *refused[index], row["__raw"] or b"")
        for index, row in zip(sorted(refused), rows.to_pylist(), strict=True)
    ]
    order = {path: index for index, path in enumerate(batch.files)}
    both = [*batch.rejected, *found]
    return tuple(sorted(both, key=lambda one: (order.get(one.file, -1), one.offset)))
