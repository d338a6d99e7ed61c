"""Types of columns: random values as SQL, their exact text at the source, and the value meant."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

#: Parts of texts that encodings, quoting, terminals, JSON and formats of events may spoil.
PARTS = (
    "a", "B", " ", "é", "e\u0301", "ß", "日本", "🦊", "\u202e", "\u2028", "\t", "\n", "\r", "\x01",
    "\x7f", "'", '"', "\\", "%", "null", "NULL", "{}", "[]", "NaN", "0", "-1", ",", ";", "--", "$$",
    "__debezium_unavailable_value", "\ufeff", "\u0131", "\u0130", "\u03c2",
)  # fmt: skip


@dataclass(frozen=True)
class Type:
    """A type of a column.

    Attributes:
        ddl: the type in SQL.
        draw: a random value as SQL.
        value: from the text at the source to the value that a reader of the table must see.
        text: SQL of the exact text of `{}`, an expression of this type.
        shown: what a reader gives, made comparable.
        wider: the type that an ALTER may give the column.
        after: SQL that follows the creation of a table `{table}` with such a column `{column}`.
    """

    ddl: str
    draw: Callable[[random.Random], str]
    value: Callable[[str], Any]
    text: str
    shown: Callable[[Any], Any] = lambda value: value
    wider: str | None = None
    after: str | None = None


def words(chance: random.Random, most: int = 12) -> str:
    """A text that is hard to carry."""
    return "".join(chance.choice(PARTS) for _ in range(chance.randint(0, most)))


def cut(text: str, length: int) -> str:
    """At most so many characters."""
    return text[:length]


def integers(bits: int, *, signed: bool = True) -> Callable[[random.Random], str]:
    """Whole numbers, the extremes often."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

    def draw(chance: random.Random) -> str:
        return str(chance.choice((low, high, 0, 1, chance.randint(low, high))))

    return draw


def doubles(chance: random.Random) -> float:
    """Any finite double by its bits."""
    while True:
        (value,) = struct.unpack(">d", chance.randbytes(8))
        if chance.random() < 0.3:
            value = chance.choice((5e-324, 0.1, 1e16 + chance.randint(0, 10**9) * 2.0, 2.0**53))
        if math.isfinite(value):
            return float(value)


def floats(chance: random.Random) -> float:
    """Any finite float of 32 bits."""
    while True:
        (value,) = struct.unpack(">f", chance.randbytes(4))
        if math.isfinite(value):
            return float(value)


def decimals(precision: int, scale: int) -> Callable[[random.Random], str]:
    """Decimals that fill their digits, or some of them."""

    def draw(chance: random.Random) -> str:
        digits = chance.randint(1, precision)
        return str(Decimal(chance.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-scale))

    return draw


def days(chance: random.Random, first: int = 1) -> date:
    """A day of the years from `first` to 9999."""
    low, high = date(first, 1, 1).toordinal(), date.max.toordinal()
    return date.fromordinal(chance.choice((low, high, chance.randint(low, high), 719_163)))


def moments(chance: random.Random, digits: int = 6, first: int = 1) -> str:
    """A moment of these years with so many digits of a second, ISO 8601 with a blank."""
    of_day = timedelta(microseconds=chance.randrange(86_400 * 10**6))
    at = datetime.combine(days(chance, first), datetime.min.time()) + of_day
    at = at.replace(microsecond=at.microsecond // 10 ** (6 - digits) * 10 ** (6 - digits))
    return at.isoformat(" ")


def double(text: str) -> str:
    """A double as the reader must see it, comparable also where it is not a number."""
    return same_float(float(text))


def single(text: str) -> str:
    """The float of 32 bits that a text says."""
    value = float(text)
    if math.isfinite(value):
        value = struct.unpack(">f", struct.pack(">f", value))[0]
    return same_float(value)


def same_float(value: float) -> str:
    """The bits of a double; all that are not numbers are one."""
    return "NaN" if math.isnan(value) else struct.pack(">d", value).hex()


def instant(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def micros(text: str) -> int:
    """Microseconds of a time of day or a duration of hours, `-838:59:59.999999` too."""
    sign = -1 if text.startswith("-") else 1
    hours, minutes, seconds = text.lstrip("-").split(":")
    return sign * int((Decimal(hours) * 3600 + Decimal(minutes) * 60 + Decimal(seconds)) * 10**6)


def numbers_as_text(text: str) -> Any:
    """JSON whose numbers are kept as they are written."""
    return json.loads(text, parse_float=str, parse_int=str)
