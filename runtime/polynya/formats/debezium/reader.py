"""Reading the files of a Debezium capture once for all tables of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any

from polynya.formats.base import KnownTable, ReadBatch, ReadRequest
from polynya.formats.batch import WHOLE_FILE, DatasetBatch, FilePart, FileProgress, Limits, Rejected
from polynya.formats.debezium.batches import TableEvents, decoder_of
from polynya.formats.debezium.captured.lines import CapturedRecords
from polynya.formats.debezium.ddl import table_ddl
from polynya.formats.debezium.envelope import ChangeEvent, NoChange, as_truncate, open_envelope
from polynya.formats.debezium.flat import Flattened
from polynya.formats.debezium.landed.records import LandedRecords
from polynya.formats.debezium.records import records_of
from polynya.formats.debezium.source_tables import SourceTables
from polynya.formats.debezium.tables import DebeziumScope, table_of
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.files.landed_file import landed_file
from polynya.formats.records.opened import RawRecord
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.table import no_rows
from polynya.model.datatypes import DataType
from polynya.store.object_store import ObjectStore

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
    reading = Reading(wanted, request.limits, request.tables)
    if request.only is not None:
        reading.table(request.only)
    for part in request.files:
        if reading.is_full:
            break
        reading.take_file(request.store, part)
    return reading.to_batch()


@dataclass(slots=True)
class Reading:
    """The state of one read: events by table, and what belongs to none."""

    scope: DebeziumScope
    limits: Limits
    known: Mapping[str, KnownTable]
    unrouted: RecordBuffer = field(init=False)
    flattened: Flattened | None = field(init=False)
    sources: SourceTables = field(init=False)
    tables: dict[str, TableEvents] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    files: dict[str, FileProgress] = field(default_factory=dict)
    kept: dict[str, Callable[[bytes, int], bytes]] = field(default_factory=dict)
    included: dict[str, bool] = field(default_factory=dict)
    taken: int = 0
    taken_bytes: int = 0

    def __post_init__(self) -> None:
        self.unrouted = RecordBuffer(self.limits)
        self.sources = SourceTables(self.scope.called)
        form = self.scope.flattening
        self.flattened = None if form is None else Flattened(form)

    @property
    def is_full(self) -> bool:
        """Whether the batch ends here."""
        return self.taken >= self.limits.max_rows or self.taken_bytes >= self.limits.max_bytes

    def take_file(self, source: ObjectStore, part: FilePart) -> None:
        """Read one file, as far as the limits allow."""
        counters = self.counters.copy()
        try:
            with landed_file(source, part.path, "debezium", or_one_of=("avro", "parquet")) as file:
                offset, complete = part.start, True
                records = records_of(file, part.start, part.path, self.scope.registry)
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
        refused = [self._whole(one) for one in self.unrouted.rejected]
        unrouted = no_rows(self.files, refused, filtered=self.counters)
        return ReadBatch(datasets, unrouted, self.sources.left)

    def _batch(self, name: str, table: TableEvents) -> DatasetBatch:
        batch = table.to_batch(self._schema(name), self.files)
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
