"""Where a stream ends that would misread what follows, and where the next one begins. Pure.

Debezium reads rows by the columns that it took from statements. Where it has misunderstood one, a
new engine gets the history of schemas in words that it understands (`landing/statements.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from polynya.gateway.landing.places import Place
from polynya.gateway.landing.statements import misread, mistyped
from polynya.gateway.landing.stream import StreamEvent
from polynya.gateway.source import Offset

#: Of an offset: how much of a transaction was read.
_WITHIN: Final = frozenset({"event", "row"})


@dataclass(frozen=True, slots=True)
class Taken:
    """What lands of some events.

    Attributes:
        ends: the engine has to end behind them.
        begin: where the next one begins; None: behind the last of them.
        replaced: tables whose rows were left out, and where: they have to be loaded.
    """

    events: Sequence[StreamEvent]
    ends: bool = False
    begin: Offset | None = None
    replaced: tuple[tuple[str, Place], ...] = ()


class Misreading:
    """Watches the events of one engine."""

    def __init__(self, is_captured: Callable[[str], bool], understood: Collection[Place]) -> None:
        """Set up.

        Args:
            is_captured: whether rows of a table land.
            understood: places of statements that Debezium has been told in other words. It brings
                them once more.
        """
        self._is_captured, self._understood = is_captured, understood
        #: The place of a statement that is told in other words from now on.
        self.told: Place | None = None
        #: After a statement with types that are misread: its offset, until the log goes on.
        self._behind: Offset | None = None
        self._tables: dict[str, Place] = {}

    def take(self, events: Sequence[StreamEvent]) -> Taken:
        """What lands of these."""
        landing: list[StreamEvent] = []
        left_out: dict[str, Place] = {}
        for event in events:
            if self._behind is not None and event.kind != "end":
                offset = event.offset()
                if _group(offset) != _group(self._behind):
                    begin = {name: one for name, one in offset.items() if name not in _WITHIN}
                    return Taken(landing, ends=True, begin=begin, replaced=tuple(left_out.items()))
                if event.table in self._tables:
                    # A table that was made with its rows, by `CREATE TABLE … SELECT`.
                    left_out[event.table] = self._tables[event.table]
                    continue
            landing.append(event)
            if event.kind == "statement" and self._is_misread(event):
                return Taken(landing, ends=True)
        return Taken(landing, replaced=tuple(left_out.items()))

    def _is_misread(self, event: StreamEvent) -> bool:
        """Whether to end at once; else what follows a statement is held up in `_behind`."""
        found = misread(event.line)
        is_new = found is not None and found.place not in self._understood
        if found is not None and is_new and self._is_captured(found.table):
            self.told = found.place
            return True
        tables = {
            name: place for name, place in mistyped(event.line).items() if self._is_captured(name)
        }
        if tables:
            self._behind = event.offset()
            self._tables |= tables
        return False


def _group(offset: Offset) -> tuple[object, ...]:
    """The transaction in which an offset is."""
    return offset.get("gtids"), offset.get("file"), offset.get("pos")
