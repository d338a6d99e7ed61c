"""The envelope of one Debezium event: schemas, headers, operation, and columns that were not sent.

A line is `{"key", "value", "headers"}` as an engine or connector delivers it, or a bare value. Key,
value and header texts may each be wrapped as `{"schema", "payload"}`.

The transform `ExtractNewRecordState` flattens events. `Flattened` takes the metadata that the
transform added to a row (`add.fields`) or to the headers (`add.headers`), and builds the envelope
again. All later code reads one kind of event.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any, Final

from polynya.formats.errors import RecordError
from polynya.formats.records.json import parse_value

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
        raise RecordError("not_an_event", "the value is not an object")
    counter = _counter_of_event(payload, record.get("destination"))
    if counter is not None:
        return NoChange(counter, payload if counter == "ddl_events" else None)
    operation = payload.get("op")
    if operation is None:
        raise RecordError("not_an_event", "the value has no `op`: it is not a Debezium event")
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


def _counter_of_event(payload: Mapping[str, Any], destination: Any) -> str | None:
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
    """Whether it reports a statement, and is not a row whose columns are called like that."""
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


DEFAULT_PREFIX: Final = "__"
#: What the transform calls the mark of a deleted row, whatever the prefix.
DELETED: Final = "__deleted"
_OWN: Final = frozenset({"op", "ts_ms", "ts_us", "ts_ns"})
_TRANSACTION: Final = frozenset({"id", "total_order", "data_collection_order"})
_SOURCE: Final = re.compile(
    "version|connector|name|snapshot|db|sequence|schema|table|collection|txId|lsn|xmin|server_id|"
    "gtid|file|pos|row|thread|query|change_lsn|commit_lsn|event_serial_no|scn|commit_scn|start_scn|"
    "ssn|rs_id|lcr_position|redo_thread|user_name|row_id|ord"
)
_HOLDERS: Final = ("source", "transaction")
_NONE: Final = type(None)
#: What may stand beside a value, and as what; a row may have columns of these names as well.
_PARTS: Final[Mapping[str, tuple[type, ...]]] = {
    "key": (dict, str, int, float, _NONE),
    "value": (dict, _NONE),
    "headers": (list, dict, _NONE),
    "topic": (str, _NONE),
    "destination": (str, _NONE),
    "partition": (int, _NONE),
    "offset": (int, _NONE),
    "timestamp": (int, str, _NONE),
}
#: The messages of a stream that landed.
_LANDED: Final = frozenset({"key", "value", "headers", "destination"})
#: A field of a source tells its connector where the record does not.
_TELLING: Final = (
    ("commit_lsn", "sqlserver"),
    ("lsn", "postgresql"),
    ("file", "mysql"),
    ("commit_scn", "oracle"),
    ("scn", "oracle"),
)
_SINK_FILE: Final = re.compile(r"(?P<topic>.+?)[+-][0-9]+[+-][0-9]+(\.[^/]*)?")

#: Where a piece of metadata belongs: ("", "op"), ("source", "lsn"), ("transaction", "id")
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Flattening:
    """How the transform `ExtractNewRecordState` was set up.

    Attributes:
        prefix: `add.fields.prefix`.
        added: `add.fields`; None: whatever has the prefix and a name that Debezium uses.
        wrapped: whether records have their row under `value`; None: each shows it.
    """

    prefix: str = DEFAULT_PREFIX
    added: tuple[str, ...] | None = None
    wrapped: bool | None = None

    def places(self, names: Sequence[str]) -> dict[str, Place]:
        """The metadata among the fields of a record."""
        if self.added is not None:
            asked = dict(_added(self.prefix, field) for field in self.added)
            found = {name: asked[name] for name in names if name in asked}
        else:
            found = {name: _guessed(name, self.prefix) for name in names}
        return {name: place for name, place in found.items() if place is not None}


def _added(prefix: str, text: str) -> tuple[str, Place | None]:
    """A field of `add.fields`, `[struct.]field[:new name]`: its name in the record, its place."""
    path, _, renamed = text.partition(":")
    holder, _, name = path.rpartition(".")
    own = prefix + (renamed or path.replace(".", "_"))
    if holder:
        # Others, such as `before`, are columns that the user wants.
        return own, (holder, name) if holder in _HOLDERS else None
    return own, (_holder(name), name)


def _holder(name: str) -> str:
    if name in _OWN:
        return ""
    return "transaction" if name in _TRANSACTION else "source"


def _guessed(name: str, prefix: str) -> Place | None:
    if not name.startswith(prefix):
        return None
    rest = name.removeprefix(prefix)
    for holder in _HOLDERS:
        if rest.startswith(f"{holder}_"):
            return holder, rest.removeprefix(f"{holder}_")
    known = rest in _OWN or rest in _TRANSACTION or _SOURCE.fullmatch(rest) is not None
    return (_holder(rest), rest) if known else None


@dataclass(slots=True)
class Flattened:
    """Opens the records of one read, in their order.

    A delete may be followed by a tombstone that says nothing new, or be nothing but a tombstone,
    which nobody can put in order. The record before it tells the two apart.
    """

    form: Flattening
    _plans: dict[tuple[str, ...], dict[str, Place]] = field(default_factory=dict)
    _schemas: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = (None, None)
    # The key of the record before if that was a delete, () if it was none, None if not known.
    _deleted: tuple[Any, ...] | None = ()

    def begin_file(self) -> None:
        """The next record is the first that is read of a file; what was before is not known."""
        self._deleted = None

    def open(self, record: Mapping[str, Any], path: str) -> ChangeEvent | NoChange:
        """Tell what a record is.

        Args:
            record: a row, or `{"key", "value", "headers", …}`; each may be `{"schema", "payload"}`.
            path: of its file; names the topic where the record does not.

        Raises:
            RecordError: unknown_op, lone_tombstone, ambiguous_record, or not_an_event.
        """
        deleted, self._deleted = self._deleted, ()
        if not self._is_wrapper(record):
            key, value, headers, topic = Wrapped(None, None), self._row(record), None, None
        else:
            key, value = unwrap(record.get("key")), self._row(record["value"])
            headers = record.get("headers")
            topic = record.get("topic") or record.get("destination")
        metadata = self._of_headers(headers)
        if value.payload is None and metadata.get("", {}).get("op") != "d":
            if deleted is None or deleted == (key.payload,):
                return NoChange("tombstones")
            raise RecordError(
                "lone_tombstone",
                "a tombstone without the deleted row before it has no order; "
                "set `delete.tombstone.handling.mode` of the transform to `rewrite`",
            )
        row = key.payload if value.payload is None else value.payload
        if not isinstance(row, dict):
            raise RecordError("not_an_event", "the value is not an object")
        counter = _counter_of_row(row, topic)
        if counter is not None:
            return NoChange(counter)
        event = self._event(key, row, value.schema, metadata, headers)
        _complete(event.value["source"], topic if isinstance(topic, str) else _topic_of(path))
        self._deleted = (key.payload,) if event.operation == "d" else ()
        return event

    def _is_wrapper(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is a message with its row under `value`, and no row of such columns.

        Raises:
            RecordError: ambiguous_record, when it can be either.
        """
        if record.keys() == _LANDED:
            return True
        if "value" not in record or not _PARTS.keys() >= record.keys():
            return False
        if self.form.wrapped is not None:
            return self.form.wrapped
        value, key = record["value"], record.get("key")
        has_types = all(isinstance(one, _PARTS[name]) for name, one in record.items())
        if not has_types:
            return False
        if isinstance(record.get("headers"), list | dict):
            return True
        if value is None and isinstance(key, str | int | float):
            # Keys of Debezium are objects, so this one is a column, and the value is NULL.
            if "topic" not in record and "destination" not in record:
                return False
        elif isinstance(key, dict):
            names = unwrap(key).payload
            if value is None or (isinstance(names, dict) and names.keys() <= value.keys()):
                return True
        if value is not None and self._tells(value):
            return True
        raise RecordError(
            "ambiguous_record",
            f"a row with the columns {', '.join(record)}, or a message with a row under `value`; "
            "say which: `wrapped: true` or `false` under `landing`",
        )

    def _row(self, value: Any) -> Wrapped:
        """A row, perhaps with its schema. Raises RecordError ambiguous_record."""
        found = unwrap(value)
        row = found.payload
        if found.schema is not None or row is value or not isinstance(row, dict):
            return found
        if self.form.wrapped is False:
            return Wrapped(None, value)
        if self.form.wrapped or DELETED in row or self._places(tuple(row)):
            return found
        raise RecordError(
            "ambiguous_record",
            "a row with the columns schema and payload, or a row without a schema under `payload`; "
            "say which: `wrapped: false` or `true` under `landing`",
        )

    def _tells(self, row: Mapping[str, Any]) -> bool:
        """Whether the transform added something to what may be a row, or a schema is beside it."""
        return DELETED in row or bool(self._places(tuple(row))) or unwrap(row).payload is not row

    def _of_headers(self, headers: Any) -> dict[str, dict[str, Any]]:
        """Metadata by holder, out of the headers."""
        values: dict[str, Any] = {}
        for name, value in header_pairs(headers):
            try:
                values[name] = parse_value(value.encode()) if isinstance(value, str) else value
            except RecordError:
                values[name] = value
        return _by_holder(values, self._places(tuple(values)))

    def _places(self, names: tuple[str, ...]) -> dict[str, Place]:
        places = self._plans.get(names)
        if places is None:
            places = self._plans[names] = self.form.places(names)
        return places

    def _event(
        self,
        key: Wrapped,
        row: Mapping[str, Any],
        schema: Mapping[str, Any] | None,
        metadata: dict[str, dict[str, Any]],
        headers: Any,
    ) -> ChangeEvent:
        places = self._places(tuple(row))
        own = _by_holder(row, places)
        envelope: dict[str, Any] = {
            # Under their own names too, for `sequence_by`.
            **{name: row[name] for name in places},
            **metadata.get("", {}),
            **own.get("", {}),
            **{holder: {**metadata.get(holder, {}), **own.get(holder, {})} for holder in _HOLDERS},
        }
        operation = "d" if _is_true(row.get(DELETED)) else known_operation(envelope.get("op", "u"))
        data = {name: one for name, one in row.items() if name not in places and name != DELETED}
        envelope["op"] = operation
        envelope["before" if operation == "d" else "after"] = data
        return ChangeEvent(key, envelope, self._schema(schema, {*places, DELETED}), headers)

    def _schema(
        self, schema: Mapping[str, Any] | None, added: set[str]
    ) -> Mapping[str, Any] | None:
        """The schema of an envelope around the row; the same object while the row's stays."""
        if schema is None or not isinstance(schema.get("fields"), list):
            return schema
        known, made = self._schemas
        if made is None or (schema is not known and schema != known):
            fields = [
                item
                for item in schema["fields"]
                if not isinstance(item, dict) or str(item.get("field")) not in added
            ]
            made = {"fields": [{**schema, "field": "after", "fields": fields}]}
            self._schemas = (schema, made)
        return made


def _by_holder(values: Mapping[str, Any], places: Mapping[str, Place]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, (holder, own) in places.items():
        value = unwrap(values[name]).payload
        if value is not None:
            found.setdefault(holder, {})[own] = value
    return found


def _is_true(mark: Any) -> bool:
    return mark is True or (isinstance(mark, str) and mark.lower() == "true")


def _counter_of_row(row: Mapping[str, Any], topic: Any) -> str | None:
    """What a value counts as that the transform let pass, being no change of a row; or None."""
    if is_transaction(row):
        return "transactions"
    if is_ddl(row):
        return "ddl_events"
    return "heartbeats" if is_heartbeat_topic(topic) else None


def _complete(source: dict[str, Any], topic: str | None) -> None:
    """What the rest needs to know of a source and the record does not say."""
    parts = (topic or "").split(".")
    if len(parts) > 1:
        source.setdefault("table", parts[-1])
        if "db" not in source:
            source.setdefault("schema", parts[-2])
    if source.get("connector") == "mongodb":
        # Its rows are no documents as text any more, which this name stands for.
        del source["connector"]
    telling = next((name for one, name in _TELLING if source.get(one) is not None), None)
    if telling is not None:
        source.setdefault("connector", telling)


def _topic_of(path: str) -> str | None:
    """The topic that a sink wrote into a path: `topics/<topic>/…/<topic>+0+0000000042.avro`."""
    *folders, name = path.split("/")
    match = _SINK_FILE.fullmatch(name)
    if match is not None and "." in match["topic"]:
        return match["topic"]
    return next((folder for folder in reversed(folders) if "." in folder), None)
