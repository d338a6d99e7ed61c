"""The patterns of dates and times that are not ISO 8601, such as `dd.MM.yyyy`, out of all texts.

A pattern is proposed only where it reads each text and no other order of day and month does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

_MONTHS: Final = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_CLOCK: Final = (
    r"(?:(?P<gap>[ T])(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?"
    r"(?P<half> [AaPp][Mm])?)?"
)
_NUMBERS: Final = re.compile(
    r"(?P<first>\d{1,4})(?P<mark>[./-])(?P<middle>\d{1,2})(?P=mark)(?P<last>\d{1,4})" + _CLOCK,
    re.ASCII,
)
_NAMED: Final = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[ -])(?P<middle>[A-Za-z]{3})(?P=mark)(?P<last>\d{4})" + _CLOCK,
    re.ASCII,
)


def looks_like_time(text: str) -> bool:
    """Whether a text may be a date or a time, ISO 8601 or not."""
    return bool(_NUMBERS.fullmatch(text) or _NAMED.fullmatch(text))


@dataclass(frozen=True, slots=True)
class LocalTimePattern:
    """How dates or times are written. `pattern` "": day and month cannot be told apart."""

    kind: str
    pattern: str


def time_pattern(texts: Sequence[str]) -> LocalTimePattern | None:
    """The pattern that all texts have; None for other texts, and for several styles."""
    for expression in (_NUMBERS, _NAMED):
        matches = [expression.fullmatch(text) for text in texts]
        found = [match for match in matches if match is not None]
        if found and len(found) == len(texts):
            return _pattern(found, named=expression is _NAMED)
    return None


def _pattern(found: Sequence[re.Match[str]], *, named: bool) -> LocalTimePattern | None:
    styles = {
        (m["mark"], m["gap"], m["second"] is None, m["half"] is None, _year_digits(m))
        for m in found
    }
    if len(styles) > 1:
        return None
    mark, gap, _, _, (year_first, digits) = styles.pop()
    kind = "date" if gap is None else "timestamp"
    order = "dMy" if named else _order(found, mark, year_first=year_first)
    if digits not in {2, 4} or (digits == 2 and (year_first or mark == "-")):
        return None
    if order is None:
        return LocalTimePattern(kind, "")
    clock = _clock(found)
    if clock is None or not all(_exists(match, order) for match in found):
        return None
    single = any(len(match[part]) == 1 for match in found for part in _parts(order, named=named))
    letters = {
        "y": "y" * digits,
        "d": "d" if single else "dd",
        "M": "MMM" if named else "M" if single else "MM",
    }
    return LocalTimePattern(kind, mark.join(letters[letter] for letter in order) + clock)


def _year_digits(match: re.Match[str]) -> tuple[bool, int]:
    """Whether the year comes first, and its digits."""
    year_first = len(match["first"]) > 2
    return year_first, len(match["first" if year_first else "last"])


def _parts(order: str, *, named: bool) -> tuple[str, ...]:
    """The groups of day and month, as far as these are numbers."""
    if named:
        return ("first",)
    return ("middle", "last") if order.startswith("y") else ("first", "middle")


def _order(found: Sequence[re.Match[str]], mark: str, *, year_first: bool) -> str | None:
    """Whether the day or the month comes first; None where no text tells."""
    if year_first:
        return "yMd"
    if mark == "." or max(int(match["first"]) for match in found) > 12:
        return "dMy"
    return "Mdy" if max(int(match["middle"]) for match in found) > 12 else None


def _exists(match: re.Match[str], order: str) -> bool:
    texts = dict(zip(order, (match["first"], match["middle"], match["last"]), strict=True))
    month = texts["M"].lower()
    number = _MONTHS.index(month) + 1 if month in _MONTHS else month
    year = texts["y"] if len(texts["y"]) == 4 else f"20{texts['y']}"
    try:
        date(int(year), int(number), int(texts["d"]))
    except ValueError:
        return False
    return True


def _clock(found: Sequence[re.Match[str]]) -> str | None:
    """The pattern of the time of day, "" without one; None where it does not exist."""
    first = found[0]
    if first["gap"] is None:
        return ""
    hours = [int(match["hour"]) for match in found]
    minutes = [int(match["minute"]) for match in found]
    seconds = [int(match["second"] or 0) for match in found]
    letter, most = ("h", 12) if first["half"] else ("H", 23)
    if max(hours) > most or max(minutes) > 59 or max(seconds) > 59:
        return None
    if first["half"] and min(hours) < 1:
        return None
    hour = letter if any(len(match["hour"]) == 1 for match in found) else letter * 2
    between = "'T'" if first["gap"] == "T" else " "
    second = ":ss" if first["second"] is not None else ""
    return f"{between}{hour}:mm{second}" + (" a" if first["half"] else "")
