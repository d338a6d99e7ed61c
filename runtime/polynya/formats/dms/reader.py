"""Reading the files of one table that AWS DMS wrote: they become one `DatasetBatch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from polynya.formats.batch import (
    BatchLimits,
    DatasetBatch,
    FilePart,
    FileProgress,
    Limits,
    Rejected,
)
from polynya.formats.dms.names import dms_file, kind_of
from polynya.formats.dms.order import placed
from polynya.formats.dms.rows import UNSENT, open_dms, reopen_dms
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.files.landed_file import landed_file
from polynya.formats.records.openers import builder_of
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Column
from polynya.formats.values.observed import Observed
from polynya.formats.values.rows import ColumnTypes, Evolving
from polynya.formats.values.settle import Extras, Placement, batch_of, settled
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import TIMESTAMP, DataType
from polynya.model.formats.dms import OPERATION
from polynya.store.object_store import ObjectStore


def read_dms(
    source: ObjectStore,
    dataset: ResolvedDataset,
    files: Sequence[FilePart],
    known: Mapping[str, DataType],
    limits: Limits,
) -> DatasetBatch:
    """Read the next batch.

    Args:
        source: store that the paths of `files` belong to.
        dataset: settings; `delivery` says how the files are written.
        files: what to read, in order; each from record `start` on.
        known: every source column so far.
        limits: the batch ends between two records when one of them is reached, and before a file of
            another format: text and typed values settle in different ways.

    Returns:
        Rows with operation L, I, U or D, rejected records and progress of the files. A file that
        cannot be read is one rejected record and complete.
    """
    buffer = RecordBuffer(limits)
    observed = Observed()
    kind: str | None = None
    for part in files:
        if buffer.is_full:
            break
        try:
            own = kind_of(part.path)
            if kind is not None and own != kind:
                break
            _take_file(source, dataset, part, buffer, observed)
            kind = own
        except UnreadableFileError as error:
            buffer.refuse_file(part.path, part.size, str(error), start=part.start)
    types = observed.column_types(known, _declared(dataset), dataset.policies.schema_evolution)
    return _to_batch(buffer, dataset, types, kind or "csv")


def _declared(dataset: ResolvedDataset) -> dict[str, DataType]:
    """What the configuration says of types: the time of the commit is always a time."""
    stamp = dataset.landing.delivery.timestamp_column
    return {**({} if stamp is None else {stamp: TIMESTAMP}), **dataset.events.columns}


def _take_file(
    source: ObjectStore,
    dataset: ResolvedDataset,
    part: FilePart,
    buffer: RecordBuffer,
    observed: Observed,
) -> None:
    named = dms_file(part.path)
    with landed_file(source, part.path, named.kind) as file:
        opened = open_dms(file, part.start, named, dataset)
        offset, complete = part.start, True
        for raw, parsed in opened.records:
            buffer.add(part.path, offset, raw, parsed)
            offset += 1
            if buffer.is_full:
                # Looking one record ahead: a file that ends exactly here is complete.
                complete = not list(islice(opened.records, 1))
                break
        buffer.progress[part.path] = FileProgress(part.size, offset, complete)
        # Not before: a file that turns out to be damaged has no say in the types.
        observed.learn(opened.types)


def reparse_dms(
    records: Sequence[Rejected], dataset: ResolvedDataset, known: Mapping[str, DataType]
) -> DatasetBatch:
    """Read quarantined records of files of one format again, as one batch; see `landing.replay`."""
    buffer = RecordBuffer(BatchLimits())
    kind = "csv"
    for record in records:
        named = dms_file(record.file)
        kind = named.kind
        try:
            for _, parsed in reopen_dms(record.raw, named, dataset).records:
                buffer.add(record.file, record.offset, record.raw, parsed)
        except UnreadableFileError as error:
            refused = RecordError("bad_csv", str(error))
            buffer.add(record.file, record.offset, record.raw, refused)
    # JSON spells binary, decimals and times as text: the types of the table say what they are.
    declared = {**({} if kind == "csv" else known), **_declared(dataset)}
    evolving = Evolving(dataset.policies.schema_evolution, frozenset(_declared(dataset)))
    types = ColumnTypes(known, declared, evolving=evolving)
    return _to_batch(buffer, dataset, types, kind)


def _to_batch(
    buffer: RecordBuffer, dataset: ResolvedDataset, types: ColumnTypes, kind: str
) -> DatasetBatch:
    """Take the operations out of the records, then type and place the rest."""
    files = [dms_file(path) for path in buffer.files]
    operations: list[str | None] = []
    for record, file in zip(buffer.records, files, strict=True):
        operation = record.pop(OPERATION, None)
        operations.append("L" if file.is_load else operation)
    unsent = _unsent(buffer) if dataset.landing.delivery.unsent_value is not None else []

    def place(columns: Mapping[str, Column]) -> Placement:
        return placed(columns, dataset, files, buffer.offsets)

    done = settled(buffer.records, types, builder_of(kind), place, needed=dataset.events.keys)
    return batch_of(buffer, done, dataset.events.keys, Extras(operations, unsent))


def _unsent(buffer: RecordBuffer) -> list[list[str] | None]:
    """Names of the columns that were not sent, for each record; their values become None."""
    found: list[list[str] | None] = []
    for record in buffer.records:
        names = [name for name, value in record.items() if value is UNSENT]
        record.update(dict.fromkeys(names))
        found.append(names or None)
    return found
