"""Reading the files of one table that AWS DMS wrote: they become one batch."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.formats.base import ReadRequest
from polynya.formats.batch import DatasetBatch, FilePart
from polynya.formats.dms.order import placed
from polynya.formats.dms.rows import UNSENT, open_dms
from polynya.formats.dms.tables import dms_file, kind_of
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.landed_file import landed_file
from polynya.formats.records.openers import builder_of
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Column
from polynya.formats.values.observed import Observed
from polynya.formats.values.rows import ColumnTypes
from polynya.formats.values.settle import Extras, Placement, batch_of, settled
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import TIMESTAMP, DataType
from polynya.model.formats.dms import OPERATION


def read_dms(request: ReadRequest) -> DatasetBatch:
    """Read the next batch; see `Format.read`.

    The batch also ends before a file of another format: text and typed values settle in different
    ways. Operations are L, I, U and D.
    """
    dataset, known = request.table.dataset, request.table.schema
    buffer = RecordBuffer(request.limits)
    observed = Observed()
    kind: str | None = None
    for part in request.files:
        if buffer.is_full:
            break
        try:
            own = kind_of(part.path)
            if kind is not None and own != kind:
                break
            _take_file(request, part, buffer, observed)
            kind = own
        except UnreadableFileError as error:
            buffer.refuse_file(part, str(error))
    types = observed.column_types(
        known,
        declared_types(dataset),
        dataset.policies.schema_evolution,
        excluded=dataset.events.except_columns,
    )
    return to_batch(buffer, dataset, types, kind or "csv")


def _take_file(
    request: ReadRequest, part: FilePart, buffer: RecordBuffer, observed: Observed
) -> None:
    named = dms_file(part.path)
    with landed_file(request.store, part.path, named.kind) as file:
        opened = open_dms(file, part.start, named, request.table.dataset)
        buffer.take(part, opened.records)
        # Not before: a file that turns out to be damaged has no say in the types.
        observed.learn(opened.types)


def declared_types(dataset: ResolvedDataset) -> dict[str, DataType]:
    """What the configuration says of types: the time of the commit is always a time."""
    stamp = dataset.landing.delivery.timestamp_column
    return {**({} if stamp is None else {stamp: TIMESTAMP}), **dataset.events.columns}


def to_batch(
    buffer: RecordBuffer, dataset: ResolvedDataset, types: ColumnTypes, kind: str
) -> DatasetBatch:
    """Take the operations out of the records, then type and place the rest.

    `kind` is the format of the files.
    """
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
