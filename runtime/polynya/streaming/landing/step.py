"""One step of a landed table: what is next, read it, put it with the position after it.

A kill before the put loses nothing: the position is that of the batch before, and the same records
are read again. A kill after it doubles nothing: the position came with the records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from polynya.formats.landed.batch import SCHEMAS, Counts, StreamFooter
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.contract.identifiers import shown
from polynya.model.errors import OperationError
from polynya.streaming.landing.log import LandedLog
from polynya.streaming.source import Limits, Next, Position, Source, Taken

#: The position of who was never landed, in the footer of the first batch.
NOWHERE: Final[dict[str, object]] = {}
#: A position is written down, and nothing is read.
_NOTHING: Final = Limits(max_records=0, max_bytes=0)


@dataclass(frozen=True, slots=True)
class Landed:
    """A batch that was put: what it says, its size, and the records behind it."""

    footer: StreamFooter
    object_bytes: int
    behind: int


class Lander:
    """Takes the steps of one landed table."""

    def __init__(self, task: StreamingLanding, source: Source, log: LandedLog) -> None:
        self._task, self._log = task, log
        self._kind, self._stream = source.kind, source.stream(log.table)
        self._limits = Limits(task.batch.max_records, task.batch.max_bytes)
        self._first: tuple[tuple[str, ...], Next] | None = None

    def decide(self, streams: tuple[str, ...], *, once: bool) -> Next:
        """What is next; see `Stream.next`.

        Raises OperationError when the table is another's, or its newest batch cannot be read.
        """
        position = self._position()
        if position is not None:
            return self._stream.next(streams, position, self._limits, once=once)
        first = self._begin(streams)
        found = self._stream.next(streams, first.end, self._limits, once=once)
        return replace(found, moves=first.moves or found.moves)

    def land(self, wanted: Next, now: datetime) -> Landed | None:
        """Read what was decided and put it; None when another writer was first."""
        footer, taken = self.read(wanted, now)
        size = self._log.put(footer, taken.rows)
        if size is None:
            self._log.look_again()
            return None
        return Landed(footer, size, taken.behind)

    def read(self, wanted: Next, now: datetime) -> tuple[StreamFooter, Taken]:
        """What a batch of what was decided would hold, and say. Nothing is put."""
        if wanted.records:
            taken = self._stream.read(wanted, self._limits)
        else:
            taken = Taken(SCHEMAS[self._kind].empty_table(), wanted.end, 0, wanted.behind)
        return self._footer(wanted, taken, now), taken

    def write_down(self, streams: tuple[str, ...], now: datetime) -> None:
        """Put a first batch without records, which says where reading begins, if there is none."""
        if self._position() is None:
            self.land(self._begin(streams), now)

    def _begin(self, streams: tuple[str, ...]) -> Next:
        """Where reading begins. It is written down for good: a reload from the source needs it."""
        if self._first is None or self._first[0] != streams:
            self._first = streams, self._stream.next(streams, None, _NOTHING, once=False)
        return self._first[1]

    def _position(self) -> Position | None:
        newest = self._log.newest()
        if newest is not None and newest.task != self._task.name:
            raise _of_another(self._log, newest.task)
        return None if newest is None else newest.end

    def _footer(self, wanted: Next, taken: Taken, now: datetime) -> StreamFooter:
        before = self._log.newest()
        first = None if self._first is None else self._first[1].end
        counts = Counts(taken.rows.num_rows, taken.size_bytes, wanted.lost_records)
        return StreamFooter(
            task=self._task.name,
            table=self._log.table,
            source=self._kind,
            number=1 if before is None else before.number + 1,
            content=self._task.content,
            begin=NOWHERE if before is None else before.end,
            end=taken.end,
            written_at=now,
            counts=counts,
            totals=counts if before is None else before.totals.plus(counts),
            lost=wanted.lost,
            began=first if before is None else before.began,
        )


def _of_another(log: LandedLog, owner: str) -> OperationError:
    return OperationError(
        "POLYNYA-STR-013",
        f"the landed table {shown(log.table)} was written by the task {shown(owner)}",
        where=log.folder,
        state="nothing was landed; what is there stays as it is",
        fix="give this task another `folder`. If the task was renamed, give it its name back, or "
        "land into a new folder: a landed table belongs to one task",
    )
