"""The rows of the Current view that some events would leave, in memory.

It is the fold of semantics section 4 for the newest version only, over the events that it is
given. What the table holds is not read: a column that keeps its value there is `STORED`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

#: A key as text that equals that of the same key only.
Key: TypeAlias = str
Values: TypeAlias = Mapping[str, Any]


class Stored:
    """The value that the table holds."""

    def __repr__(self) -> str:
        return "(stored)"


STORED: Final = Stored()


@dataclass(frozen=True, slots=True)
class Event:
    """One change. `place` sorts as the events do; `operation` is L, I, U, D or T.

    `unsent` are columns that the source did not send; `old_key` is the key of the record whose
    values they keep, where that is another one.
    """

    key: Key
    place: str
    operation: str
    values: Values = field(default_factory=dict)
    position: str | None = None
    unsent: frozenset[str] = frozenset()
    old_key: Key | None = None

    @property
    def is_delete(self) -> bool:
        """Whether it ends its record."""
        return self.operation in {"D", "d"}


@dataclass(frozen=True, slots=True)
class State:
    """A record after some events; `values` of a deleted one are those that it had."""

    values: Values
    alive: bool


@dataclass(frozen=True, slots=True)
class Current:
    """The records that the events touch, and how many places are held by events that differ."""

    states: Mapping[Key, State]
    ties: int


def current(events: Sequence[Event], *, is_new: bool) -> Current:
    """Fold events; `is_new`: there is no table, so that nothing is stored of any record."""
    by_key: dict[Key, list[Event]] = {}
    truncates: dict[str, Event] = {}
    for event in events:
        if event.operation == "T":
            truncates[event.place] = event
        else:
            by_key.setdefault(event.key, []).append(event)
    ties = 0
    chains: dict[Key, list[Event]] = {}
    for key, own in by_key.items():
        chain, tied = _collapsed(own)
        ties += tied
        taken = {event.place for event in chain}
        chain += [one for place, one in truncates.items() if place not in taken]
        chains[key] = sorted(chain, key=lambda event: event.place)
    folding = _Folding(chains, is_new=is_new)
    return Current({key: folding.state(key, None, frozenset()) for key in chains}, ties)


def _collapsed(own: Sequence[Event]) -> tuple[list[Event], int]:
    """One event a place: a delete wins, else the later position, else the one that came last."""
    places: dict[str, list[Event]] = {}
    for event in own:
        places.setdefault(event.place, []).append(event)
    ties, kept = 0, []
    for group in places.values():
        best = [event for event in group if event.is_delete] or group
        latest = max(event.position or "" for event in best)
        best = [event for event in best if (event.position or "") == latest]
        # Which one wins by its content is for the table to say.
        ties += any(event.values != best[0].values for event in best)
        kept.append(best[-1])
    return kept, ties


class _Folding:
    """States of records; a change of key asks for that of another record."""

    def __init__(self, chains: Mapping[Key, Sequence[Event]], *, is_new: bool) -> None:
        self._chains = chains
        self._is_new = is_new

    def state(self, key: Key, upto: str | None, asking: frozenset[tuple[Key, str]]) -> State:
        """A record after its events, as far as they are not later than `upto`."""
        state: State | None = None
        for event in self._chains.get(key, ()):
            if upto is not None and event.place > upto:
                break
            if event.operation == "T":
                state = State(state.values if state else {}, alive=False)
            elif event.is_delete:
                state = State(state.values if state else self._nothing(event), alive=False)
            else:
                state = State(self._complete(event, state, asking), alive=True)
        return state or State({}, alive=False)

    def _nothing(self, event: Event) -> Values:
        """What a record without events here held."""
        return {} if self._is_new else dict.fromkeys(event.values, STORED)

    def _complete(
        self, event: Event, before: State | None, asking: frozenset[tuple[Key, str]]
    ) -> Values:
        """The values of an event, with those that it did not send."""
        if not event.unsent:
            return event.values
        if event.old_key is not None:
            place = (event.old_key, event.place)
            known = event.old_key in self._chains and place not in asking
            found = self.state(*place, asking | {place}) if known else None
            source = found.values if found is not None else self._nothing(event)
        elif before is None:
            source = self._nothing(event)
        else:
            source = before.values if before.alive else {}
        return {**event.values, **{name: source.get(name) for name in event.unsent}}
