"""Exact conversion of one value to one type: the same value, or a ValueError with the reason.

A value of the wrong Python type is a ValueError as well: for the caller both are a bad record.
`fit` takes JSON and Python values and changes only the representation of a number. `parse` is for
declared columns and for text formats: it also reads numbers, dates and times from text. Both return
what `pyarrow.array` takes: microseconds for timestamps, days for dates.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from polynya.formats.values import times
from polynya.model.config.settings import DEFAULT_DECIMAL, Delivery
from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)
from polynya.model.types import Decimal as DecimalType

_DIGITS = 1000
#: Holds every digit of a number that is read; longer ones are refused.
_WIDE = Context(prec=_DIGITS)
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_BOUNDS: dict[DataType, int] = {INT: 1 << 31, BIGINT: 1 << 63}
#: The smallest double that rounds to infinity as a float of 32 bits. Those just below it are the
#: largest float: Java writes that as 3.4028235E38, which is more than it.
FLOAT32_END = 2.0**128 - 2.0**103


@dataclass(frozen=True, slots=True)
class NumberSpelling:
    """How texts spell numbers: what stands before the decimal places, and between the thousands.

    `thousands` is "" for none.
    """

    decimal: str = DEFAULT_DECIMAL
    thousands: str = ""

    @classmethod
    def of(cls, delivery: Delivery) -> NumberSpelling:
        """The spelling that the settings of a task name."""
        return cls(delivery.decimal_character, delivery.thousands_separator or "")

    @property
    def is_usual(self) -> bool:
        """Whether numbers are spelled as in JSON."""
        return self.decimal == DEFAULT_DECIMAL and not self.thousands

    def number(self, text: str) -> str | None:
        """The usual spelling of a number, None for any other text."""
        if len(text) > _DIGITS or _separated(self.decimal, self.thousands).fullmatch(text) is None:
            return None
        if self.thousands:
            text = text.replace(self.thousands, "")
        return text.replace(self.decimal, ".")

    def __str__(self) -> str:
        """As a message names it."""
        thousands = f" and `{self.thousands}` between thousands" if self.thousands else ""
        return f"`{self.decimal}` before the decimal places{thousands}"


USUAL: Final = NumberSpelling()


@lru_cache(maxsize=16)
def _separated(decimal: str, thousands: str) -> re.Pattern[str]:
    grouped = rf"[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})++|" if thousands else ""
    whole = rf"(?:{grouped}[0-9]++)"
    places = rf"(?:{re.escape(decimal)}[0-9]++)"
    return re.compile(rf"[+-]?(?:{whole}{places}?|{places})(?:[eE][+-]?[0-9]{{1,4}})?")


def shown(value: object) -> str:
    """A value for an error message, short."""
    text = value if isinstance(value, str) else repr(value)
    return f"{text[:60]!r}" if isinstance(value, str) else text[:60]


def exact_decimal(value: int | float | Decimal) -> Decimal:
    """The number that the record spelled. Raises ValueError for NaN and infinities."""
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{value} is not a number")
    return number


def digits_needed(number: Decimal) -> tuple[int, int]:
    """(digits before the point, digits after it) of a finite number, trailing zeros not counted."""
    if not number:
        return 0, 0
    reduced = number.normalize(_WIDE)
    exponent = int(reduced.as_tuple().exponent)
    return max(reduced.adjusted() + 1, 0), max(-exponent, 0)


def to_decimal(number: Decimal, kind: DecimalType) -> Decimal:
    """The number as decimal(p,s), exactly."""
    whole, fraction = digits_needed(number)
    if fraction > kind.scale or whole > kind.precision - kind.scale:
        raise ValueError(f"{str(number)[:60]} does not fit {kind}")
    if int(number.as_tuple().exponent) < -kind.scale:
        # Zeros at the end that the type has no room for; Arrow would refuse the whole column.
        return number.quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
    return number


def to_integer(value: int | float | Decimal, kind: DataType) -> int:
    """The number as int or bigint, exactly."""
    whole = int(value) if math.isfinite(value) else None
    if whole is None or whole != value or not -_BOUNDS[kind] <= whole < _BOUNDS[kind]:
        raise ValueError(f"{shown(value)} does not fit {kind}")
    return whole


def to_double(value: int | float | Decimal) -> float:
    """The number as a double that spells the same; a double, also NaN, stays what it is."""
    if isinstance(value, float):
        return value
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{shown(value)} does not fit double")
    if number != value and Decimal(repr(number)) != value:
        raise ValueError(f"{shown(value)} does not fit double without loss")
    return number


def fit(value: Any, kind: DataType) -> Any:
    """A value of the type, from a value that already is one. Raises ValueError."""
    converter = _FITTERS.get(type(kind) if isinstance(kind, DecimalType) else kind)
    if converter is None:
        raise ValueError(f"no value fits {kind}")
    return converter(value, kind)


def _number(value: Any, kind: DataType) -> int | float | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"{shown(value)} is not a number, the column is {kind}")  # noqa: TRY004
    return value


def _fit_boolean(value: Any, kind: DataType) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{shown(value)} is not a {kind}")  # noqa: TRY004
    return value


def _fit_string(value: Any, kind: DataType) -> str:
    # An empty object has no fields to infer columns from: it is held as its text.
    if value == {} and isinstance(value, dict):
        return "{}"
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not a {kind}")  # noqa: TRY004
    return value


def _fit_float(value: Any, kind: DataType) -> float:
    number = to_double(_number(value, kind))
    if math.isfinite(number) and abs(number) >= FLOAT32_END:
        raise ValueError(f"{shown(value)} does not fit {kind}")
    return number


def _fit_binary(value: Any, kind: DataType) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise ValueError(f"{shown(value)} is not base64") from None
    raise ValueError(f"{shown(value)} is not {kind}")


def _fit_date(value: Any, kind: DataType) -> int:
    if isinstance(value, str):
        return times.iso_days(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return times.days_in_range(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return times.date_days(value)
    raise ValueError(f"{shown(value)} is not a {kind}")


def _fit_timestamp(value: Any, kind: DataType) -> int:
    if isinstance(value, times.Micros):
        return times.in_range(int(value))
    if isinstance(value, times.Nanos):
        micros, rest = divmod(int(value), 1000)
        if rest:
            raise ValueError(f"{value} ns is finer than a microsecond")
        return times.in_range(micros)
    if isinstance(value, datetime):
        return times.datetime_micros(value)
    if isinstance(value, date):
        return times.date_days(value) * times.DAY_MICROS
    if isinstance(value, str):
        return times.iso_micros(value, exact=True)
    return times.epoch_micros(_number(value, kind), exact=True)


_FITTERS: dict[Any, Callable[[Any, Any], Any]] = {
    BOOLEAN: _fit_boolean,
    INT: lambda value, kind: to_integer(_number(value, kind), kind),
    BIGINT: lambda value, kind: to_integer(_number(value, kind), kind),
    FLOAT: _fit_float,
    DOUBLE: lambda value, kind: to_double(_number(value, kind)),
    DecimalType: lambda value, kind: to_decimal(exact_decimal(_number(value, kind)), kind),
    STRING: _fit_string,
    BINARY: _fit_binary,
    DATE: _fit_date,
    TIMESTAMP: _fit_timestamp,
    TIMESTAMP_NTZ: _fit_timestamp,
}


#: As databases and their tools spell them.
_BOOLEANS = {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False}


def parse(value: Any, kind: DataType, spelling: NumberSpelling = USUAL) -> Any:
    """A value of a declared type, also from its text. Raises ValueError."""
    if kind == STRING:
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        return value if isinstance(value, str) else json_text(value)
    if isinstance(value, str):
        value = _from_text(value, kind, spelling)
    elif kind == BOOLEAN and value in (0, 1):
        return bool(value)
    return fit(value, kind)


def _from_text(text: str, kind: DataType, spelling: NumberSpelling) -> Any:
    if kind == BOOLEAN:
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{shown(text)} is not a boolean")
        return _BOOLEANS[text.lower()]
    if kind in _BOUNDS or isinstance(kind, DecimalType):
        return number_of_text(text, whole=kind in _BOUNDS, spelling=spelling)
    if kind in {FLOAT, DOUBLE}:
        return float(number_of_text(text, whole=False, spelling=spelling))
    if kind in {TIMESTAMP, TIMESTAMP_NTZ} and _INTEGER.fullmatch(text):
        return int(text)
    return text


def number_of_text(text: str, *, whole: bool, spelling: NumberSpelling = USUAL) -> int | Decimal:
    """The number that a text spells. Raises ValueError."""
    if not spelling.is_usual:
        usual = spelling.number(text)
        if usual is None:
            raise ValueError(f"{shown(text)} is not a number with {spelling}")
        text = usual
    if _INTEGER.fullmatch(text):
        return int(text)
    if len(text) > _DIGITS:
        raise ValueError(f"{shown(text)} is a number of {len(text):,} characters")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{shown(text)} is not a number") from None
    if "_" in text or not text.isascii() or not number.is_finite() or abs(number.adjusted()) > 400:
        raise ValueError(f"{shown(text)} is not a number")
    if whole and number != number.to_integral_value():
        raise ValueError(f"{shown(text)} is not a whole number")
    return number


def json_text(value: object) -> str:
    """The JSON text of a value: what a declared string column holds of anything but a string."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
