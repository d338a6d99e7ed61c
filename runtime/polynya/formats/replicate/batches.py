"""Records of Replicate files become a batch: pairs, old keys, order, types, accounting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polynya.formats.batch import DatasetBatch
from polynya.formats.records.openers import builder_of
from polynya.formats.replicate.order import placed
from polynya.formats.replicate.rows import Row, key_of, paired
from polynya.formats.values.arrow import old_key_type
from polynya.formats.values.batches import Extras, Placement, SettledRecords, batch_of, settled
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import TypedColumn, build
from polynya.formats.values.rows import ColumnTypes, Evolving
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.types import DataType


@dataclass(frozen=True, slots=True)
class DescribedBatch:
    """What the files of a batch say.

    Attributes:
        kind: `csv`, `json` or `parquet`.
        types: of the `.dfm` files; values are read as they say.
        observed: of the files themselves (Parquet).
        conflicts: types in the `.dfm` files that contradict those in `types`.
        columns: of the table in the newest `.dfm` file, None without one.
    """

    kind: str
    types: Mapping[str, DataType]
    observed: Mapping[str, DataType] = field(default_factory=dict)
    conflicts: Mapping[str, DataType] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None


def to_batch(
    buffer: RecordBuffer,
    dataset: ResolvedDataset,
    known: Mapping[str, DataType],
    keys: tuple[str, ...],
    facts: DescribedBatch,
    *,
    before: Mapping[int, Mapping[str, Any]] | None = None,
) -> DatasetBatch:
    """Pair, type and place the records; settle the accounting.

    `before` has before images that are not records of the batch, by the index of their update: a
    record that is read again brings its own.
    """
    rows, filtered = paired(buffer, keys, facts.kind)
    for row in rows:
        image = (before or {}).get(row.index)
        if image is not None and key_of(image, keys) != key_of(row.record, keys):
            row.old_key = key_of(image, keys)
    evolving = Evolving(
        dataset.policies.schema_evolution,
        frozenset(dataset.events.columns),
        {**facts.types, **facts.conflicts},
        facts.columns,
        frozenset(dataset.events.except_columns),
    )
    types = ColumnTypes(known, {**facts.types, **dataset.events.columns}, facts.observed, evolving)

    def place(columns: Mapping[str, TypedColumn]) -> Placement:
        return placed(columns, rows, dataset)

    records = [row.record for row in rows]
    done = settled(records, types, builder_of(facts.kind), place, needed=keys)
    extras = Extras(
        operations=["I" if row.moved else row.header.operation for row in rows],
        unsent=[[n for n in row.header.unsent if n not in keys] or None for row in rows],
        old_keys=_old_keys(rows, keys, done),
        filtered={"before_images": filtered} if filtered else {},
    )
    return batch_of(_kept(buffer, rows), done, keys, extras)


def _old_keys(
    rows: Sequence[Row], keys: tuple[str, ...], done: SettledRecords
) -> TypedColumn | None:
    """The former keys, typed like the keys; None when no record moved."""
    if not any(row.moved for row in rows):
        return None
    values = [
        None if row.old_key is None else dict(zip(keys, row.old_key, strict=True)) for row in rows
    ]
    column = build(values, old_key_type(keys, done.typed.schema()), declared=True)
    for index, fault in column.faults.items():
        done.faults.setdefault(index, fault)
    return column


def _kept(buffer: RecordBuffer, rows: Sequence[Row]) -> RecordBuffer:
    """The rows that stay, with what was rejected and how far the files were read."""
    kept = RecordBuffer(buffer.limits)
    for row in rows:
        kept.add(buffer.files[row.index], buffer.offsets[row.index], row.raw, row.record)
    kept.rejected = buffer.rejected
    kept.progress = buffer.progress
    return kept
