"""Reading a native dataset: json, csv, parquet, orc or avro files become one `DatasetBatch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from polynya.formats.batch import DatasetBatch, FilePart, FileProgress, Limits
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.landed_file import landed_file
from polynya.formats.records.openers import builder_of, file_opener
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Builder, Column
from polynya.formats.values.observed import Observed
from polynya.formats.values.rows import ColumnTypes
from polynya.formats.values.sequence import order_by, times_of
from polynya.formats.values.settle import Extras, Placement, batch_of, settled
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import DataType
from polynya.store.object_store import ObjectStore


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
    observed = Observed()
    for part in files:
        if buffer.is_full:
            break
        try:
            _take_file(source, dataset, part, buffer, observed)
        except UnreadableFileError as error:
            buffer.refuse_file(part.path, part.size, str(error), start=part.start)
    types = observed.column_types(known, dataset.events.columns, dataset.policies.schema_evolution)
    return to_batch(buffer, dataset, types, builder_of(dataset.landing.format), load=load)


def _take_file(
    source: ObjectStore,
    dataset: ResolvedDataset,
    part: FilePart,
    buffer: RecordBuffer,
    observed: Observed,
) -> None:
    encoding = dataset.landing.delivery.encoding
    with landed_file(source, part.path, dataset.landing.format, encoding=encoding) as file:
        opened = file_opener(dataset)(file, part.start)
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
        observed.learn(opened.types)


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

    def place(columns: Mapping[str, Column]) -> Placement:
        order = order_by(columns, dataset.events.sequence_by, [load] * count)
        times, faults = times_of(
            columns, dataset.events.timestamp, dataset.events.sequence_by, count
        )
        return Placement(
            order.identifiers, order.tails, [None] * count, times, {**faults, **order.faults}
        )

    done = settled(buffer.records, types, builder, place, needed=dataset.events.keys)
    return batch_of(buffer, done, dataset.events.keys, Extras(["L" if load else None] * count))
