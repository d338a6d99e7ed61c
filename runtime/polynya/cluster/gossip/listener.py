"""The picture of the others, from messages that come late, twice, in any order or not at all.

Lives in one thread; times are in monotonic seconds of this process, never a sender's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from polynya.cluster.gossip.decode import Skipped, read_record
from polynya.cluster.gossip.messages import Heard, Heartbeat, Hint, Sender, UnitHeard
from polynya.cluster.unit import JobKey

#: A process that was not heard for so long is no longer in the picture.
FORGET_SECONDS: Final = 600.0
#: So many processes are remembered; a stream full of inventions does not fill the memory.
MOST_PROCESSES: Final = 2000
#: Hints of one process are told apart by so many of their numbers.
_MOST_HINTS: Final = 64


@dataclass(slots=True)
class _Process:
    """What one process told.

    Attributes:
        newest: the part that was heard last of its newest heartbeat; heard `at`.
        before: number of the heartbeat before that one.
        parts: those that were heard of the newest one.
        units: with the number of the heartbeat that named them last.
        whole: all that is known, None until somebody asks.
    """

    newest: Heartbeat
    at: float
    before: int = 0
    parts: set[int] = field(default_factory=set)
    units: dict[JobKey, tuple[int, UnitHeard]] = field(default_factory=dict)
    whole: Heartbeat | None = None

    def add(self, heartbeat: Heartbeat, at: float) -> Skipped | None:
        """Take in a part of a heartbeat; returns why not."""
        if heartbeat.seq < self.newest.seq:
            return Skipped.LATE
        if heartbeat.seq == self.newest.seq and heartbeat.part in self.parts:
            return Skipped.REPEATED
        if heartbeat.seq > self.newest.seq:
            self.before, self.parts = self.newest.seq, set()
        self.newest, self.at, self.whole = heartbeat, at, None
        self.parts.add(heartbeat.part)
        self.units.update((one.unit, (heartbeat.seq, one)) for one in heartbeat.units)
        # What a missing part would say is as the heartbeat before had it.
        complete = len(self.parts) == heartbeat.parts
        oldest = heartbeat.seq if complete else self.before
        self.units = {key: told for key, told in self.units.items() if told[0] >= oldest}
        return None

    def heard(self, now: float) -> Heard:
        """The newest heartbeat, put together from its parts."""
        if self.whole is None:
            units = tuple(one for _, one in self.units.values())
            self.whole = replace(self.newest, units=units, part=1, parts=1)
        return Heard(self.whole, max(now - self.at, 0.0))


class Listener:
    """Takes records of a stream for a process of a cluster."""

    def __init__(self, me: Sender) -> None:
        self._me = me
        self._processes: dict[str, _Process] = {}
        self._hints: dict[str, list[int]] = {}
        self.skipped: Counter[str] = Counter()

    def take(self, data: bytes, at: float) -> bool:
        """Take in a record that was put at this moment; returns whether it is a reason to look."""
        message = read_record(data, self._me.cluster)
        if isinstance(message, Skipped):
            self.skipped[message.value] += 1
            return False
        if message.sender.incarnation == self._me.incarnation:
            return False
        if isinstance(message, Hint):
            why = self._take_hint(message)
            wakes = why is None and (not message.to or self._me.incarnation in message.to)
        else:
            why, wakes = self._take_heartbeat(message, at), False
        if why is not None:
            self.skipped[why.value] += 1
        return wakes

    def heard(self, now: float) -> dict[str, Heard]:
        """What is known of each process, without those that were not heard for long."""
        for name, one in list(self._processes.items()):
            if now - one.at > FORGET_SECONDS:
                del self._processes[name]
                self._hints.pop(name, None)
        return {name: one.heard(now) for name, one in self._processes.items()}

    def _take_heartbeat(self, heartbeat: Heartbeat, at: float) -> Skipped | None:
        name = heartbeat.sender.incarnation
        known = self._processes.get(name)
        if known is None:
            if len(self._processes) >= MOST_PROCESSES:
                return Skipped.CROWDED
            known = self._processes[name] = _Process(replace(heartbeat, seq=0), at)
        return known.add(heartbeat, at)

    def _take_hint(self, hint: Hint) -> Skipped | None:
        name = hint.sender.incarnation
        if name not in self._hints and len(self._hints) >= MOST_PROCESSES:
            # All that is lost is that old hints are not told from new ones.
            self._hints.clear()
        numbers = self._hints.setdefault(name, [])
        if hint.seq in numbers:
            return Skipped.REPEATED
        if len(numbers) >= _MOST_HINTS and hint.seq < numbers[0]:
            return Skipped.LATE
        numbers.append(hint.seq)
        numbers.sort()
        del numbers[:-_MOST_HINTS]
        return None
