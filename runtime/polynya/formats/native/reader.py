"""Reading a native dataset: json, csv, parquet, orc or avro files become one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from polynya.formats.base import ReadRequest
from polynya.formats.batch import DatasetBatch, FilePart
from polynya.formats.columnar.numbers import numbered
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.landed_file import landed_file
from polynya.formats.native.columnar.batch import columnar_batch
from polynya.formats.native.order import placed
from polynya.formats.records.openers import builder_of, file_opener
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Builder, Column
from polynya.formats.values.observed import Observed
from polynya.formats.values.rows import ColumnTypes
from polynya.formats.values.settle import Extras, Placement, batch_of, settled
from polynya.model.config.dataset import ResolvedDataset

#: Formats whose files say nothing of types.
UNTYPED: Final = frozenset({"json", "csv"})


def read_native(request: ReadRequest) -> DatasetBatch:
    """Read the next batch; see `Format.read`. `request.load`: the rows are those of a full load."""
    batch = columnar_batch(request)
    return _read_exactly(request) if batch is None else batch


def _read_exactly(request: ReadRequest) -> DatasetBatch:
    dataset, known = request.table.dataset, request.table.schema
    buffer = RecordBuffer(request.limits)
    observed = Observed()
    for part in request.files:
        if buffer.is_full:
            break
        try:
            _take_file(request, part, buffer, observed)
        except UnreadableFileError as error:
            buffer.refuse_file(part, str(error))
    types = with_numbers(
        observed.column_types(
            known,
            dataset.events.columns,
            dataset.policies.schema_evolution,
            excluded=dataset.events.except_columns,
        ),
        dataset,
    )
    return to_batch(buffer, dataset, types, builder_of(dataset.landing.format), load=request.load)


def _take_file(
    request: ReadRequest, part: FilePart, buffer: RecordBuffer, observed: Observed
) -> None:
    dataset = request.table.dataset
    encoding = dataset.landing.delivery.encoding
    with landed_file(request.store, part.path, dataset.landing.format, encoding=encoding) as file:
        opened = file_opener(dataset)(file, part.start)
        buffer.take(part, opened.records)
        # Not before: a file that turns out to be damaged has no say in the types.
        observed.learn(opened.types)


def with_numbers(types: ColumnTypes, dataset: ResolvedDataset) -> ColumnTypes:
    """What typing needs to know, with the type of numbers in formats that have no types."""
    return numbered(types, dataset) if dataset.landing.format in UNTYPED else types


def to_batch(
    buffer: RecordBuffer,
    dataset: ResolvedDataset,
    types: ColumnTypes,
    builder: Builder,
    *,
    load: bool,
) -> DatasetBatch:
    """Type and place the records; `load` tells that they belong to a full load."""
    count = len(buffer.records)

    def place(columns: Mapping[str, Column]) -> Placement:
        return placed(columns, dataset, count=count, load=load)

    done = settled(buffer.records, types, builder, place, needed=dataset.events.keys)
    batch = batch_of(buffer, done, dataset.events.keys, Extras(["L" if load else None] * count))
    return replace(batch, of_load=load)
