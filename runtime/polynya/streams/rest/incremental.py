"""Values that grow: the highest that was met, and from which the next read begins. Pure.

A number stays a number. A time is kept in UTC, and is sent as `start` is written: as a date, with
or without an offset, to the second unless `start` has more. Cutting it makes it earlier, so records
come twice rather than never.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from polynya.formats.errors import UnreadableFileError
from polynya.formats.records.json_documents import value_of_page
from polynya.model.config.http_source import Incremental

#: A number, or a time in UTC.
Value: TypeAlias = int | datetime


def keys_of(path: str) -> tuple[str, ...]:
    """The keys down a path such as `$.data.items`."""
    return tuple(path.split(".")[1:])


def kind_of(settings: Incremental) -> str:
    """What the values are, in words."""
    return "number" if isinstance(settings.start, int) else "date or time"


def value_of(settings: Incremental, written: object) -> Value | None:
    """A value of a record, None where it is not of the kind of `start`."""
    if isinstance(written, bool) or written is None:
        return None
    if isinstance(settings.start, int):
        return _number(written)
    return _time(written) if isinstance(written, str) else None


def _number(written: object) -> int | None:
    try:
        if isinstance(written, str) and len(written) <= 40:
            return int(written)
        if isinstance(written, int):
            return written
        return math.floor(written) if isinstance(written, float) else None
    except (ValueError, OverflowError):
        return None


def _time(written: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(written.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def highest(settings: Incremental, records: Iterable[bytes]) -> Value | None:
    """The highest value of some records, None where none has one."""
    path = keys_of(settings.field)
    best: Value | None = None
    for record in records:
        found = value_of(settings, _read(record, path))
        if found is not None:
            best = later(best, found)
    return best


def _read(record: bytes, path: Sequence[str]) -> object:
    try:
        return value_of_page(record, path)
    except UnreadableFileError:
        return None


def later(one: Value | None, other: Value | None) -> Value | None:
    """The higher one of two values of one kind."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def capped(value: Value | None, began: datetime) -> Value | None:
    """A value that is not later than the begin of its read.

    A time in the future, by mistake or on purpose, would hide all records until then.
    """
    return min(value, began) if isinstance(value, datetime) else value


def begin_at(settings: Incremental, newest: Value | None) -> str:
    """The value that a read sends: `newest` is the highest before it, None for all records."""
    start = value_of(settings, settings.start)
    if newest is None or start is None:
        return str(settings.start)
    overlap = settings.overlap
    if isinstance(newest, int) and isinstance(overlap, int):
        return str(max(newest - overlap, start))
    assert isinstance(newest, datetime), "values are of one kind"
    back = overlap if isinstance(overlap, timedelta) else timedelta()
    try:
        since = newest - back
    except OverflowError:
        return str(settings.start)
    return str(settings.start) if later(start, since) == start else spelled(settings, since)


def spelled(settings: Incremental, moment: datetime) -> str:
    """A time as `start` is written."""
    start = str(settings.start).strip()
    if len(start) <= 10:
        return moment.date().isoformat()
    wanted = datetime.fromisoformat(start)
    if not wanted.microsecond and "." not in start:
        moment = moment.replace(microsecond=0)
    text = moment.replace(tzinfo=None).isoformat(sep="T" if "T" in start else " ")
    if wanted.tzinfo is None:
        return text
    return f"{text}Z" if start[-1] in "zZ" else f"{text}+00:00"


def stored(value: Value | None) -> int | str | None:
    """A value as a position holds it."""
    return value.isoformat() if isinstance(value, datetime) else value


def from_stored(value: object) -> Value | None:
    """The value that a position holds. Raises ValueError or TypeError."""
    if value is None or isinstance(value, int):
        return value
    moment = datetime.fromisoformat(str(value))
    if moment.tzinfo is None:
        raise ValueError("a time without an offset")
    return moment
