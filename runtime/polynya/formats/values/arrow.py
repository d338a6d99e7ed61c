"""Putting service columns and typed source columns together into the rows of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from polynya.formats.batch import (
    OLD_KEY_FIELD,
    SERVICE_FIELDS,
    BatchLimits,
    DatasetBatch,
    FileProgress,
    Rejected,
)
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Faults, TypedColumn
from polynya.formats.values.evolve import variants_of, with_variants
from polynya.model.types import DataType, Struct, Void


@dataclass(frozen=True, slots=True)
class Service:
    """Values of the service columns, one entry a record; `times` in microseconds."""

    operations: Sequence[str | None]
    identifiers: Sequence[str | None]
    tails: Sequence[str | None]
    positions: Sequence[str | None]
    times: Sequence[int | None]
    unsent: Sequence[Sequence[str] | None]


def rows_table(
    buffer: RecordBuffer,
    service: Service,
    columns: Mapping[str, TypedColumn],
    old_keys: TypedColumn,
    faults: Faults,
) -> pa.Table:
    """The rows without faults, service columns first."""
    arrays: list[pa.Array] = []
    lists: list[Sequence[Any]] = [
        buffer.files,
        buffer.offsets,
        buffer.raws,
        service.operations,
        service.identifiers,
        service.tails,
        service.positions,
        service.times,
        _unsent(buffer, service, columns),
    ]
    for values, column in zip(lists, SERVICE_FIELDS, strict=True):
        arrays.append(pa.array(values, column.type))
    fields = [
        *SERVICE_FIELDS,
        pa.field(OLD_KEY_FIELD, old_keys.array.type),
        *(pa.field(name, column.array.type) for name, column in columns.items()),
    ]
    arrays += [old_keys.array, *(column.array for column in columns.values())]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    if not faults:
        return table
    keep = [index not in faults for index in range(len(buffer.records))]
    return table.filter(pa.array(keep, pa.bool_()))


def _unsent(
    buffer: RecordBuffer, service: Service, columns: Mapping[str, TypedColumn]
) -> Sequence[Sequence[str] | None]:
    variants = variants_of({name: column.type for name, column in columns.items()})
    if not variants:
        return service.unsent
    return [
        with_variants(names, variants, record) if names else None
        for names, record in zip(service.unsent, buffer.records, strict=True)
    ]


def no_rows(
    files: Mapping[str, FileProgress],
    rejected: Sequence[Rejected] = (),
    *,
    filtered: Mapping[str, int] = MappingProxyType({}),
    counters: Mapping[str, int] = MappingProxyType({}),
) -> DatasetBatch:
    """A batch without rows and columns: how far files were read, what was refused or left out.

    `filtered` are records by the reason why they were left out; `counters` count something else.
    """
    left_out = sum(filtered.values())
    service = Service([], [], [], [], [], [])
    return DatasetBatch(
        rows=rows_table(RecordBuffer(BatchLimits()), service, {}, no_old_keys((), {}, 0), {}),
        schema={},
        keys=(),
        rejected=tuple(rejected),
        rows_in=len(rejected) + left_out,
        rows_filtered=left_out,
        files=dict(files),
        counters={**filtered, **counters},
    )


def no_old_keys(keys: Sequence[str], schema: Mapping[str, DataType], count: int) -> TypedColumn:
    """The `__old` column of records that never change their key."""
    kind = old_key_type(keys, schema)
    return TypedColumn(kind, pa.nulls(count, arrow_type(kind)), {})


def old_key_type(keys: Sequence[str], schema: Mapping[str, DataType]) -> Struct:
    """A struct of the key columns."""
    return Struct(tuple((name, schema.get(name, Void())) for name in keys))


def all_rejected(buffer: RecordBuffer, faults: Faults) -> tuple[Rejected, ...]:
    """What the files and the rules refused, in the order of the files."""
    order = {path: index for index, path in enumerate(buffer.progress)}
    refused = buffer.rejected + [
        Rejected(buffer.files[index], buffer.offsets[index], rule, error, buffer.raws[index])
        for index, (rule, error) in faults.items()
    ]
    return tuple(sorted(refused, key=lambda record: (order.get(record.file, -1), record.offset)))
