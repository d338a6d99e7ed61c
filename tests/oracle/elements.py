"""What `replace_elements` says, in plain Python: a record holds all elements that there are.

Nothing here is of the engine, nor of the reference fold. A record is the state of all of its
elements at one place in the order, so the rows of an order follow from its records alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Record:
    """One message of an order: its place in the order of events, its time, and its lines.

    `lines` is None where the message has no array. A message that is `gone` deletes its order.
    """

    order: int
    place: int
    time: int
    lines: Sequence[tuple[str, int]] | None = ()
    gone: bool = False

    @property
    def state(self) -> Mapping[str, int]:
        """Line → value; of two lines with one name the last counts."""
        return {} if self.gone else dict(self.lines or ())


@dataclass
class Line:
    """The versions of one line: value, whether it is deleted, from, to."""

    versions: list[list[int | bool | None]] = field(default_factory=list)

    def add(self, value: int, time: int, *, deleted: bool) -> None:
        """Put a version behind those that are there."""
        if self.versions:
            time = max(time, int(self.versions[-1][2] or 0))
            self.versions[-1][3] = time
        self.versions.append([value, deleted, time, None])

    @property
    def is_open(self) -> bool:
        """Whether the newest version is not a delete."""
        return bool(self.versions) and not self.versions[-1][1]


def lines_of(landed: Iterable[Record]) -> dict[tuple[int, str], Line]:
    """All lines that there ever were, of records as they landed, in this order."""
    # Of two records with one place the one counts that landed later.
    at_places = {(record.order, record.place): record for record in landed}
    lines: dict[tuple[int, str], Line] = {}
    for (order, _), record in sorted(at_places.items(), key=lambda item: item[0]):
        state = record.state
        for (of, name), line in lines.items():
            if of == order and name not in state and line.is_open:
                line.add(int(line.versions[-1][0] or 0), record.time, deleted=True)
        for name, value in state.items():
            lines.setdefault((order, name), Line()).add(value, record.time, deleted=False)
    return lines


def current(landed: Iterable[Record]) -> list[tuple[int, str, int]]:
    """Order, line and value of every line that is there now."""
    return sorted(
        (order, name, int(line.versions[-1][0] or 0))
        for (order, name), line in lines_of(landed).items()
        if line.is_open
    )


def history(landed: Iterable[Record]) -> list[tuple[int | str | bool | None, ...]]:
    """Order, line, value, deleted, from and to of every version, in order."""
    return [
        (order, name, *version)
        for (order, name), line in sorted(lines_of(landed).items())
        for version in line.versions
    ]
