"""One line of a capture: its schemas, its headers, what it is, and which columns were not sent.

A line is `{"key", "value", "headers"}` as an engine or connector delivers it, or a bare value. Key,
value and header texts may each be wrapped as `{"schema", "payload"}`.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import md5
from typing import Any, Final

from polynya.formats.errors import RecordError
from polynya.formats.records.json_text import parse_value

#: The only entry of the line that a batch of Polynya's own captures begins with.
HEADER = "polynya_capture"
#: What a record of such a batch has beside its value: the text for columns that were not sent.
UNSENT = "polynya_unsent"
#: What Debezium writes unless it is told otherwise.
PLACEHOLDER: Final = "__debezium_unavailable_value"
#: Connectors whose sources send every column of a row that they send at all.
_SEND_ALL: Final = frozenset({"mysql", "mariadb"})
OLD_KEY_HEADER = "__debezium.oldkey"
_OPERATIONS = frozenset("rcudt")
_TRANSACTION_STATES = frozenset({"BEGIN", "END"})
_CONNECT_TYPES = (
    "struct", "string", "bytes", "boolean", "int8", "int16", "int32", "int64", "float", "float32",
    "double", "float64", "array", "map",
)  # fmt: skip
_TRANSACTION_FIELDS = frozenset({"status", "id", "event_count", "data_collections"})
_HEARTBEAT_FIELDS = frozenset({"ts_ms", "ts_us", "ts_ns"})


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A payload and its Kafka Connect schema; None where schemas are off."""

    schema: Mapping[str, Any] | None
    payload: Any


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """A change of one record of one table.

    Attributes:
        unsent: the text that means that a column was not sent; None: that of the settings.
    """

    key: Wrapped
    value: Mapping[str, Any]
    schema: Mapping[str, Any] | None
    headers: Any
    unsent: str | None = None

    @property
    def operation(self) -> str:
        """`r`, `c`, `u`, `d` or `t`."""
        return str(self.value["op"])

    @property
    def source(self) -> Mapping[str, Any]:
        """Where in the source the event happened."""
        source = self.value.get("source")
        return source if isinstance(source, dict) else {}


@dataclass(frozen=True, slots=True)
class NoChange:
    """A record that changes no row; `counter` names what it is.

    `ddl` is the value of one that reports a statement.
    """

    counter: str
    ddl: Mapping[str, Any] | None = None


def as_truncate(statement: Mapping[str, Any]) -> ChangeEvent:
    """The event of a table that a statement emptied, at the place of the statement."""
    nothing = Wrapped(None, None)
    return ChangeEvent(nothing, {**statement, "op": "t"}, None, None)


def open_envelope(record: Mapping[str, Any]) -> ChangeEvent | NoChange:
    """Tell what a line is.

    Raises:
        RecordError: unknown_op, or not_an_event for what Debezium never writes.
    """
    if len(record) == 1 and isinstance(record.get(HEADER), dict):
        return NoChange("batch_headers")
    if "value" in record and "op" not in record:
        if record["value"] is None:
            return NoChange("tombstones")
        key, value = unwrap(record.get("key")), unwrap(record["value"])
        headers, unsent = record.get("headers"), record.get(UNSENT)
    else:
        key, value, headers, unsent = Wrapped(None, None), unwrap(record), None, None
    payload = value.payload
    if not isinstance(payload, dict):
        raise RecordError("not_an_event", "the value is no object")
    counter = _counter(payload, record.get("destination"))
    if counter is not None:
        return NoChange(counter, payload if counter == "ddl_events" else None)
    operation = payload.get("op")
    if operation is None:
        raise RecordError("not_an_event", "the value has no `op`: it is no Debezium event")
    known_operation(operation)
    unsent = unsent if isinstance(unsent, str) else None
    return ChangeEvent(key, payload, value.schema, headers, unsent)


def known_operation(operation: Any) -> str:
    """An operation of Debezium. Raises RecordError unknown_op."""
    if not isinstance(operation, str) or operation not in _OPERATIONS:
        raise RecordError("unknown_op", f"operation {str(operation)[:20]!r} is not known")
    return operation


def unwrap(value: Any) -> Wrapped:
    """Separate a payload from its schema."""
    if isinstance(value, dict) and len(value) == 2 and "schema" in value and "payload" in value:
        schema = value["schema"]
        # A row may have two columns of these names.
        if schema is None or (isinstance(schema, dict) and schema.get("type") in _CONNECT_TYPES):
            return Wrapped(schema, value["payload"])
    return Wrapped(None, value)


def _counter(payload: Mapping[str, Any], destination: Any) -> str | None:
    """What a value that is no change event counts as, or None."""
    if "op" not in payload:
        if payload.keys() <= _TRANSACTION_FIELDS | _HEARTBEAT_FIELDS and _has_state(payload):
            return "transactions"
        if is_ddl(payload):
            return "ddl_events"
        only_times = payload and _HEARTBEAT_FIELDS.issuperset(payload)
        if only_times or is_heartbeat_topic(destination):
            return "heartbeats"
        return None
    if payload["op"] != "m":
        return None
    return "messages" if isinstance(payload.get("source", payload.get("message")), dict) else None


def is_transaction(payload: Mapping[str, Any]) -> bool:
    """Whether it is metadata of a transaction, and no row whose columns are called like that."""
    names = payload.keys()
    is_whole = _TRANSACTION_FIELDS <= names <= _TRANSACTION_FIELDS | _HEARTBEAT_FIELDS
    return is_whole and _has_state(payload)


def _has_state(payload: Mapping[str, Any]) -> bool:
    # Any JSON value may stand here, also one that cannot be in a set.
    return str(payload.get("status")) in _TRANSACTION_STATES and "id" in payload


def is_ddl(payload: Mapping[str, Any]) -> bool:
    """Whether it reports a statement, and is no row whose columns are called like that."""
    return isinstance(payload.get("source"), dict) and (
        "ddl" in payload or "tableChanges" in payload
    )


def is_heartbeat_topic(topic: Any) -> bool:
    """Whether a record comes from the topic of heartbeats."""
    return isinstance(topic, str) and "__debezium-heartbeat" in topic


def header_pairs(headers: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of headers, a list of pairs or an object; whatever else counts as none."""
    pairs = headers.items() if isinstance(headers, dict) else headers
    if not isinstance(pairs, Iterable):
        return
    for pair in pairs:
        if isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str):
            yield pair[0], pair[1]


def old_key(headers: Any) -> Wrapped | None:
    """The key that the record had before, from the header of a key change. Raises RecordError."""
    for name, text in header_pairs(headers):
        if name == OLD_KEY_HEADER:
            old = unwrap(parse_value(text.encode()) if isinstance(text, str) else text)
            if not isinstance(old.payload, dict):
                raise RecordError("bad_header", f"header {OLD_KEY_HEADER} holds no key")
            return old
    return None


class Unsent:
    """How Debezium says that the source did not send a column: one text, in the shape of its type.

    PostgreSQL does not log a large value that an update left as it was (TOAST). Debezium then
    writes `unavailable.value.placeholder`, as text or in another shape where a text would not fit
    the type. The shapes are those of `UnchangedToastedPlaceholder` in Debezium 3.5:

    | column | value of a column that was not sent |
    |---|---|
    | text, json, xml and all others | the text |
    | bytea | the bytes of the text, in Base64, in hexadecimal or as text |
    | arrays of text and json | a list with the text |
    | bytea[] | a list with its bytes |
    | int[], bigint[], date[] | a list of the bytes as numbers |
    | uuid[] | a list with the UUID (version 3) of the bytes |
    | hstore | a map from the text to the text, or its JSON |

    An empty placeholder has no shape: every value was sent.
    """

    def __init__(self, placeholder: str) -> None:
        self.placeholder = placeholder
        content = placeholder.encode()
        coded = {
            base64.b64encode(content).decode(),
            base64.urlsafe_b64encode(content).decode(),
            content.hex(),
        }
        named = str(uuid.UUID(bytes=md5(content, usedforsecurity=False).digest(), version=3))
        pair = (json.dumps(placeholder), json.dumps(placeholder))
        hstores = {"{" + ":".join(pair) + "}", "{" + ": ".join(pair) + "}"}
        self._texts = frozenset({placeholder, *coded, *hstores} if placeholder else ())
        self._elements = frozenset({placeholder, *coded, named} if placeholder else ())
        self._numbers = list(content)
        numbers = [text.join(map(str, content)) for text in (",", ", ")]
        marks = [placeholder, *coded, named, *numbers] if placeholder else []
        self._marks = tuple(mark.encode() for mark in marks)

    def is_mentioned(self, raw: bytes) -> bool:
        """Whether a record may have such a value: cheap, and asked of every record."""
        # A loop and no `any`, which costs more than the search.
        for mark in self._marks:  # noqa: SIM110
            if mark in raw:
                return True
        return False

    def has(self, value: Any) -> bool:
        """Whether a value says that its column was not sent."""
        if isinstance(value, str):
            return value in self._texts
        if isinstance(value, dict):
            return self._is_pair(list(value.items()))
        if not isinstance(value, list) or not value or not self.placeholder:
            return False
        if len(value) == 1 and isinstance(value[0], str):
            return value[0] in self._elements
        return value == self._numbers or self._is_pair(value)

    def _is_pair(self, pairs: list[Any]) -> bool:
        """Whether the only pair of a map is the text and the text."""
        only = pairs[0] if self.placeholder and len(pairs) == 1 else None
        return isinstance(only, list | tuple) and list(only) == [self.placeholder] * 2


def placeholder_of(connector: str, writer: str) -> str:
    """The placeholder of a process that captures, which no value of the database can be.

    `writer` is a random name of the process. Empty where the source sends all columns.
    """
    return "" if connector in _SEND_ALL else f"__polynya_unsent_{writer}"


def may_be_unsent(source: Mapping[str, Any], operation: str) -> bool:
    """Whether the source of an event leaves out columns at all.

    A binlog has all of a row, and so has a snapshot of PostgreSQL.
    """
    connector = source.get("connector")
    return connector not in _SEND_ALL and not (connector == "postgresql" and operation == "r")
