"""Masks of columns, applied to event lines of loads and of the stream before anything is written.

| mask | value | type in the schema |
|---|---|---|
| drop | the column is left out | none |
| hash | HMAC-SHA256 of the value's text, 64 hex digits | string |
| truncate | the first characters of the value's text | string |
| replace | one constant for all rows, also for NULL | that of the constant |

Rows before and after a change, keys, and keys in headers are masked alike, so that a hashed key
stays one key. NULL stays NULL, except with `replace`. A value that the source did not send keeps
its placeholder: the reader takes the masked value of the previous row. If something cannot be
masked, that is an error, and its line is not written.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias

from polynya.formats.debezium.envelope import Unsent
from polynya.formats.debezium.types import decode_variable_decimal, unscaled_decimal
from polynya.formats.values.exact import exact_decimal
from polynya.model.error_catalogue.capture import (
    EVENT_NOT_MASKABLE,
    KEY_MASK_NOT_UNIQUE,
    MASKED_COLUMN_MISSING,
)
from polynya.model.errors import OperationError

Schema: TypeAlias = Mapping[str, Any]
"""A schema of Kafka Connect, as JSON has it."""

_FLOATS: Final = frozenset({"float", "double", "float32", "float64"})
_CONNECT_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_VARIABLE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"


@dataclass(frozen=True, slots=True)
class DropMask:
    """The column is left out, of rows and of the schema."""


@dataclass(frozen=True, slots=True)
class HashMask:
    """A keyed hash: equal values stay equal, and nobody without the key can try values."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("a hash without a key hides nothing")


@dataclass(frozen=True, slots=True)
class TruncateMask:
    """The first `length` characters."""

    length: int


@dataclass(frozen=True, slots=True)
class ReplaceMask:
    """One text, number, boolean or NULL for all rows."""

    value: str | int | float | bool | None


Mask: TypeAlias = DropMask | HashMask | TruncateMask | ReplaceMask


def mask_of(given: Any) -> Mask:
    """A mask as settings have it: `drop`, or an object with one of the other keys.

    Raises ValueError, which shows no key.
    """
    if given == "drop":
        return DropMask()
    if isinstance(given, Mapping) and len(given) == 1:
        ((name, value),) = given.items()
        if name == "hash" and isinstance(value, Mapping) and isinstance(value.get("key"), str):
            return HashMask(value["key"].encode())
        if name == "truncate" and isinstance(value, int) and value >= 0:
            return TruncateMask(value)
        if name == "replace" and (value is None or isinstance(value, str | int | float | bool)):
            return ReplaceMask(value)
    raise ValueError("a mask is `drop`, or one of `hash`, `truncate` and `replace`")


def masker(mask: Mask, schema: Schema, unsent: Unsent) -> Callable[[Any], Any] | None:
    """What becomes of the values of a column; None: it is left out.

    NULL stays, and so does what says that the column was not sent: there is nothing to hide.
    """
    if isinstance(mask, DropMask):
        return None
    if isinstance(mask, ReplaceMask):
        return lambda _: mask.value
    if isinstance(mask, HashMask):
        key = mask.key
        return lambda value: _shown(value, unsent, lambda: _hashed(key, value, schema))
    length = mask.length
    return lambda value: _shown(value, unsent, lambda: _cut(value, schema, length, unsent))


def _shown(value: Any, unsent: Unsent, hidden: Callable[[], str]) -> str | None:
    if value is None:
        return None
    return unsent.placeholder if unsent.has(value) else hidden()


def _hashed(key: bytes, value: Any, schema: Schema) -> str:
    # A lone surrogate is no character, but has to have a hash.
    data = _content(value, schema)
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def _cut(value: Any, schema: Schema, length: int, unsent: Unsent) -> str:
    data = _content(value, schema)
    text = data.hex() if isinstance(data, bytes) else data
    cut = text[:length]
    # A beginning that reads as "not sent" would bring back the value before.
    return cut[:-1] if unsent.has(cut) else cut


def _content(value: Any, schema: Schema) -> str | bytes:
    """What a value says, the same for all ways in which its event may spell it.

    Text is itself, and binary its bytes; numbers are plain and without trailing zeros; all others
    are JSON without spaces, with sorted names. What is not what its schema says counts as JSON.
    """
    try:
        special = _special(value, schema)
    except (ValueError, TypeError, ArithmeticError):
        special = None
    if special is not None:
        return special
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _special(value: Any, schema: Schema) -> str | bytes | None:
    name, kind = schema.get("name"), schema.get("type")
    if name == _CONNECT_DECIMAL:
        scale = int((schema.get("parameters") or {}).get("scale", 0))
        number = unscaled_decimal(value, scale) if isinstance(value, str) else exact_decimal(value)
        return _plain(format(number, "f"))
    if name == _VARIABLE_DECIMAL:
        return _plain(decode_variable_decimal(value))
    if kind in _FLOATS and isinstance(value, int | float) and not isinstance(value, bool):
        # Integers that are spelled without a point, and the negative zero, which equals zero.
        return repr(float(value) + 0.0)
    if kind == "bytes" and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            return None
    return None


def _plain(number: str) -> str:
    text = number.rstrip("0").rstrip(".") if "." in number else number
    return "0" if text in {"-0", ""} else text


_ROWS: Final = ("before", "after")
_KEY_HEADERS: Final = frozenset({"__debezium.oldkey", "__debezium.newkey"})
_SHAPE: Final = ("type", "name", "version", "fields", "items", "keys", "values", "parameters")
_TYPES: Final = {str: "string", bool: "boolean", int: "int64", float: "double"}


@dataclass(frozen=True, slots=True)
class Masked:
    """The masks of a table under one schema of its events.

    Attributes:
        schema: of the envelope, as masked events have it.
        hides_key: key values of the source must not be written anywhere either.
    """

    table: str
    schema: Schema
    hides_key: bool
    _masks: Mapping[str, Callable[[Any], Any] | None] = field(repr=False)

    def lines(self, lines: bytes) -> bytes:
        """Event lines of the table, masked. Raises OperationError, POLYNYA-GTW-082."""
        return b"\n".join(self.line(line) if line else line for line in lines.split(b"\n"))

    def line(self, line: bytes) -> bytes:
        """One event line, without its end. Raises OperationError, POLYNYA-GTW-082."""
        try:
            event = json.loads(line, parse_constant=_refuse)
            masked = json.dumps(self.event(event), separators=(",", ":"), allow_nan=False)
        except (ValueError, RecursionError) as error:
            # Without the cause: its text may quote the value.
            raise self._unreadable(type(error).__name__) from None
        return masked.encode()

    def event(self, event: Any) -> dict[str, Any]:
        """One event `{"key", "value", "headers"}` of the table, masked; the given one stays.

        Raises:
            OperationError: POLYNYA-GTW-082, it has another form than the events of a table.
        """
        if not isinstance(event, dict) or "value" not in event:
            raise self._unreadable("it is not an event")
        masked = {**event, "value": self._value(event["value"])}
        if "key" in event:
            masked["key"] = self._row(event["key"])
        if event.get("headers"):
            masked["headers"] = self._headers(event["headers"])
        return masked

    def _value(self, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict) or "op" not in value:
            raise self._unreadable("it is not a change of a row")
        rows = {name: self._row(value[name]) for name in _ROWS if name in value}
        return {**value, **rows}

    def _row(self, row: Any) -> Any:
        if row is None:
            return None
        if not isinstance(row, dict):
            raise self._unreadable("a row is not an object")
        masked = {}
        for name, value in row.items():
            if name not in self._masks:
                masked[name] = value
                continue
            mask = self._masks[name]
            if mask is not None:
                masked[name] = mask(value)
        return masked

    def _headers(self, headers: Any) -> list[list[Any]]:
        """Headers of a change of key; any other one may say anything, and is left out."""
        if not isinstance(headers, list):
            raise self._unreadable("its headers are no list")
        pairs = [pair for pair in headers if isinstance(pair, list) and len(pair) == 2]
        if len(pairs) != len(headers):
            raise self._unreadable("a header is no pair")
        return [[name, self._header(text)] for name, text in pairs if name in _KEY_HEADERS]

    def _header(self, text: Any) -> Any:
        if not isinstance(text, str):
            return self._row(text)
        try:
            row = self._row(json.loads(text, parse_constant=_refuse))
            return json.dumps(row, separators=(",", ":"), allow_nan=False)
        except (ValueError, RecursionError):
            raise self._unreadable("a header is not JSON") from None

    def _unreadable(self, reason: str) -> OperationError:
        return EVENT_NOT_MASKABLE(where=self.table, table=self.table, reason=reason)


def masked(
    table: str,
    schema: Schema,
    masks: Mapping[str, Mask],
    *,
    key: Sequence[str] = (),
    unsent: Unsent,
) -> Masked:
    """Masks of the columns of a table whose events have a schema.

    Args:
        table: its name, for errors.
        schema: Connect schema of the envelope, with `before` and `after`.
        masks: by the exact name of the column.
        key: columns of the primary key.
        unsent: how the capture says that a column was not sent.

    Raises:
        OperationError: POLYNYA-GTW-080, a column with a mask is not there: one that was renamed
            would be written as it is. POLYNYA-GTW-081, a mask would make one key of several.
    """
    columns = _columns(schema)
    for name, mask in masks.items():
        if name not in columns:
            raise MASKED_COLUMN_MISSING(where=f"{table}.{name}", table=table, column=name)
        if name in key and not isinstance(mask, HashMask):
            raise KEY_MASK_NOT_UNIQUE(where=f"{table}.{name}", table=table, column=name)
    return Masked(
        table,
        _masked_schema(schema, masks),
        any(name in masks for name in key),
        {name: masker(mask, columns[name], unsent) for name, mask in masks.items()},
    )


def _columns(schema: Schema) -> dict[str, Schema]:
    return {
        item["field"]: item
        for row in schema.get("fields", ())
        if row.get("field") in _ROWS
        for item in row.get("fields", ())
    }


def _masked_schema(schema: Schema, masks: Mapping[str, Mask]) -> Schema:
    def row(fields: Sequence[Schema]) -> list[Schema]:
        changed = (_masked_field(item, masks.get(item["field"])) for item in fields)
        return [item for item in changed if item is not None]

    return {
        **schema,
        "fields": [
            {**item, "fields": row(item.get("fields", ()))} if item.get("field") in _ROWS else item
            for item in schema.get("fields", ())
        ],
    }


def _masked_field(item: Schema, mask: Mask | None) -> Schema | None:
    """The schema of a column; defaults, allowed values and the like of a masked one go too."""
    if mask is None:
        return item
    if isinstance(mask, DropMask):
        return None
    optional = bool(item.get("optional"))
    kind: Mapping[str, Any] = {"type": "string"}
    if isinstance(mask, ReplaceMask):
        if mask.value is None:
            kind = {name: item[name] for name in _SHAPE if name in item}
            optional = True
        else:
            kind = {"type": _TYPES[type(mask.value)]}
    return {**kind, "optional": optional, "field": item["field"]}


def _refuse(_: str) -> NoReturn:
    raise ValueError("not JSON")
