"""Reading a native dataset: json, csv, parquet, orc or avro files become one `DatasetBatch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from polynya.landing.batch import DatasetBatch, FilePart, FileProgress, Limits
from polynya.landing.buffer import RecordBuffer
from polynya.landing.columns import Faults
from polynya.landing.errors import UnreadableFileError
from polynya.landing.files import landed_file
from polynya.landing.formats import builder_of, opener_of
from polynya.landing.rows import Builder, ColumnTypes, Record, TypedRecords, typed_records
from polynya.landing.sequence import Order, order_by, times_of
from polynya.landing.table import Service, all_rejected, no_old_keys, rows_table
from polynya.model.datatypes import DataType, Void, unify
from polynya.model.task import ResolvedDataset
from polynya.store.object_store import ObjectStore

# Each pass hears fewer broken records; so many different breaks in one batch are enough.
_MAX_PASSES = 10


def read_native(
    source: ObjectStore,
    dataset: ResolvedDataset,
    files: Sequence[FilePart],
    known: Mapping[str, DataType],
    limits: Limits,
    *,
    load: bool = False,
) -> DatasetBatch:
    """Read the next batch.

    Args:
        source: store that the paths of `files` belong to.
        dataset: settings.
        files: what to read, in order; each from record `start` on.
        known: every source column so far.
        limits: the batch ends between two records when one of them is reached; its file is then not
            complete.
        load: the files belong to the first full load.

    Returns:
        Rows, rejected records and progress of the files that were touched. A file that cannot be
        read is one rejected record and complete; it never keeps the next file from being read.
    """
    buffer = RecordBuffer(limits)
    observed: dict[str, DataType] = {}
    for part in files:
        if buffer.is_full:
            break
        try:
            _take_file(source, dataset, part, buffer, observed)
        except UnreadableFileError as error:
            buffer.refuse_file(part.path, part.size, str(error), start=part.start)
    types = ColumnTypes(known, dataset.columns, observed)
    return to_batch(buffer, dataset, types, builder_of(dataset.format), load=load)


def _take_file(
    source: ObjectStore,
    dataset: ResolvedDataset,
    part: FilePart,
    buffer: RecordBuffer,
    observed: dict[str, DataType],
) -> None:
    with landed_file(source, part.path, dataset.format) as file:
        opened = opener_of(dataset.format)(file, part.start)
        offset = part.start
        complete = True
        records = iter(opened.records)
        for raw, parsed in records:
            buffer.add(part.path, offset, raw, parsed)
            offset += 1
            if buffer.is_full:
                # Looking one record ahead: a file that ends exactly here is complete.
                complete = not list(islice(records, 1))
                break
        buffer.progress[part.path] = FileProgress(part.size, offset, complete)
        # Not before: a file that turns out to be damaged has no say in the types.
        for name, kind in opened.types.items():
            observed[name] = unify(observed.get(name, Void()), kind) or observed[name]


@dataclass(frozen=True, slots=True)
class _Placed:
    """Typed records with their order and time."""

    typed: TypedRecords
    order: Order
    times: list[int | None]
    misplaced: Faults

    def refused(self) -> Faults:
        """Faults that no other type of a new column would mend."""
        names = {i: fault for i, fault in self.typed.faults.items() if fault[0] == "bad_column"}
        places = {i: fault for i, fault in self.misplaced.items() if i not in self.typed.faults}
        return {**places, **names}

    def faults(self) -> Faults:
        """Every fault, a column's before the order's that follow from it."""
        return {**self.misplaced, **self.typed.faults}


def to_batch(
    buffer: RecordBuffer,
    dataset: ResolvedDataset,
    types: ColumnTypes,
    builder: Builder,
    *,
    load: bool,
) -> DatasetBatch:
    """Type the records; settle order, time and accounting."""
    count = len(buffer.records)
    placed, faults = _settled(buffer.records, dataset, types, builder, load=load)
    service = Service(
        operations=["L" if load else None] * count,
        identifiers=placed.order.identifiers,
        tails=placed.order.tails,
        positions=[None] * count,
        times=placed.times,
        unsent=[None] * count,
    )
    schema = placed.typed.schema()
    old_keys = no_old_keys(dataset.keys, schema, count)
    return DatasetBatch(
        rows=rows_table(buffer, service, placed.typed.columns, old_keys, faults),
        schema=schema,
        keys=dataset.keys,
        rejected=all_rejected(buffer, faults),
        rows_in=count + len(buffer.rejected),
        rows_filtered=0,
        files=dict(buffer.progress),
    )


def _settled(
    records: Sequence[Record],
    dataset: ResolvedDataset,
    types: ColumnTypes,
    builder: Builder,
    *,
    load: bool,
) -> tuple[_Placed, Faults]:
    """Type the records so that a refused one has no say in the types of new columns.

    Otherwise one broken record at the start could settle a column for good, against all others.
    """
    refused: Faults = {}
    for _ in range(_MAX_PASSES):
        placed = _placed(records, dataset, types, builder, load=load)
        found = {i: fault for i, fault in placed.refused().items() if i not in refused}
        if not found:
            break
        refused.update(found)
        records = [{} if index in refused else record for index, record in enumerate(records)]
    return placed, {**placed.faults(), **refused}


def _placed(
    records: Sequence[Record],
    dataset: ResolvedDataset,
    types: ColumnTypes,
    builder: Builder,
    *,
    load: bool,
) -> _Placed:
    typed = typed_records(records, types, builder, needed=dataset.keys)
    order = order_by(typed.columns, dataset.sequence_by, [load] * len(records))
    times, time_faults = times_of(
        typed.columns, dataset.timestamp, dataset.sequence_by, len(records)
    )
    return _Placed(typed, order, times, {**time_faults, **order.faults})
