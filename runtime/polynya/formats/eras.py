"""Eras of a source's log: positions start again after a failover, a reset or a restore.

Within one era the position orders events. An event with an older position and a newer time than the
events before it belongs to a new era; the policy `restart_log` decides what happens then. A late or
repeated event is older in both, so it never looks like a new era.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from polynya.model.config.evolution import Policy, SchemaChange

#: A change identifier, and what does not fit into it.
Place: TypeAlias = tuple[str, str | None]

#: Clocks differ, and are set back: times of one log may contradict its positions by that much.
#: Microseconds.
CLOCK_TOLERANCE_MICROS: Final = 60_000_000
#: Identifiers of later eras sort behind all of the first one, which never begin with a 9.
_LATER: Final = "9{:03d}"
_LONGEST: Final = 50
_MAX_ERAS: Final = 998
_NAMES_SHOWN: Final = 3


@dataclass(slots=True)
class Era:
    """What is known of one era; times in microseconds.

    Attributes:
        names: of the log in it: the base name of binlog files, also with the server that wrote an
            event (`mysql-bin#7`); empty text where logs of the source have no names.
        since: time of its earliest event that was met; None: not known.
        top: its highest position.
        last: time of the newest event up to `top`.
        seen: when the event at `top` had been read from the source.
    """

    names: tuple[str, ...] = ()
    since: int | None = None
    top: str = ""
    last: int = 0
    seen: int = 0

    def reach(self, position: str, micros: int | None, seen: int | None) -> None:
        """Take an event at its end."""
        self.top = position
        self.seen = seen or 0
        if micros is not None and micros > self.last:
            self.last = micros


@dataclass(slots=True)
class LogEras:
    """The eras of one table's source in the course of a read.

    `policy` is that for an event which shows that the log began again; `change` says so.
    """

    eras: list[Era]
    policy: Policy = "suspend"
    change: SchemaChange | None = None

    @classmethod
    def of(cls, eras: Sequence[Era], policy: Policy) -> LogEras:
        """Those that a table knows, which stay as they are."""
        return cls([replace(era) for era in eras], policy)

    def copy(self) -> LogEras:
        """The same, for when what follows has to be forgotten."""
        return LogEras([replace(era) for era in self.eras], self.policy, self.change)

    def placed(
        self, place: Place, log: str, micros: int | None, seen: int | None, *, tells: bool
    ) -> Place:
        """The place of an event in the order of all eras.

        Args:
            place: in its log.
            log: name of the log, empty where it has none.
            micros: time of the event.
            seen: when it was read from the source, None where that is not known.
            tells: its time belongs to its position; not so for a read in the middle of a stream.
        """
        position = place[0] + (place[1] or "")
        eras = self.eras
        if not eras:
            eras.append(Era(_with_name((), log), micros))
        index = 0 if len(eras) == 1 else self._era_of(position, log, micros)
        if tells or not any(log in era.names for era in eras):
            index = self._met(index, position, log, micros, seen)
        return place if index == 0 else _later(place, index)

    def _era_of(self, position: str, log: str, micros: int | None) -> int:
        """The newest era that an event can be of."""
        named = [index for index, era in enumerate(self.eras) if log in era.names]
        if not named:
            return len(self.eras) - 1
        for index in reversed(named):
            era, before = self.eras[index], self.eras[index - 1]
            if index == named[0] or micros is None or era.since is None or micros >= era.since:
                return index
            # Between what was met of the two: only a position can tell.
            if micros > before.last and position <= before.top:
                return index
        return named[0]

    def _met(
        self, index: int, position: str, log: str, micros: int | None, seen: int | None
    ) -> int:
        era = self.eras[index]
        is_named = log in era.names
        # Views of a quiet source have one place, at whatever time.
        if position > era.top or (is_named and position == era.top):
            if not is_named and not self._is_later(era, micros):
                return self._restarted(index, log, _begun(log, position, micros, seen))
            era.reach(position, micros, seen)
        elif not self._is_earlier(era, micros, is_named=is_named):
            return self._restarted(index, log, _begun(log, position, micros, seen))
        if not is_named:
            era.names = _with_name(era.names, log)
        if micros is not None and (era.since is None or micros < era.since):
            era.since = micros
        return index

    @staticmethod
    def _is_later(era: Era, micros: int | None) -> bool:
        """Whether what lies behind an era in a log of another name is newer, too."""
        return not era.top or (micros is not None and micros + CLOCK_TOLERANCE_MICROS >= era.last)

    @staticmethod
    def _is_earlier(era: Era, micros: int | None, *, is_named: bool) -> bool:
        """Whether what lies inside of an era can be a part of it."""
        if not is_named:
            return micros is not None and micros < era.last
        return micros is None or micros <= max(era.last, era.seen) + CLOCK_TOLERANCE_MICROS

    def _restarted(self, index: int, log: str, begun: Era) -> int:
        era = self.eras[index]
        if self.change is None:
            before = ", ".join(era.names[-_NAMES_SHOWN:])
            self.change = SchemaChange("restart_log", log, self.policy, before, log)
        if self.policy != "apply" or len(self.eras) > _MAX_ERAS:
            if log not in era.names:
                era.names = _with_name(era.names, log)
            # It is said once, and not again for each event up to here.
            era.last = max(era.last, begun.last)
            return index
        self.eras.append(begun)
        return len(self.eras) - 1


def _begun(log: str, position: str, micros: int | None, seen: int | None) -> Era:
    return Era(_with_name((), log), micros, position, micros or 0, seen or 0)


def _with_name(names: tuple[str, ...], log: str) -> tuple[str, ...]:
    """With the name of a log; reads of a snapshot name no server."""
    return tuple(dict.fromkeys((*names, log.partition("#")[0], log)))


def placed_before(place: Place, eras: Sequence[Era], log: str, micros: int | None) -> Place:
    """The place of a view of the source among known eras; nothing is remembered."""
    return LogEras.of(eras, "ignore").placed(place, log, micros, micros, tells=False)


def _later(place: Place, era: int) -> Place:
    """A place behind all of the eras before."""
    identifier, tail = place
    over = len(identifier) + 4 - _LONGEST
    if over > 0:
        # Of a log with two numbers of 25 digits the second one goes behind.
        identifier, tail = identifier[:25], identifier[25:] + (tail or "")
    return _LATER.format(era) + identifier, tail
