"""A table that reads its stream directly: which streams it takes, and its next batch.

Records are read like a landed batch and decoded at once. One commit of the table holds both the
rows and the position: after a kill before the commit the same records are read again, after a kill
behind it none are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from polynya.formats.base import KnownTable
from polynya.formats.batch import BatchLimits, DatasetBatch, FileProgress
from polynya.formats.landed import SCHEMAS, Lost, Messages, batch_name
from polynya.formats.stream.reading import read_direct
from polynya.model.config.stream_landing import DirectTask
from polynya.model.error_catalogue.streams import DIRECT_STREAM_MISSING, OTHER_STREAM_READ
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.model.positions import DirectPosition
from polynya.streams.landing import judge, waits
from polynya.streams.source import (
    LandingLimits,
    MessageSource,
    Next,
    Position,
    ReadMessages,
    Stream,
)


@dataclass(frozen=True, slots=True)
class FoundStreams:
    """The streams that a table takes, those that it leaves out, and why not all are there."""

    taken: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    refused: PolynyaError | None = None


def streams_of(
    task: DirectTask, source: MessageSource, position: DirectPosition | None
) -> FoundStreams:
    """The streams of the table of a task. `position` is that of the table.

    Raises TaskStoppedError when there are new ones, and the policy says so.
    """
    where, policy = f"task {task.reads.name}", task.reads.on_new_topic
    found = source.find()
    mine = {task.reads_table: found.tables.get(task.reads_table, ())}
    known = None if position is None else source.known(position.end)
    judged = judge(mine, known, policy, source.is_asked_for)
    waiting = waits(judged, policy, where)
    if waiting is not None and policy == "stop":
        raise waiting
    taken = judged.tables.get(task.reads_table, ())
    refused = waiting or found.refused
    if not taken and refused is None:
        refused = DIRECT_STREAM_MISSING(where=where, table=shown(task.reads_table))
    return FoundStreams(taken, judged.ignored, refused)


#: A position is asked for, and nothing is read.
_NOTHING: Final = LandingLimits(max_records=0, max_bytes=0)
_EVERYTHING: Final = BatchLimits(1 << 62, 1 << 62)
#: What is read is bounded by its bytes as they come; decoded it may be as much more.
_EXPANSION_FACTOR: Final = 2
#: So many messages say what the columns of a table are. Without columns each is read by itself.
_TYPE_SAMPLE_MESSAGES: Final = 1_000


@dataclass(frozen=True, slots=True)
class NextRead:
    """What is read next: after which position, of which streams, and what the source says of it.

    `began` is where the table began to read. `once` is that of `Stream.next`.
    """

    streams: tuple[str, ...]
    before: DirectPosition | None
    began: Position
    next: Next
    once: bool

    @property
    def begin(self) -> Position:
        """The position before it."""
        return self.began if self.before is None else self.before.end

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to commit. The first position is always written down."""
        return self.before is not None and self.next.is_nothing


@dataclass(frozen=True, slots=True)
class DirectBatch:
    """A batch with its records and bytes; the position after it; what was lost, and is behind."""

    batch: DatasetBatch
    records: int
    size_bytes: int
    end: Position
    lost: tuple[Lost, ...]
    behind: int


class DirectReader:
    """Reads the stream of one table: `stream`, or that of the source. Not for several threads."""

    def __init__(
        self, task: DirectTask, source: MessageSource, stream: Stream | None = None
    ) -> None:
        self._task, self._kind = task, source.kind
        self._stream = stream or source.stream(task.reads_table)
        landing = task.reads.batch
        self._bytes = min(landing.max_bytes, task.batch.max_bytes)
        self._most = min(landing.max_records, task.batch.max_rows)
        self._records = self._most
        self._decoded = BatchLimits(task.batch.max_rows, _EXPANSION_FACTOR * task.batch.max_bytes)

    def decide(
        self, streams: tuple[str, ...], position: DirectPosition | None, *, once: bool
    ) -> NextRead:
        """What is next.

        Args:
            streams: what there is now for the table.
            position: of the table, None before its first batch.
            once: read nothing that came after the first call.
        """
        if position is None:
            began = self._stream.next(streams, None, _NOTHING, once=False).end
            self._records = min(self._records, _TYPE_SAMPLE_MESSAGES)
        else:
            began = position.began
        begin = began if position is None else position.end
        found = self._stream.next(streams, begin, self._limits(), once=once)
        return NextRead(streams, position, began, found, once)

    def read(
        self, wanted: NextRead, known: KnownTable, now: datetime, *, load: bool = False
    ) -> DirectBatch:
        """Read what was decided, or less where it expands to more than one copy may hold.

        Raises what sources and decoders raise.
        """
        found = wanted.next
        while True:
            taken = self._taken(found)
            messages = self._messages(wanted, taken)
            limits = _EVERYTHING if self._records == 1 else self._decoded
            batch, count = read_direct(known, messages, limits, load=load)
            if count == len(messages):
                break
            self._records = max(1, min(count, self._records // 2))
            found = self._stream.next(
                wanted.streams, wanted.begin, self._limits(), once=wanted.once
            )
        # After the first batch columns are known; after a batch that was cut to fit more may fit.
        self._records = self._most if wanted.before is None else min(self._most, 2 * self._records)
        stream = self._position(wanted, found, taken, now)
        size = FileProgress(taken.size_bytes, batch.rows_in, complete=True)
        files = {f"{self._kind}:{self._task.reads_table}": size}
        batch = replace(batch, files=files, stream=stream)
        records, size_bytes = taken.rows.num_rows, taken.size_bytes
        return DirectBatch(batch, records, size_bytes, taken.end, found.lost, taken.behind)

    def _limits(self) -> LandingLimits:
        return LandingLimits(self._records, self._bytes)

    def _taken(self, found: Next) -> ReadMessages:
        if found.records:
            return self._stream.read(found, self._limits())
        return ReadMessages(SCHEMAS[self._kind].empty_table(), found.end, 0, found.behind)

    def _messages(self, wanted: NextRead, taken: ReadMessages) -> Messages:
        # Named like a landed batch: the number places its records in the order of events.
        name, content = batch_name(_number(wanted.before)), self._task.reads.content
        return replace(Messages.of_rows(name, self._kind, content, taken.rows), direct=True)

    def _position(
        self, wanted: NextRead, found: Next, taken: ReadMessages, now: datetime
    ) -> DirectPosition:
        before, records = wanted.before, taken.rows.num_rows
        counts = {"records": records, "bytes": taken.size_bytes, "lost": found.lost_records}
        totals: Mapping[str, int] = {} if before is None else before.totals
        return DirectPosition(
            task=self._task.reads.name,
            table=self._task.reads_table,
            source=self._kind,
            number=_number(before),
            began=wanted.began,
            end=taken.end,
            read_at=now.astimezone(UTC).isoformat(),
            before=None if before is None else before.read_at,
            records=records,
            totals={name: totals.get(name, 0) + count for name, count in counts.items()},
            lost=[_written(gap) for gap in found.lost],
            bytes=taken.size_bytes,
        )

    def refuse_other(self, position: DirectPosition | None) -> None:
        """Raise OperationError for a position of another stream (POLYNYA-STR-065)."""
        mine = (self._kind, self._task.reads_table)
        if position is not None and (position.source, position.table) != mine:
            raise OTHER_STREAM_READ(
                where=f"task {self._task.name}",
                table=shown(position.table),
                source=position.source,
                new_table=shown(self._task.reads_table),
                new_source=self._kind,
            )


def at_its_begin(position: DirectPosition) -> DirectPosition:
    """The position of a table that is to read all again; its next batch has the next number."""
    return replace(
        position, end=position.began, before=None, records=0, totals={}, lost=(), bytes=0
    )


def _number(before: DirectPosition | None) -> int:
    return 1 if before is None else before.number + 1


def _written(lost: Lost) -> dict[str, Any]:
    return {"at": lost.at, "from": lost.begin, "to": lost.end, "why": lost.why}
