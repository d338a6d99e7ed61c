"""Random histories: one generator of event sets, fed by a seed or by Hypothesis.

`native_history` makes events as any source may send them: sparse, late, contradictory.
`captured_history` plays a small database (transactions, key changes, large values that are
not sent again, truncates, a first load) and then loses some events, so that the fold meets states
that no database would show.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from tests.oracle.fold import DELETE, TRUNCATE, UPSERT, Event, Key
from tests.oracle.values import EPOCH

T = TypeVar("T")


class Choices(Protocol):
    """Where the generator takes its decisions from."""

    def integer(self, low: int, high: int) -> int:
        """A number of [low, high]."""

    def pick(self, options: Sequence[T]) -> T:
        """One of several."""


@dataclass(frozen=True)
class SeededChoices:
    """Decisions of a seeded generator: fast, for bulk."""

    source: random.Random

    def integer(self, low: int, high: int) -> int:
        return self.source.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        return self.source.choice(options)


def seeded(seed: int) -> SeededChoices:
    """Decisions from a seed."""
    return SeededChoices(random.Random(seed))


COLUMN_TYPES: Mapping[str, str] = {"amount": "decimal(18,2)", "day": "date", "seen": "timestamp"}
_TEXTS = ("", "x", "y", "Zoë", "a'b\\c", "line\nbreak", "null", "0012", "日本")
_VALUES: Mapping[str, Callable[[Choices], Any]] = {
    "name": lambda c: c.pick(_TEXTS),
    "n": lambda c: c.pick((0, 1, -1, 2**31, -(2**63), 2**63 - 1)),
    "x": lambda c: c.pick((0.5, -1.25, 1e300, 3.0)),
    "ok": lambda c: c.pick((True, False)),
    "tags": lambda c: [c.pick(("a", "b", "")) for _ in range(c.integer(0, 2))],
    "more": lambda c: {"city": c.pick(("Oslo", None)), "zip": c.integer(0, 3)},
    "note": lambda c: c.pick(("long-" * 3, "n", "m")),
    "amount": lambda c: Decimal(c.integer(-9999, 9999)).scaleb(-2),
    "day": lambda c: date(2024, 2, 28) + timedelta(days=c.integer(0, 2)),
    "seen": lambda c: EPOCH + timedelta(microseconds=c.integer(-3, 3)),
}


@dataclass(frozen=True)
class Shape:
    """What events of a dataset look like, and what may happen to them (chances in percent)."""

    keys: tuple[str, ...] = ("id",)
    columns: tuple[str, ...] = ("name", "n")
    key_count: int = 5
    first_key: int = 0
    deletes: int = 20
    truncates: int = 0
    equal_sequence: int = 10
    backwards: int = 20
    nulls: int = 20
    bad: int = 0
    unsent: int = 40
    key_changes: int = 20
    loads: int = 0
    lost: int = 5

    def key(self, number: int) -> Key:
        """The key of a record by its number."""
        parts = (number, f"k{number % 3}", number % 2)
        return parts[: len(self.keys)]


def native_history(choices: Choices, shape: Shape, count: int) -> list[Event]:
    """Events of any order and sense over few keys; deletes and upserts may share a sequence.

    Own events have even sequences and truncates odd ones: what a truncate does to an event of its
    very sequence is tested on its own.
    """
    events: list[Event] = []
    used: dict[Key, set[int]] = {}
    for _ in range(count):
        if _chance(choices, shape.truncates):
            events.append(_truncate(choices, shape, choices.integer(-1, 2 * count) * 2 + 1))
            continue
        key = _key(choices, shape)
        sequence = 2 * _unused(choices, used.setdefault(key, set()), count)
        if _chance(choices, shape.bad):
            events.append(_spoiled(choices, shape, key, sequence))
        if not _chance(choices, shape.deletes):
            events.append(_upsert(choices, shape, key, sequence))
            if not _chance(choices, shape.equal_sequence):
                continue
        events.append(Event(key, sequence, DELETE, {}, _time(choices, shape, sequence)))
    return events


def captured_history(choices: Choices, shape: Shape, count: int) -> list[Event]:
    """What change capture of a small database delivers; sequence = (commit position, order)."""
    live: set[int] = set()
    events: list[Event] = []
    start = 1_000_000 + shape.first_key
    for number in range(shape.key_count):
        if _chance(choices, shape.loads):
            key = shape.key(shape.first_key + number)
            events.append(
                Event(key, (start, 0), UPSERT, _values(choices, shape), EPOCH, is_load=True)
            )
            live.add(number)
    commit = start
    while len(events) < count:
        commit += choices.integer(1, 900) * 8
        moment = _time(choices, shape, commit - start)
        events += _transaction(choices, shape, commit, moment, live)
    return [event for event in events if event.is_load or not _chance(choices, shape.lost)]


def observed_history(choices: Choices, shape: Shape, count: int) -> list[Event]:
    """What a capture delivers that begins in the middle, while loads look at records now and then.

    Nothing is lost: a look shows what the events before its place have made.
    """
    rows: dict[int, dict[str, Any]] = {
        number: _values(choices, shape) for number in range(shape.key_count)
    }
    events: list[Event] = []
    commit = 1_000_000 + shape.first_key
    while len(events) < count:
        commit += choices.integer(1, 900) * 8
        moment = _time(choices, shape, commit - 1_000_000)
        number = choices.integer(0, shape.key_count - 1)
        key, row = shape.key(shape.first_key + number), rows.get(number)
        if row is None:
            rows[number] = _values(choices, shape)
            events.append(Event(key, (commit, 1), UPSERT, rows[number], moment))
        elif _chance(choices, shape.loads):
            events.append(Event(key, (commit, 0), UPSERT, row, moment, is_load=True))
        elif _chance(choices, shape.truncates):
            rows.clear()
            events.append(Event((), (commit, 1), TRUNCATE, {}, moment))
        elif _chance(choices, shape.deletes):
            del rows[number]
            events.append(Event(key, (commit, 1), DELETE, {}, moment))
        else:
            sent, unsent = _partial(choices, shape)
            target = choices.integer(0, shape.key_count - 1)
            if target in rows or not _chance(choices, shape.key_changes):
                rows[number] = {**row, **sent}
                events.append(Event(key, (commit, 1), UPSERT, sent, moment, unsent=unsent))
                continue
            del rows[number]
            rows[target] = {**row, **sent}
            moved = shape.key(shape.first_key + target)
            events.append(Event(key, (commit, 1), DELETE, {}, moment))
            events.append(
                Event(moved, (commit, 2), UPSERT, sent, moment, unsent=unsent, old_key=key)
            )
    return events


def ignoring_nulls(events: Sequence[Event], columns: Sequence[str] | None = None) -> list[Event]:
    """The events where a NULL in a column (None: in any) says that it was not sent."""
    return [
        replace(
            event,
            unsent=frozenset(
                name
                for name, value in event.values.items()
                if value is None and (columns is None or name in columns)
            ),
        )
        for event in events
    ]


def _transaction(
    choices: Choices, shape: Shape, commit: int, moment: Any, live: set[int]
) -> list[Event]:
    made: list[Event] = []
    for _ in range(choices.integer(1, 4)):
        if _chance(choices, shape.truncates):
            made.append(Event((), (commit, len(made) + 1), TRUNCATE, {}, moment))
            live.clear()
            continue
        number = choices.integer(0, shape.key_count - 1)
        key = shape.key(shape.first_key + number)
        if number not in live:
            values = _values(choices, shape)
            made.append(Event(key, (commit, len(made) + 1), UPSERT, values, moment))
            live.add(number)
        elif _chance(choices, shape.deletes):
            made.append(Event(key, (commit, len(made) + 1), DELETE, {}, moment))
            live.remove(number)
        else:
            target = choices.integer(0, shape.key_count - 1)
            moves = target not in live and _chance(choices, shape.key_changes)
            values, unsent = _partial(choices, shape)
            if moves:
                made.append(Event(key, (commit, len(made) + 1), DELETE, {}, moment))
                live.remove(number)
                live.add(target)
            made.append(
                Event(
                    shape.key(shape.first_key + target) if moves else key,
                    (commit, len(made) + 1),
                    UPSERT,
                    values,
                    moment,
                    unsent=unsent,
                    old_key=key if moves else None,
                )
            )
    return made


def _partial(choices: Choices, shape: Shape) -> tuple[dict[str, Any], frozenset[str]]:
    """Values of an update, without the large ones that did not change."""
    large = [name for name in ("note", "tags") if name in shape.columns]
    unsent = frozenset(name for name in large if _chance(choices, shape.unsent))
    values = _values(choices, shape)
    return {name: value for name, value in values.items() if name not in unsent}, unsent


def _upsert(choices: Choices, shape: Shape, key: Key, sequence: int) -> Event:
    return Event(key, sequence, UPSERT, _values(choices, shape), _time(choices, shape, sequence))


def _truncate(choices: Choices, shape: Shape, sequence: int) -> Event:
    """A truncate whose time depends on its sequence alone, so that two of them are one."""
    return Event((), sequence, TRUNCATE, {}, EPOCH + timedelta(seconds=sequence))


def _spoiled(choices: Choices, shape: Shape, key: Key, sequence: int) -> Event:
    """An event with a NULL in its key or its sequence: quarantine."""
    values, moment = _values(choices, shape), EPOCH
    if choices.pick((True, False)):
        return Event(key, None, UPSERT, values, moment)
    return Event((*key[:-1], None), sequence, UPSERT, values, moment)


def _values(choices: Choices, shape: Shape) -> dict[str, Any]:
    return {
        name: None if _chance(choices, shape.nulls) else _VALUES[name](choices)
        for name in shape.columns
    }


def _time(choices: Choices, shape: Shape, sequence: int) -> Any:
    late = choices.integer(1, 40) if _chance(choices, shape.backwards) else 0
    return EPOCH + timedelta(seconds=sequence - late, microseconds=choices.integer(0, 999_999))


def _key(choices: Choices, shape: Shape) -> Key:
    return shape.key(shape.first_key + choices.integer(0, shape.key_count - 1))


def _unused(choices: Choices, used: set[int], count: int) -> int:
    number = choices.integer(-count, 2 * count)
    while number in used:
        number += 1
    used.add(number)
    return number


def _chance(choices: Choices, percent: int) -> bool:
    return percent > 0 and choices.integer(0, 99) >= 100 - percent
