"""The masks of a column, and what each makes of its values. Nothing here knows events."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from polynya.formats.debezium.connect_types import decode_variable_decimal, unscaled_decimal
from polynya.formats.debezium.envelope import Unsent
from polynya.formats.values.exact import exact_decimal

Schema: TypeAlias = Mapping[str, Any]
"""A schema of Kafka Connect, as JSON has it."""

_FLOATS: Final = frozenset({"float", "double", "float32", "float64"})
_CONNECT_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_VARIABLE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"


@dataclass(frozen=True, slots=True)
class Drop:
    """The column is left out, of rows and of the schema."""


@dataclass(frozen=True, slots=True)
class Hash:
    """A keyed hash: equal values stay equal, and nobody without the key can try values."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("a hash without a key hides nothing")


@dataclass(frozen=True, slots=True)
class Truncate:
    """The first `length` characters."""

    length: int


@dataclass(frozen=True, slots=True)
class Replace:
    """One text, number, boolean or NULL for all rows."""

    value: str | int | float | bool | None


Mask: TypeAlias = Drop | Hash | Truncate | Replace


def mask_of(given: Any) -> Mask:
    """A mask as settings have it: `drop`, or an object with one of the other keys.

    Raises ValueError, which shows no key.
    """
    if given == "drop":
        return Drop()
    if isinstance(given, Mapping) and len(given) == 1:
        ((name, value),) = given.items()
        if name == "hash" and isinstance(value, Mapping) and isinstance(value.get("key"), str):
            return Hash(value["key"].encode())
        if name == "truncate" and isinstance(value, int) and value >= 0:
            return Truncate(value)
        if name == "replace" and (value is None or isinstance(value, str | int | float | bool)):
            return Replace(value)
    raise ValueError("a mask is `drop`, or one of `hash`, `truncate` and `replace`")


def masker(mask: Mask, schema: Schema, unsent: Unsent) -> Callable[[Any], Any] | None:
    """What becomes of the values of a column; None: it is left out.

    NULL stays, and so does what says that the column was not sent: there is nothing to hide.
    """
    if isinstance(mask, Drop):
        return None
    if isinstance(mask, Replace):
        return lambda _: mask.value
    if isinstance(mask, Hash):
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
