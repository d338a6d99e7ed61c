"""Debezium behind the protocol of formats: one file feeds many tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from typing import Any

import pyarrow as pa
from typing_extensions import override

from polynya.formats.base import KnownTable, LandingFormat, ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import (
    WHOLE_FILE,
    BatchLimits,
    DatasetBatch,
    FilePart,
    FileProgress,
    LoadPart,
    OfSource,
    ReadLimits,
    Rejected,
)
from polynya.formats.debezium.captured import CapturedRecords, LoadChunk
from polynya.formats.debezium.ddl import table_ddl
from polynya.formats.debezium.decode import DecodedEvent, EventDecoder
from polynya.formats.debezium.envelope import (
    ChangeEvent,
    Flattened,
    NoChange,
    as_truncate,
    open_envelope,
)
from polynya.formats.debezium.records import LandedRecords, record_of, records_of
from polynya.formats.debezium.tables import (
    DebeziumScope,
    SourceTables,
    TableSettings,
    as_known,
    scope_of,
    table_of,
)
from polynya.formats.debezium.types import Typed
from polynya.formats.eras import LogEras
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.files import (
    Discovery,
    matching,
    not_passed,
    nothing_to_reload,
    unread,
)
from polynya.formats.key_names import KeyNames
from polynya.formats.landed import is_landed_batch
from polynya.formats.opening import landed_file
from polynya.formats.records.columnar import RawRecord
from polynya.formats.values.arrow import Service, all_rejected, no_rows, old_key_type, rows_table
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Faults, TypedColumn, build
from polynya.formats.values.rows import ObservedTypes, TypedRecords, typed_records
from polynya.formats.values.sequence import order_by, times_of
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.evolution import SchemaChange
from polynya.model.config.task import StorageTask
from polynya.model.types import DataType
from polynya.store.object_store import ObjectInfo, ObjectStore


@dataclass(slots=True)
class TableEvents:
    """Events of one table in the order of the files."""

    decoder: EventDecoder
    buffer: RecordBuffer
    events: list[DecodedEvent] = field(default_factory=list)
    observed: ObservedTypes = field(default_factory=ObservedTypes)
    _seen: dict[str, Typed] | None = None
    _file: str | None = None
    _before: tuple[KeyNames, LogEras] | None = None

    def add(self, file: str, offset: int, raw: bytes, event: ChangeEvent) -> None:
        """Take one event, or note why it is refused."""
        if file != self._file:
            decoder = self.decoder
            self._file, self._before = file, (decoder.named.copy(), decoder.eras.copy())
        try:
            decoded = self.decoder.decode(event, raw)
        except RecordError as error:
            self.buffer.add(file, offset, raw, error)
            return
        self._observe()
        self.buffer.add(file, offset, raw, decoded.data)
        self.events.append(decoded)

    def forget(self, file: str) -> None:
        """Drop what was taken from the last file."""
        if file == self._file and self._before is not None:
            self.decoder.named, self.decoder.eras = self._before
            self._file = None
        count = self.buffer.forget(file)
        del self.events[len(self.events) - count :]

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the table was taken."""
        return not self.events and not self.buffer.rejected

    def _observe(self) -> None:
        if self.decoder.fields is self._seen:
            return
        self._seen = self.decoder.fields
        types = {name: kind for name, (kind, _) in self.decoder.fields.items()}
        self.observed.learn(types, in_place=True)

    def to_batch(
        self, known: Mapping[str, DataType], files: Mapping[str, FileProgress]
    ) -> DatasetBatch:
        """Type the rows and settle order, time and accounting."""
        settings, keys = self.decoder.settings, self.decoder.keys
        types = self.observed.column_types(
            known, settings.columns, settings.evolution, excluded=settings.excluded
        )
        typed = typed_records(self.buffer.records, types, needed=keys)
        faults: Faults = dict(typed.faults)
        old_keys = self._old_keys(typed, faults)
        service = self._service(typed, faults)
        self.buffer.progress.update(files)
        return DatasetBatch(
            rows=rows_table(self.buffer, service, typed.columns, old_keys, faults),
            schema=typed.schema(),
            keys=keys,
            rejected=all_rejected(self.buffer, faults),
            rows_in=len(self.events) + len(self.buffer.rejected),
            rows_filtered=0,
            files=dict(files),
            changes=(*typed.changes, *self._changes_of_source()),
            declared=typed.declared,
            met=typed.met,
            of_source=OfSource(tuple(self.decoder.named.known), tuple(self.decoder.eras.eras)),
        )

    def _changes_of_source(self) -> list[SchemaChange]:
        changes = (self.decoder.eras.change, self.decoder.named.change)
        return [change for change in changes if change is not None]

    def _service(self, typed: TypedRecords, faults: Faults) -> Service:
        identifiers = [None if event.place is None else event.place[0] for event in self.events]
        tails = [None if event.place is None else event.place[1] for event in self.events]
        positions: list[str | None] = [None] * len(self.events)
        if self.decoder.settings.sequence_by:
            positions = [_joined(event) for event in self.events]
            identifiers, tails = self._sequence(typed, faults)
        return Service(
            operations=[event.operation for event in self.events],
            identifiers=identifiers,
            tails=tails,
            positions=positions,
            times=self._times(typed, faults),
            unsent=[list(event.unsent) or None for event in self.events],
        )

    def _sequence(
        self, typed: TypedRecords, faults: Faults
    ) -> tuple[list[str | None], list[str | None]]:
        names = self.decoder.settings.sequence_by
        columns: dict[str, TypedColumn] = {}
        for index, name in enumerate(names):
            values = [event.sequence[index] for event in self.events]
            column = typed.columns.get(name)
            declared = name in self.decoder.settings.columns
            kind = None if column is None else column.type
            columns[name] = build(values, kind, declared=declared)
        loads = [event.operation == "L" for event in self.events]
        order = order_by(columns, names, loads)
        for column in columns.values():
            _merge(faults, column.faults)
        _merge(faults, order.faults)
        return order.identifiers, order.tails

    def _times(self, typed: TypedRecords, faults: Faults) -> list[int | None]:
        name = self.decoder.settings.timestamp
        if name is None:
            return [event.micros for event in self.events]
        times, time_faults = times_of(typed.columns, name, (), len(self.events))
        _merge(faults, time_faults)
        # A delete brings no columns but its key.
        return [
            event.micros if micros is None else micros
            for micros, event in zip(times, self.events, strict=True)
        ]

    def _old_keys(self, typed: TypedRecords, faults: Faults) -> TypedColumn:
        """The former keys, typed like the keys."""
        schema = typed.schema()
        kind = old_key_type(self.decoder.keys, schema)
        values = [
            None
            if event.old_key is None
            else {name: event.old_key.get(name) for name in self.decoder.keys}
            for event in self.events
        ]
        if not kind.fields:
            return TypedColumn(kind, pa.nulls(len(values), pa.struct([])), {})
        column = build(values, kind)
        _merge(faults, column.faults)
        return column


def decoder_of(settings: TableSettings, placeholder: str, known: KnownTable | None) -> EventDecoder:
    """What decodes the events of a table of which so much is known."""
    policies, keys = settings.evolution, known.keys if known else ()
    names = known.key_names if known else ()
    return EventDecoder(
        settings,
        placeholder,
        KeyNames.of(settings.keys, keys, names, policies.policy("change_key")),
        LogEras.of(known.eras if known else (), policies.policy("restart_log")),
    )


def _joined(event: DecodedEvent) -> str | None:
    return None if event.place is None else event.place[0] + (event.place[1] or "")


def _merge(faults: Faults, more: Faults) -> None:
    for index, fault in more.items():
        faults.setdefault(index, fault)


UNROUTED = ""
"""Name, among the tables of a request, of what has no table: its accounting has a position too."""


def read_debezium(request: ReadRequest, scope: DebeziumScope) -> ReadBatch:
    """Read the next batch of all tables.

    Limits count records of all tables together. Records that a table has (`KnownTable.done`) are
    neither given nor counted again. Duplicates after a restart of the capture are in the batch.

    Returns:
        A batch for each table with records or news, and for `request.only` also without one.
    """
    wanted = replace(scope, only=request.only, without=request.without)
    reading = EventReader(wanted, request.limits, request.tables)
    if request.only is not None:
        reading.table(request.only)
    for part in request.files:
        if reading.is_full:
            break
        reading.take_file(request.store, part)
    return reading.to_batch()


@dataclass(slots=True)
class EventReader:
    """The state of one read: events by table, and what belongs to none.

    Rows of a load that is compared with its table are not read together with events, nor with those
    of another load of the table.
    """

    scope: DebeziumScope
    limits: ReadLimits
    known: Mapping[str, KnownTable]
    unrouted: RecordBuffer = field(init=False)
    flattened: Flattened | None = field(init=False)
    sources: SourceTables = field(init=False)
    tables: dict[str, TableEvents] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    files: dict[str, FileProgress] = field(default_factory=dict)
    kept: dict[str, Callable[[bytes, int], bytes]] = field(default_factory=dict)
    included: dict[str, bool] = field(default_factory=dict)
    parts: dict[str, LoadPart] = field(default_factory=dict)
    taken: int = 0
    taken_bytes: int = 0
    _has_ended: bool = False
    _has_events: bool = False

    def __post_init__(self) -> None:
        self.unrouted = RecordBuffer(self.limits)
        self.sources = SourceTables(self.scope.called)
        form = self.scope.flattening
        self.flattened = None if form is None else Flattened(form)

    @property
    def is_full(self) -> bool:
        """Whether the batch ends here."""
        is_large = self.taken >= self.limits.max_rows or self.taken_bytes >= self.limits.max_bytes
        return is_large or self._has_ended

    def take_file(self, source: ObjectStore, part: FilePart) -> None:
        """Read one file, as far as the limits allow."""
        counters = self.counters.copy()
        chunks, has_events = dict[str, LoadChunk](), True
        try:
            with landed_file(source, part.path, "debezium", or_one_of=("avro", "parquet")) as file:
                offset, complete = part.start, True
                records = records_of(file, part.start, part.path, self.scope.registry)
                if isinstance(records, CapturedRecords):
                    chunks, loads = self._chunks(records), records.header.loads
                    has_events = not loads and records.header.events > 0
                    if not self._may_add(chunks, has_events=has_events):
                        self._has_ended = True
                        return
                if isinstance(records, CapturedRecords | LandedRecords):
                    self.kept[part.path] = records.whole
                if self.flattened is not None:
                    self.flattened.begin_file()
                for record in records:
                    self.take(part.path, offset, record)
                    offset += 1
                    if self.is_full:
                        # Looking one record ahead: a file that ends exactly here is complete.
                        complete = not list(islice(records, 1))
                        break
        except UnreadableFileError as error:
            self._forget(part.path)
            self.counters = counters
            self._refuse_file(part, str(error))
            return
        self.files[part.path] = part.read(offset, complete=complete)
        self._has_events |= has_events
        for name, chunk in chunks.items():
            if not self._is_done(name, part.path, offset - 1):
                self._add_chunk(name, chunk, complete=complete)

    def _chunks(self, records: CapturedRecords) -> dict[str, LoadChunk]:
        """What the header says of loads, by dataset."""
        loads = records.header.loads.items()
        named = {self.sources.dataset(table): chunk for table, chunk in loads}
        return {name: chunk for name, chunk in named.items() if self._includes(name)}

    def _may_add(self, chunks: Mapping[str, LoadChunk], *, has_events: bool) -> bool:
        """Whether a file may be read together with those before it."""
        if has_events:
            return not self.parts
        if chunks and self._has_events:
            return False
        known = ((self.parts[name], chunk) for name, chunk in chunks.items() if name in self.parts)
        return all(
            part.load == chunk.load and part.complete + 1 == chunk.chunk for part, chunk in known
        )

    def _add_chunk(self, name: str, chunk: LoadChunk, *, complete: bool) -> None:
        before = self.parts.get(name)
        self.parts[name] = LoadPart(
            load=chunk.load,
            first=chunk.chunk if before is None else before.first,
            complete=chunk.chunk if complete else chunk.chunk - 1,
            is_complete=chunk.is_last and complete,
            mode=chunk.mode,
        )

    def _forget(self, path: str) -> None:
        """Drop what this read took from a file that turned out to be damaged."""
        self.unrouted.forget(path)
        self.sources.forget(path)
        for table in self.tables.values():
            table.forget(path)
        asked = self.scope.only
        self.tables = {
            name: table
            for name, table in self.tables.items()
            if name == asked or not table.is_empty
        }

    def _refuse_file(self, part: FilePart, error: str) -> None:
        self.files[part.path] = part.read(part.start, complete=True)
        if not self._is_done(UNROUTED, part.path, part.start):
            refused = Rejected(part.path, WHOLE_FILE, "unreadable_file", error, b"")
            self.unrouted.rejected.append(refused)

    def _is_done(self, dataset: str, file: str, offset: int) -> bool:
        table = self.known.get(dataset)
        return table is not None and offset < table.done.get(file, 0)

    def take(self, file: str, offset: int, record: RawRecord) -> None:
        """Route one record."""
        raw, parsed = record
        self.taken += 1
        self.taken_bytes += len(raw)
        try:
            event = self._opened(parsed, file)
            name = self._dataset_of(event)
        except RecordError as error:
            if not self._is_done(UNROUTED, file, offset):
                self.unrouted.add(file, offset, raw, error)
            return
        if not isinstance(event, ChangeEvent):
            if event.ddl is None or not self._follow(file, offset, raw, event.ddl):
                self._filter(file, offset, event.counter)
        elif not self._includes(name):
            self._filter(file, offset, "not_included")
        elif not self._is_done(name, file, offset):
            self.table(name).add(file, offset, raw, event)

    def _includes(self, name: str) -> bool:
        known = self.included.get(name)
        if known is None:
            known = self.included[name] = self.scope.includes(name)
        return known

    def _dataset_of(self, event: ChangeEvent | NoChange) -> str:
        return (
            self.sources.dataset(table_of(event.source)) if isinstance(event, ChangeEvent) else ""
        )

    def _follow(self, file: str, offset: int, raw: bytes, statement: Mapping[str, Any]) -> bool:
        """Do what the policies say of a statement; tell whether it became an event of a dataset."""
        datasets = {*self.known, *self.tables}
        became = False
        for ddl in table_ddl(statement):
            name = self.sources.dataset(ddl.table)
            known = name in datasets and self.scope.includes(name)
            if not known and ddl.new is not None:
                self.sources.came_back(file, ddl.new)
            if not known or self._is_done(name, file, offset):
                continue
            policies = self.scope.settings(name).evolution
            if self.sources.follow((file, offset), ddl, policies, datasets):
                self.table(name).add(file, offset, raw, as_truncate(statement))
                became = True
        return became

    def _opened(self, parsed: dict[str, Any] | RecordError, file: str) -> ChangeEvent | NoChange:
        if isinstance(parsed, RecordError):
            raise parsed
        if self.flattened is None:
            return open_envelope(parsed)
        return self.flattened.open(parsed, file)

    def _filter(self, file: str, offset: int, counter: str) -> None:
        if not self._is_done(UNROUTED, file, offset):
            self.counters[counter] += 1

    def table(self, name: str) -> TableEvents:
        """The events of one table so far."""
        table = self.tables.get(name)
        if table is None:
            settings, placeholder = self.scope.settings(name), self.scope.placeholder
            known = self.known.get(name)
            decoder = decoder_of(settings, placeholder, known)
            table = self.tables[name] = TableEvents(decoder, RecordBuffer(self.limits))
        return table

    def to_batch(self) -> ReadBatch:
        """Type everything that was taken."""
        for name in self.sources.in_news:
            self.table(name)
        datasets = {
            name: self.sources.told(name, self._batch(name, table))
            for name, table in self.tables.items()
        }
        refused = [self._whole(record) for record in self.unrouted.rejected]
        unrouted = no_rows(self.files, refused, filtered=self.counters)
        return ReadBatch(datasets, unrouted, self.sources.left)

    def _batch(self, name: str, table: TableEvents) -> DatasetBatch:
        batch = table.to_batch(self._schema(name), self.files)
        batch = replace(batch, part=self.parts.get(name))
        if not self.kept:
            return batch
        raw_of = self._raw_of(batch)
        return replace(batch, rejected=tuple(map(self._whole, batch.rejected)), raw_of=raw_of)

    def _whole(self, one: Rejected) -> Rejected:
        """A rejected record with all that is needed to read it again."""
        whole = self.kept.get(one.file)
        return one if whole is None else replace(one, raw=whole(one.raw, one.offset))

    def _raw_of(self, batch: DatasetBatch) -> Callable[[str, int], bytes]:
        """Gives the same of a record that is refused later."""

        @cache
        def raws() -> dict[tuple[str, int], bytes]:
            columns = (batch.rows.column(name) for name in ("__file", "__offset", "__raw"))
            places = zip(*(column.to_pylist() for column in columns), strict=True)
            return {(file, offset): raw for file, offset, raw in places}

        def raw_of(file: str, offset: int) -> bytes:
            raw, whole = raws()[file, offset], self.kept.get(file)
            return raw if whole is None else whole(raw, offset)

        return raw_of

    def _schema(self, name: str) -> Mapping[str, DataType]:
        known = self.known.get(name)
        return {} if known is None else known.schema


def reread_debezium(request: RereadRequest, scope: DebeziumScope) -> ReadBatch:
    """Read lines again, as one batch."""
    # They are read again just because no table has them.
    known = {name: replace(table, done={}) for name, table in request.tables.items()}
    reading = EventReader(scope, BatchLimits(), known)
    raws = {(record.file, record.offset): record.raw for record in request.records}
    # What is refused again is kept as it was.
    reading.kept = {file: partial(_as_kept, raws, file) for file, _ in raws}
    for record in request.records:
        reading.take(record.file, record.offset, record_of(record.file, record.raw, scope.registry))
    batch = reading.to_batch()
    # What a record says of the columns was so in its time, and is not news of the source.
    parts = {name: replace(part, declared=None) for name, part in batch.datasets.items()}
    return replace(batch, datasets=parts)


def _as_kept(raws: Mapping[tuple[str, int], bytes], file: str, raw: bytes, offset: int) -> bytes:
    del raw
    return raws[file, offset]


class DebeziumFormat(LandingFormat):
    """Change events as lines of JSON, in Avro files, or as messages that a stream landed."""

    def __init__(self, task: StorageTask) -> None:
        self._root = task.landing.path
        self._scope = scope_of(task)

    @override
    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """All files of the task, by name. Landed batches of a stream land in that order."""
        del dataset
        files = not_passed(landed, done, is_landed_batch)
        return unread(matching(files, self._root, "**/*", done=done), done)

    @override
    def read(self, request: ReadRequest) -> ReadBatch:
        return read_debezium(request, as_known(self._scope, request.tables))

    @override
    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """All together: their raw bytes are JSON."""
        del dataset
        return [set(files)]

    @override
    def reread(self, request: RereadRequest) -> ReadBatch:
        return reread_debezium(request, as_known(self._scope, request.tables))

    @override
    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """Refused: a snapshot is not told from the events around it."""
        del landed, glob
        raise nothing_to_reload(
            dataset,
            "a capture has no files of a full load",
            fix="take a new snapshot with the connector: its records are upserts; docs/reload.md "
            "explains how to find deleted records",
        )
