"""The events of one table in one batch, until they become rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from polynya.formats.base import KnownTable
from polynya.formats.batch import DatasetBatch, FileProgress, OfSource
from polynya.formats.debezium.connect_types import Typed
from polynya.formats.debezium.decode import DecodedEvent, EventDecoder
from polynya.formats.debezium.envelope import ChangeEvent
from polynya.formats.debezium.tables import TableSettings
from polynya.formats.errors import RecordError
from polynya.formats.sources.eras import LogEras
from polynya.formats.sources.key_names import KeyNames
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Column, Faults, build
from polynya.formats.values.observed import Observed
from polynya.formats.values.rows import TypedRecords, typed_records
from polynya.formats.values.sequence import order_by, times_of
from polynya.formats.values.table import Service, all_rejected, old_key_type, rows_table
from polynya.model.config.evolution import SchemaChange
from polynya.model.datatypes import DataType


@dataclass(slots=True)
class TableEvents:
    """Events of one table in the order of the files."""

    decoder: EventDecoder
    buffer: RecordBuffer
    events: list[DecodedEvent] = field(default_factory=list)
    observed: Observed = field(default_factory=Observed)
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
        columns: dict[str, Column] = {}
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

    def _old_keys(self, typed: TypedRecords, faults: Faults) -> Column:
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
            return Column(kind, pa.nulls(len(values), pa.struct([])), {})
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
