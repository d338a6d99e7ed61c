"""Patterns of dates and times, with the letters of Spark and of Java's `DateTimeFormatter`.

A pattern is compiled into one regular expression. Numbers have as many digits as the pattern has
letters, or one letter for any number of digits that the part can have; names of months and days are
English, in any case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_MAX_LENGTH: Final = 100
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

#: Formats of numbers that are times, with the number of units in a second.
EPOCHS: Final = {"epoch_seconds": 1, "epoch_milliseconds": 1000}

#: Most digits of a part that one letter stands for.
_DIGITS: Final = {"y": 4, "M": 2, "d": 2, "H": 2, "h": 2, "m": 2, "s": 2}
_PARTS: Final = {
    "y": "year", "M": "month", "d": "day", "H": "hour", "h": "half", "m": "minute", "s": "second",
    "S": "fraction", "a": "noon", "E": "weekday", "X": "offset", "x": "offset", "Z": "offset",
}  # fmt: skip
_SAME: Final = {"u": "y", "L": "M"}
_OFFSETS: Final = {
    "X": r"Z|[+-]\d\d(?:\d\d)?",
    "XX": r"Z|[+-]\d{4}",
    "XXX": r"Z|[+-]\d\d:\d\d",
    "x": r"[+-]\d\d(?:\d\d)?",
    "xx": r"[+-]\d{4}",
    "xxx": r"[+-]\d\d:\d\d",
    "Z": r"[+-]\d{4}",
    "ZZ": r"[+-]\d{4}",
    "ZZZ": r"[+-]\d{4}",
    "ZZZZZ": r"Z|[+-]\d\d:\d\d",
}
#: A run of one letter, quoted text, `''`, or any other character.
_PIECE: Final = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A pattern; `expression` has a group for each of `parts`, such as `year` or `offset`."""

    text: str
    expression: re.Pattern[str]
    parts: frozenset[str]

    def match(self, text: str) -> dict[str, str] | None:
        """The parts that a text has, None when it does not match."""
        found = self.expression.fullmatch(text)
        return None if found is None else {k: v for k, v in found.groupdict().items() if v}


@lru_cache(maxsize=256)
def time_pattern(text: str) -> TimePattern:
    """Compile a pattern such as `dd.MM.yyyy HH:mm`. Raises ValueError with the reason."""
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"it is longer than {_MAX_LENGTH} characters")
    parts: list[str] = []
    expression, depth, open_ended = "", 0, False
    for piece in _PIECE.finditer(text):
        run, quoted = piece[0], piece[2]
        if quoted is not None:
            expression += re.escape(quoted.replace("''", "'") if quoted else "'")
        elif piece[1] is not None:
            part, inner, varies = _part(run)
            if part in parts:
                raise ValueError(f"it has the {_word(part)} twice")
            is_number = inner.startswith(r"\d")
            if is_number and open_ended:
                raise ValueError(f"nothing separates `{run}` from the number before it")
            parts.append(part)
            expression += f"(?P<{part}>{inner})"
            open_ended = is_number and varies
            continue
        elif run == "[":
            expression, depth = f"{expression}(?:", depth + 1
            continue
        elif run == "]" and depth:
            expression, depth = f"{expression})?", depth - 1
            continue
        elif run in "[]{}#'":
            raise ValueError(f"`{run}` has no meaning here; write literal text in single quotes")
        else:
            expression += re.escape(run)
        open_ended = False
    if depth:
        raise ValueError("a `[` is not closed")
    _check(parts)
    flags = re.ASCII | re.IGNORECASE
    return TimePattern(text, re.compile(expression, flags), frozenset(parts))


def _part(run: str) -> tuple[str, str, bool]:
    """The part that a run of letters stands for, its expression, and whether its length varies."""
    letter, count = _SAME.get(run[0], run[0]), len(run)
    part = _PARTS.get(letter)
    if part is None:
        raise ValueError(
            f"the letter `{run[0]}` is not supported; use y M d H h m s S a E X x Z, and single "
            "quotes around literal text"
        )
    if letter == "M" and count in {3, 4}:
        return part, "|".join(_named(MONTHS, short=count == 3)), False
    if letter == "E" and count <= 4:
        return part, "|".join(_named(DAYS, short=count < 4)), False
    if part == "offset" and run in _OFFSETS:
        return part, _OFFSETS[run], False
    if letter == "a" and count == 1:
        return part, "AM|PM", False
    if letter == "S" and count <= 9:
        return part, rf"\d{{{count}}}", False
    most = _DIGITS.get(letter, 0)
    if count == 1 and most:
        return part, rf"\d{{1,{most}}}", True
    if (count == 2 and most) or (letter == "y" and count == 4):
        return part, rf"\d{{{count}}}", False
    raise ValueError(f"`{run}` has a number of letters that is not supported")


def _named(names: tuple[str, ...], *, short: bool) -> tuple[str, ...]:
    return tuple(name[:3] for name in names) if short else names


def _word(part: str) -> str:
    return {"half": "hour", "noon": "half of the day"}.get(part, part)


def _check(parts: list[str]) -> None:
    """Raise ValueError unless the parts make a date, or a date with a time of day."""
    for part, letters in (("year", "yyyy"), ("month", "MM"), ("day", "dd")):
        if part not in parts:
            raise ValueError(f"it has no {part}, `{letters}`")
    if "hour" in parts and "half" in parts:
        raise ValueError("it has the hour twice, as `H` and as `h`")
    if ("half" in parts) != ("noon" in parts):
        raise ValueError("`h`, hours up to 12, and `a`, AM or PM, belong together")
    hour = "hour" in parts or "half" in parts
    for part, needed, has in (
        ("minute", "hour", hour),
        ("second", "minute", "minute" in parts),
        ("fraction", "second", "second" in parts),
        ("offset", "hour", hour),
    ):
        if part in parts and not has:
            raise ValueError(f"it has the {part} without the {needed}")
