"""One change event into the values of its row: data, operation, place, time, former key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

from polynya.formats.debezium import types
from polynya.formats.debezium.envelope import ChangeEvent, Unsent, Wrapped, may_be_unsent, old_key
from polynya.formats.debezium.order import belongs_there, log_of, native_position
from polynya.formats.debezium.tables import TableSettings
from polynya.formats.debezium.types import Typed, fields_of, postgresql_intervals, unscaled_decimal
from polynya.formats.eras import LogEras
from polynya.formats.errors import RecordError
from polynya.formats.key_names import KeyNames
from polynya.formats.values.sequence import OrderPosition
from polynya.formats.values.times import in_range
from polynya.model.headers import READ
from polynya.model.types import Decimal as DecimalType

_FIRST_LOAD = frozenset(
    {"first", "first_in_data_collection", "true", "last_in_data_collection", "last"}
)
#: Schema of the field `source` of PostgreSQL's events.
_POSTGRESQL = "io.debezium.connector.postgresql.Source"
_OPERATIONS = {"c": "I", "u": "U", "d": "D", "t": "T"}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
TIME_UNITS = (("ts_us", 1, 1), ("ts_ns", 1, 1000), ("ts_ms", 1000, 1))

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecodedEvent:
    """What one event says about its row.

    Attributes:
        operation: L, I, U, D or T.
        data: values of the row; of the key only for a delete, none for a truncate.
        unsent: columns that the source did not send; they are None in `data`. READ for a row that
            was read, and not by a first load.
        place: native position.
        micros: source time.
        old_key: key before a change of key.
        sequence: values of `sequence_by`: from the row, from the row before a delete, or from the
            envelope.
    """

    operation: str
    data: dict[str, Any]
    unsent: tuple[str, ...]
    place: OrderPosition | None
    micros: int | None
    old_key: dict[str, Any] | None
    sequence: tuple[Any, ...]


@dataclass(slots=True)
class EventDecoder:
    """Decodes the events of one table; remembers the schema of the last one, they rarely change.

    Attributes:
        settings: of the table.
        placeholder: text that means that a column was not sent, in events that name no other.
        named: the keys of the table, held against those of the events.
        eras: of the log of its source.
        fields: types of the row by the last schema, empty while schemas are off.
    """

    settings: TableSettings
    placeholder: str
    named: KeyNames
    eras: LogEras
    fields: dict[str, Typed] = field(default_factory=dict)
    _schema: Mapping[str, Any] | None = None
    _unsent: Unsent = field(init=False)
    _decimals: Mapping[str, DecimalType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._unsent = Unsent(self.placeholder)
        self._decimals = {
            name: kind
            for name, kind in self.settings.columns.items()
            if isinstance(kind, DecimalType)
        }

    @property
    def keys(self) -> tuple[str, ...]:
        """Key columns; settled by the configuration, else by the first event."""
        return self.named.keys

    def decode(self, event: ChangeEvent, raw: bytes) -> DecodedEvent:
        """Decode one event. Raises RecordError."""
        if event.schema is not None:
            self._learn(event.schema)
        key = self._key(event)
        if event.operation != "t":
            self.named.met(tuple(key))
        data, unsent = self._row(event, key, raw)
        operation = _operation(event)
        if event.operation == "r" and operation != "L":
            unsent = (*unsent, READ)
        place, micros = self._place(event), source_micros(event)
        return DecodedEvent(
            operation=operation,
            data=data,
            unsent=unsent,
            place=self._in_era(event, place, micros),
            micros=micros,
            old_key=self._old_key(old_key(event.headers)),
            sequence=self._sequence(event, data),
        )

    def _learn(self, schema: Mapping[str, Any]) -> None:
        if schema is self._schema:
            return
        if schema == self._schema:
            # Each file has a copy of its own, which the events after it are compared with.
            self._schema = schema
            return
        try:
            row = next(item for item in schema["fields"] if item["field"] in {"after", "before"})
            # A document of MongoDB is one JSON text, its fields have no schema.
            self.fields = fields_of(row) if row.get("type") == "struct" else {}
            if any(item.get("name") == _POSTGRESQL for item in schema["fields"]):
                self.fields |= postgresql_intervals(row)
        except (ValueError, LookupError, TypeError, StopIteration) as error:
            raise RecordError("bad_schema", f"the event's schema cannot be read: {error}") from None
        self._schema = schema

    def _key(self, event: ChangeEvent) -> dict[str, Any]:
        """The key payload, decoded; empty for tables without one."""
        payload = event.key.payload
        if not isinstance(payload, dict):
            return {}
        if _is_document(event):
            return {"_id": types.identifier(payload.get("id"))}
        return self._typed(payload, event.key)

    def _typed(self, payload: Mapping[str, Any], wrapped: Wrapped | None = None) -> dict[str, Any]:
        fields = self.fields
        if wrapped is not None and wrapped.schema is not None:
            try:
                fields = fields_of(wrapped.schema)
            except ValueError as error:
                raise RecordError("bad_schema", f"the key's schema: {error}") from None
        if not fields and not self._decimals:
            return dict(payload)
        row = dict(payload)
        name = ""
        try:
            # In one loop, without a call of its own for each value: this is the hot one.
            for name, value in payload.items():
                if value is None:
                    continue
                if name in fields:
                    row[name] = fields[name][1](value)
                elif name in self._decimals and isinstance(value, str):
                    row[name] = decimal_text(value, self._decimals[name])
        except ValueError as error:
            raise RecordError("bad_value", f"column {name}: {error}") from None
        return row

    def _row(
        self, event: ChangeEvent, key: dict[str, Any], raw: bytes
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        if event.operation == "t":
            return {}, ()
        if event.operation == "d":
            return self._deleted(event, key), ()
        after = event.value.get("after")
        if _is_document(event) and after is not None:
            return types.document(after), ()
        if not isinstance(after, dict):
            raise RecordError("no_after", f"operation {event.operation} without the row after it")
        unsent: tuple[str, ...] = ()
        sent: Mapping[str, Any] = after
        placeholder = self.placeholder if event.unsent is None else event.unsent
        if placeholder != self._unsent.placeholder:
            self._unsent = Unsent(placeholder)
        if self._unsent.is_mentioned(raw) and may_be_unsent(event.source, event.operation):
            unsent = tuple(name for name, value in after.items() if self._unsent.has(value))
            sent = {name: None if name in unsent else value for name, value in after.items()}
        data = self._typed(sent)
        return data, self._keyed(event, key, data, unsent)

    def _keyed(
        self, event: ChangeEvent, key: Mapping[str, Any], data: dict[str, Any], unsent: Names
    ) -> Names:
        """Complete a row by its key: columns that only the key has, or that were not sent.

        Returns the columns that stay unsent. Raises RecordError for a row that another key names.
        """
        for name, value in key.items():
            if name in unsent or (name not in data and name in self.keys):
                data[name] = value
                unsent = tuple(column for column in unsent if column != name)
            elif name in data and data[name] != value:
                self._refuse_other_key(event, name)
        return unsent

    @staticmethod
    def _refuse_other_key(event: ChangeEvent, name: str) -> None:
        after, key = event.value["after"], event.key.payload
        # As they were written, where only one of both has a schema; NaN is not equal to itself.
        if repr(after[name]) != repr(key.get(name)):
            raise RecordError(
                "key_mismatch",
                f"column {name}: the key says {str(key.get(name))[:40]!r}, the row "
                f"{str(after[name])[:40]!r}; neither tells which row it is",
            )

    def _deleted(self, event: ChangeEvent, key: dict[str, Any]) -> dict[str, Any]:
        """Key columns of the row that went; without a key all that the source said of it."""
        before = self._before(event)
        if not self.keys:
            return before
        row = {name: key[name] if name in key else before.get(name) for name in self.keys}
        # A column of the key that the table does not have yet may be a renamed one.
        is_whole = bool(self.settings.keys) or row.keys() <= key.keys()
        return row if is_whole else {**key, **row}

    def _before(self, event: ChangeEvent) -> dict[str, Any]:
        before = event.value.get("before")
        if _is_document(event):
            return types.document(before) if before is not None else {}
        return self._typed(before) if isinstance(before, dict) else {}

    def _old_key(self, old: Wrapped | None) -> dict[str, Any] | None:
        return None if old is None else self._typed(old.payload, old)

    def _place(self, event: ChangeEvent) -> OrderPosition | None:
        try:
            place = native_position(event.value)
        except RecordError:
            if self.settings.sequence_by:
                # The configuration gives the order, the position would only break ties.
                return None
            raise
        if place is None and not self.settings.sequence_by:
            connector = str(event.source.get("connector"))[:40]
            raise RecordError("no_position", f"connector {connector!r} gives no position")
        return place

    def _in_era(
        self, event: ChangeEvent, place: OrderPosition | None, micros: int | None
    ) -> OrderPosition | None:
        """A place in the order of all eras of the log."""
        if place is None or self.settings.sequence_by:
            return place
        value, tells = event.value, belongs_there(event.value)
        # The connector's clock, which is not part of the row: whatever is no time is none.
        millis = value.get("ts_ms")
        seen = millis * 1000 if type(millis) is int else None
        return self.eras.placed(place, log_of(value), micros, seen, tells=tells)

    def _sequence(self, event: ChangeEvent, data: Mapping[str, Any]) -> tuple[Any, ...]:
        names = self.settings.sequence_by
        if not names:
            return ()
        before = self._before(event) if event.operation == "d" else {}
        return tuple(_sequence_value(name, event, (data, before)) for name in names)


def _is_document(event: ChangeEvent) -> bool:
    return event.source.get("connector") == "mongodb"


def _operation(event: ChangeEvent) -> str:
    if event.operation != "r":
        return _OPERATIONS[event.operation]
    marker = event.source.get("snapshot")
    return "L" if marker is True or marker in _FIRST_LOAD else "U"


def _sequence_value(name: str, event: ChangeEvent, rows: Sequence[Mapping[str, Any]]) -> Any:
    """A column of the row, else a path into the envelope such as `source.scn` or `ts_ms`."""
    for row in rows:
        if row.get(name) is not None:
            return row[name]
    value: Any = event.value
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def source_micros(event: ChangeEvent) -> int | None:
    """When the source made the change; the connector's clock where the source does not say.

    Raises:
        RecordError: bad_timestamp, outside the years 0001 to 9999.
    """
    own = whole_micros(event.source, TIME_UNITS)
    return whole_micros(event.value, TIME_UNITS[2:]) if own is None else own


def whole_micros(holder: Mapping[str, Any], units: Sequence[tuple[str, int, int]]) -> int | None:
    """The first time that a part of an event has, in microseconds. Raises as `source_micros`."""
    for name, factor, divisor in units:
        number = holder.get(name)
        if isinstance(number, str) and number.isascii() and number.isdigit():
            number = int(number[:20])
        # Some snapshots say 0 for a time that they do not know.
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            return _in_calendar(number * factor // divisor, name)
    return None


def _in_calendar(micros: int, name: str) -> int:
    try:
        return in_range(micros)
    except ValueError as error:
        raise RecordError("bad_timestamp", f"{name} of the event: {error}") from None


def decimal_text(text: str, kind: DecimalType) -> Decimal:
    """A declared decimal from its text, or from base64 of a `precise` capture without schemas.

    Text with a sign, a point or a length that base64 cannot have is a number. Other digits could
    be either: with scale 0 they are a number and base64 is refused, so that a precise column fails
    as a whole; with a scale they are refused.

    Raises:
        ValueError: neither, or ambiguous.
    """
    is_number = _NUMBER.fullmatch(text) is not None
    if is_number and (kind.scale == 0 or not text.isdigit() or len(text) % 4):
        return Decimal(text)
    if is_number:
        raise ValueError(f"{text!r} may be a number or base64; turn the capture's schemas on")
    if kind.scale == 0:
        raise ValueError(f"{text[:60]!r} is not a number; base64 needs the capture's schemas")
    return unscaled_decimal(text, kind.scale)
