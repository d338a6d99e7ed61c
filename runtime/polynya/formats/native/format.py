"""Native files behind the protocol of formats: each dataset names its files."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from typing_extensions import override

from polynya.formats.base import LandingFormat, ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, FileProgress
from polynya.formats.columnar import numbered, placed
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files import (
    Discovery,
    glob_pattern,
    matching,
    nothing_to_reload,
    relative_to,
    unread,
)
from polynya.formats.native.columnar import columnar_batch
from polynya.formats.opening import landed_file
from polynya.formats.records.openers import builder_of, file_opener, record_opener, text_format
from polynya.formats.values.batches import Extras, Placement, batch_of, settled
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Builder, TypedColumn
from polynya.formats.values.exact import NumberSpelling
from polynya.formats.values.formatted import time_formats
from polynya.formats.values.rows import ColumnTypes, Evolving, ObservedTypes
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask
from polynya.store.object_store import ObjectInfo

__all__ = ["placed"]


def unread_of(
    landed: Iterable[ObjectInfo], done: Mapping[str, FileProgress], dataset: ResolvedDataset
) -> Discovery:
    """What is to be read next of a dataset: all of its first full load, then its events."""
    everything, root = (
        landed if isinstance(landed, Sequence) else list(landed),
        dataset.landing.folder,
    )
    events = unread(matching(everything, root, dataset.landing.glob, done=done), done)
    if dataset.landing.initial_load is None:
        return events
    loads = unread(matching(everything, root, dataset.landing.initial_load, done=done), done)
    if loads.files:
        return replace(loads, load=True)
    changed = [file for file in loads.changed if file not in events.changed]
    return replace(events, changed=(*changed, *events.changed))


def is_load(file: str, dataset: ResolvedDataset) -> bool:
    """Whether the settings name a file as one of the first full load."""
    if dataset.landing.initial_load is None:
        return False
    path = relative_to(dataset.landing.folder, file)
    return glob_pattern(dataset.landing.initial_load).fullmatch(path) is not None


def full_load(
    landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
) -> tuple[ObjectInfo, ...]:
    """The files of `initial_load`, or of another glob. Raises OperationError without either."""
    wanted = glob or dataset.landing.initial_load
    if wanted is None:
        raise nothing_to_reload(dataset, "no `initial_load`")
    return tuple(matching(landed, dataset.landing.folder, wanted))


#: Formats whose files say nothing of types.
UNTYPED: Final = frozenset({"json", "csv", "excel"})


def read_native(request: ReadRequest) -> DatasetBatch:
    """Read the next batch; see `Format.read`. `request.load`: the rows are those of a full load."""
    batch = columnar_batch(request)
    return _read_exactly(request) if batch is None else batch


def _read_exactly(request: ReadRequest) -> DatasetBatch:
    dataset, known = request.table.dataset, request.table.schema
    buffer = RecordBuffer(request.limits)
    observed = ObservedTypes()
    for part in request.files:
        if buffer.is_full:
            break
        try:
            _take_file(request, part, buffer, observed)
        except UnreadableFileError as error:
            buffer.refuse_file(part, str(error))
    types = of_settings(
        observed.column_types(
            known,
            dataset.events.columns,
            dataset.policies.schema_evolution,
            excluded=dataset.events.except_columns,
        ),
        dataset,
    )
    builder = builder_of(dataset.landing.format, NumberSpelling.of(dataset.landing.delivery))
    return to_batch(buffer, dataset, types, builder, load=request.load)


def _take_file(
    request: ReadRequest, part: FilePart, buffer: RecordBuffer, observed: ObservedTypes
) -> None:
    dataset = request.table.dataset
    with landed_file(
        request.store, part.path, dataset.landing.format, delivery=dataset.landing.delivery
    ) as file:
        opened = file_opener(dataset)(file, part.start)
        buffer.take(part, opened.records)
        # Not before: a file that turns out to be damaged has no say in the types.
        observed.learn(opened.types)


def of_settings(types: ColumnTypes, dataset: ResolvedDataset) -> ColumnTypes:
    """What typing needs to know: in formats without types also those of numbers and times."""
    if dataset.landing.format not in UNTYPED:
        return types
    return replace(numbered(types, dataset), formats=time_formats(dataset))


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

    def place(columns: Mapping[str, TypedColumn]) -> Placement:
        return placed(columns, dataset, count=count, load=load)

    done = settled(buffer.records, types, builder, place, needed=dataset.events.keys)
    batch = batch_of(buffer, done, dataset.events.keys, Extras(["L" if load else None] * count))
    return replace(batch, of_load=load)


def groups_of(files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
    """Files of the first full load, whose records may lack a sequence, come first and apart."""
    loaded = {file for file in files if is_load(file, dataset)}
    return [group for group in (loaded, set(files) - loaded) if group]


def reread_native(request: RereadRequest) -> DatasetBatch:
    """Read records of one group again, as one batch."""
    dataset, known = request.table.dataset, request.table.schema
    written = text_format(dataset)
    opener = record_opener(dataset)
    buffer = RecordBuffer(BatchLimits())
    for record in request.records:
        for _, parsed in opener(io.BytesIO(record.raw), 0).records:
            buffer.add(record.file, record.offset, record.raw, parsed)
    # JSON spells binary, decimals and times as text: the types of the table say what they are.
    is_spelled = written != dataset.landing.format
    declared = {**known, **dataset.events.columns} if is_spelled else dict(dataset.events.columns)
    evolving = Evolving(
        dataset.policies.schema_evolution,
        frozenset(dataset.events.columns),
        excluded=frozenset(dataset.events.except_columns),
    )
    types = of_settings(ColumnTypes(known, declared, evolving=evolving), dataset)
    load = any(is_load(record.file, dataset) for record in request.records)
    builder = builder_of(written, NumberSpelling.of(dataset.landing.delivery))
    return to_batch(buffer, dataset, types, builder, load=load)


class NativeFormat(LandingFormat):
    """Formats of files; settings of the task reach it through its datasets."""

    def __init__(self, task: StorageTask) -> None:
        del task

    @override
    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """The files of `initial_load`, then those of `path`."""
        return unread_of(landed, done, dataset)

    @override
    def read(self, request: ReadRequest) -> ReadBatch:
        return ReadBatch({request.table.source: read_native(request)})

    @override
    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """Full load and events apart."""
        return groups_of(files, dataset)

    @override
    def reread(self, request: RereadRequest) -> ReadBatch:
        return ReadBatch({request.table.source: reread_native(request)})

    @override
    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """The files of `initial_load`."""
        return full_load(landed, dataset, glob)
