"""The two-minute reference fold: what `semantics.md` sections 3, 4 and 6 say, in plain Python.

It reads like the contract and is slow on purpose: per key, collapse, sort, open and close.
It must not import anything of the engine, PyArrow or PySpark; independence is its only value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

Key = tuple[Any, ...]
UPSERT, DELETE, TRUNCATE = "upsert", "delete", "truncate"


@dataclass(frozen=True)
class Event:
    """One change; `sequence` is any ordered value, `position` the source's own place, if any."""

    key: Key
    sequence: Any
    op: str
    values: Mapping[str, Any] = field(default_factory=dict)
    timestamp: datetime | None = None
    position: Any = None
    unsent: frozenset[str] = frozenset()
    old_key: Key | None = None
    is_load: bool = False

    def content(self) -> str:
        """Text of everything that the event says, equal for redeliveries and for nothing else."""
        said = {name: value for name, value in self.values.items() if name not in self.unsent}
        return repr(
            (
                self.op,
                sorted(said.items()),
                sorted(self.unsent),
                self.timestamp,
                self.old_key,
                self.is_load,
            )
        )

    def content_hash(self) -> str:
        """Stand-in for the engine's content hash: any deterministic order is as good."""
        return hashlib.sha1(self.content().encode()).hexdigest()


@dataclass(frozen=True)
class Version:
    """One state of one record, valid in [from_ts, to_ts); `op` is L, I, U or D."""

    key: Key
    sequence: Any
    op: str
    values: Mapping[str, Any]
    from_ts: datetime | None
    to_ts: datetime | None = None
    by_truncate: bool = False

    @property
    def deleted(self) -> bool:
        """True for the version that a delete or a truncate leaves."""
        return self.op == "D"


@dataclass(frozen=True)
class Folded:
    """The outcome of a fold: every version of every key in sequence order, and the counts."""

    versions: Mapping[Key, Sequence[Version]]
    rejected: int
    raised: int
    ties: frozenset[tuple[Key, Any]]

    def current(self, *, soft: bool = False) -> dict[Key, Version]:
        """Last version per key; deleted records only with soft delete."""
        last = {key: run[-1] for key, run in self.versions.items() if run}
        return {key: version for key, version in last.items() if soft or not version.deleted}

    def history(self) -> list[Version]:
        """All versions, deletes included, key by key."""
        return [version for run in self.versions.values() for version in run]

    def coalesced(self, tracked: Iterable[str] | None = None) -> list[Version]:
        """History with runs of equal tracked columns merged; every delete ends a run and stays."""
        names = None if tracked is None else list(tracked)
        return [merged for run in self.versions.values() for merged in _coalesce(run, names)]


def fold(
    events: Iterable[Event],
    *,
    load_start: datetime | None = None,
    rank: Callable[[Event], Any] = Event.content_hash,
    looks: bool = False,
) -> Folded:
    """Fold a set of events, in any order and with any redelivery, into versions per key.

    Args:
        load_start: replaces the timestamp of first-load rows ("start of the full load").
        rank: the last tie-breaker among events of equal key, sequence and position.
        looks: loaded rows are looks at records, each at its place among the events.
    """
    given = list(events)
    accepted = [event for event in given if _acceptable(event)]
    if load_start is not None:
        accepted = [replace(e, timestamp=load_start) if e.is_load else e for e in accepted]
    truncates = _truncates(accepted)
    by_key: dict[Key, list[Event]] = {}
    for event in accepted:
        if event.op != TRUNCATE:
            by_key.setdefault(event.key, []).append(event)
    ties: set[tuple[Key, Any]] = set()
    collapsed = {key: _collapse(run, rank, ties) for key, run in by_key.items()}
    ties |= {
        (key, e.sequence) for key, run in collapsed.items() for e in run if e.sequence in truncates
    }
    states = _States(collapsed, truncates, looks=looks)
    versions = {key: states.versions(key) for key in collapsed}
    return Folded(versions, len(given) - len(accepted), states.raised, frozenset(ties))


def append_only(events: Iterable[Event]) -> list[Mapping[str, Any]]:
    """Rows of an append-only table: every event that carries values, redeliveries included."""
    return [event.values for event in events if event.op == UPSERT]


def _acceptable(event: Event) -> bool:
    """NULL sequences and NULL keys go to quarantine; a truncate needs no key."""
    sequence = event.sequence if isinstance(event.sequence, tuple) else (event.sequence,)
    if any(part is None for part in sequence):
        return False
    return event.op == TRUNCATE or (bool(event.key) and all(part is not None for part in event.key))


def _truncates(events: Iterable[Event]) -> dict[Any, Event]:
    found: dict[Any, Event] = {}
    for event in events:
        if event.op == TRUNCATE:
            best = found.get(event.sequence)
            if best is None or event.content_hash() > best.content_hash():
                found[event.sequence] = event
    return found


def _collapse(
    run: Iterable[Event], rank: Callable[[Event], Any], ties: set[tuple[Key, Any]]
) -> list[Event]:
    """One event per sequence: delete, then later position, then greater content hash wins."""
    groups: dict[Any, list[Event]] = {}
    for event in run:
        groups.setdefault(event.sequence, []).append(event)
    winners = []
    for sequence in sorted(groups):
        group = groups[sequence]
        deletes = [event for event in group if event.op == DELETE]
        group = deletes or group
        placed = [event for event in group if event.position is not None]
        if placed:
            latest = max(event.position for event in placed)
            group = [event for event in placed if event.position == latest]
        if len({event.content() for event in group}) > 1:
            ties.add((group[0].key, sequence))
        winners.append(max(group, key=rank))
    return winners


class _States:
    """Versions of all keys, resolved on demand because a key change reads the old key's state."""

    def __init__(
        self, events: Mapping[Key, list[Event]], truncates: Mapping[Any, Event], *, looks: bool
    ) -> None:
        self._events, self._truncates, self._looks = events, truncates, looks
        self.raised = 0

    def versions(self, key: Key) -> list[Version]:
        run, raised = self._open_and_close(key, None, frozenset())
        self.raised += raised
        return run

    def _steps(self, key: Key, upto: Any) -> list[Event]:
        """Own events and truncates in order.

        A truncate deletes records whose last sequence is *lower*: an own event at its very
        sequence wins over it.
        """
        own = self._events.get(key, [])
        taken = {event.sequence for event in own}
        steps = own + [t for sequence, t in self._truncates.items() if sequence not in taken]
        if upto is not None:
            steps = [event for event in steps if event.sequence <= upto]
        return sorted(steps, key=lambda event: event.sequence)

    def _open_and_close(
        self, key: Key, upto: Any, visiting: frozenset[tuple[Key, Any]]
    ) -> tuple[list[Version], int]:
        run: list[Version] = []
        clock: datetime | None = None
        raised = 0
        steps = self._steps(key, upto)
        guessed: frozenset[str] = frozenset()
        for place, event in enumerate(steps):
            alive = bool(run) and not run[-1].deleted
            if event.op == TRUNCATE and not alive:
                continue
            if event.op == UPSERT:
                values = self._complete(event, run[-1].values if alive else {}, visiting)
                # What no event has sent since the record began.
                unknown = event.unsent & guessed if alive else event.unsent
                if event.old_key is not None:
                    unknown = frozenset(n for n in event.unsent if values.get(n) is None)
                if self._looks:
                    shown = self._shown_later(steps[place + 1 :], unknown)
                    values = {**values, **shown}
                is_look = self._looks and event.is_load
                if is_look and alive and not guessed and _equal(values, run[-1].values):
                    continue
                guessed = unknown
            if clock is not None and event.timestamp is not None and event.timestamp < clock:
                raised += 1
            else:
                clock = event.timestamp
            if run:
                run[-1] = replace(run[-1], to_ts=clock)
            before = run[-1].values if run else {}
            if event.op == UPSERT:
                op = "U" if alive else ("L" if event.is_load else "I")
            else:
                op, values = "D", before
            run.append(
                Version(key, event.sequence, op, values, clock, by_truncate=event.op == TRUNCATE)
            )
        return run, raised

    def _complete(
        self, event: Event, before: Mapping[str, Any], visiting: frozenset[tuple[Key, Any]]
    ) -> Mapping[str, Any]:
        """Fill columns that were not sent, from just before or from the old key of a key change."""
        if not event.unsent:
            return event.values
        source = before
        if event.old_key is not None:
            source = self._state_of(event.old_key, event.sequence, visiting)
        return {**event.values, **{name: source.get(name) for name in event.unsent}}

    def _shown_later(self, steps: Sequence[Event], names: Iterable[str]) -> dict[str, Any]:
        """What a look shows of columns that no event sent before it, and none up to it."""
        shown: dict[str, Any] = {}
        for name in names:
            for event in steps:
                if event.op != UPSERT or event.old_key is not None:
                    break
                if name not in event.unsent:
                    if event.is_load:
                        shown[name] = event.values.get(name)
                    break
        return shown

    def _state_of(
        self, key: Key, upto: Any, visiting: frozenset[tuple[Key, Any]]
    ) -> Mapping[str, Any]:
        """Values of a key's last state at or before a sequence, also what its delete carried."""
        if (key, upto) in visiting:
            return {}
        run, _ = self._open_and_close(key, upto, visiting | {(key, upto)})
        return run[-1].values if run else {}


def _equal(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return all(left.get(name) == right.get(name) for name in {*left, *right})


def _coalesce(run: Sequence[Version], tracked: list[str] | None) -> list[Version]:
    merged: list[Version] = []
    for version in run:
        last = merged[-1] if merged else None
        if last and not last.deleted and not version.deleted and _same(last, version, tracked):
            merged[-1] = replace(last, values=version.values, to_ts=version.to_ts)
        else:
            merged.append(version)
    return merged


def _same(left: Version, right: Version, tracked: list[str] | None) -> bool:
    names = tracked if tracked is not None else sorted({*left.values, *right.values})
    return all(left.values.get(name) == right.values.get(name) for name in names)
