"""Which table is loaded next. Pure: from positions and settings to decisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from polynya.gateway.landing.position import Position

#: What a user may say of a table, in the order of loading.
PRIORITIES: Final = ("highest", "high", "normal", "low", "lowest")
_NORMAL: Final = PRIORITIES.index("normal")


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """How tables are loaded.

    Attributes:
        parallel: at most so many at a time.
        order: priority by table, for those that are not `normal`.
        where: condition of the rows to load, by table.
        chunk_rows: about so many rows land at once.
        retries: so often a table is tried again before it is given up.
        then: what giving it up means: `suspend` it, or `stop` the capture.
    """

    parallel: int = 5
    order: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    chunk_rows: int = 50_000
    retries: int = 3
    then: str = "suspend"

    def next_table(self, position: Position, running: Collection[str]) -> str | None:
        """The table that a free thread takes; None: there is none, or enough are loaded now.

        One that was begun comes before those that were not, then priority decides, then the name.
        """
        if len(running) >= self.parallel:
            return None
        waiting = [name for name in unloaded(position) if name not in running]
        return min(waiting, key=lambda name: self._rank(position, name), default=None)

    def _rank(self, position: Position, name: str) -> tuple[int, int, str]:
        is_begun = position.tables[name].state == "loading"
        return (0 if is_begun else 1, priority(self.order.get(name)), name)


def priority(word: str | None) -> int:
    """The rank of a priority, 0 first."""
    return PRIORITIES.index(word) if word in PRIORITIES else _NORMAL


def unloaded(position: Position) -> list[str]:
    """The tables that wait for their load, or are in it; suspended ones do neither."""
    return [name for name, one in position.tables.items() if one.state in {"queued", "loading"}]
