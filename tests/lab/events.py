"""Captured events in one line each, and the captures that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.lab.lab import Capture, moment
from tests.oracle.emit import debezium_lines
from tests.oracle.fold import DELETE, TRUNCATE, UPSERT, Event

#: Commit positions are large numbers in reality; a source that starts at 0 has none.
_FIRST = 1_000_000


def upsert(
    key: int, commit: int, *, unsent: Iterable[str] = (), was: int | None = None, **values: Any
) -> Event:
    """A row after an insert or update; `was` is the key that the record had before."""
    old = None if was is None else (was,)
    place = (_FIRST + commit, 2 if was is not None else 1)
    return Event(
        (key,), place, UPSERT, values, moment(commit), unsent=frozenset(unsent), old_key=old
    )


def delete(key: int, commit: int) -> Event:
    """A delete."""
    return Event((key,), (_FIRST + commit, 1), DELETE, {}, moment(commit))


def load(key: int, *, at: int = 0, **values: Any) -> Event:
    """A row of a snapshot that was taken `at` a commit."""
    return Event((key,), (_FIRST + at, 0), UPSERT, values, moment(at), is_load=True)


def truncate(commit: int) -> Event:
    """A truncate."""
    return Event((), (_FIRST + commit, 1), TRUNCATE, {}, moment(commit))


def land(capture: Capture, *events: Event, table: str = "users") -> None:
    """Land events as a file of the capture."""
    capture.land(*debezium_lines(events, capture.lab.schema, table, ["id"]))
