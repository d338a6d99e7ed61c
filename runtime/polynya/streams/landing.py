"""Landing a stream: the log of a table's landed batches, and the step that adds the next one.

A batch is an object that is written once and never changed. Its number makes it the next one: if
two writers put the same number, one wins and the other reads the log again.

A step decides what is next, reads it, and puts it together with the position after it. After a kill
before the put, the same records are read again from the position of the previous batch. After a
kill behind it nothing is read twice, because the position came with the records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from polynya.formats.errors import UnreadableFileError
from polynya.formats.landed import (
    SCHEMAS,
    VALUE,
    Counts,
    Lost,
    StreamFooter,
    batch_name,
    batch_number,
    read_footer,
    write_batch,
)
from polynya.formats.opening import source_of
from polynya.model.config.evolution import Policy
from polynya.model.config.stream_content import JSON_CONTENT, Content
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.error_catalogue.streams import (
    LANDED_TABLE_TAKEN,
    NEW_TOPICS_SUSPENDED,
    NEWEST_BATCH_UNUSABLE,
)
from polynya.model.errors import OperationError, TaskStoppedError
from polynya.model.headers import STREAM_HEADERS, TIME_HEADERS, StreamSource
from polynya.model.names import shown
from polynya.store.object_store import ObjectInfo, ObjectStore, checked_path
from polynya.streams.source import LandingLimits, MessageSource, Next, Position, ReadMessages


class LandedLog:
    """The batches of one landed table. `newest` is remembered, so that nobody lists for nothing."""

    def __init__(self, store: ObjectStore, folder: str, table: str) -> None:
        self.folder = str(checked_path(f"{folder}/{table}"))
        self.table = table
        self._store = store
        self._newest: StreamFooter | None = None
        self._is_known = False

    def newest(self) -> StreamFooter | None:
        """What the batch with the highest number says; None: nothing was landed.

        Raises:
            OperationError: POLYNYA-STR-014, it cannot be read, or does not begin where the one
                before it ends. Nobody may guess the position.
        """
        if not self._is_known:
            numbers = self.numbers()
            newest = self.footer(max(numbers)) if numbers else None
            before = self._footer(newest.number - 1) if newest and newest.number > 1 else None
            if newest is not None and before is not None:
                self._require_successor(before, newest)
            self._newest, self._is_known = newest, True
        return self._newest

    def look_again(self) -> None:
        """Another writer has put batches: find the newest among those that came.

        Raises OperationError as `newest`.
        """
        if self._newest is None:
            self._is_known = False
            return
        while (after := self._footer(self._newest.number + 1)) is not None:
            self._require_successor(self._newest, after)
            self._newest = after

    def put(self, footer: StreamFooter, rows: pa.Table) -> int | None:
        """Put the next batch; its size in bytes, None when another writer was first."""
        data = write_batch(footer, rows)
        if not self._store.put_if_absent(self.path(footer.number), data):
            return None
        self._newest, self._is_known = footer, True
        return len(data)

    def numbers(self) -> list[int]:
        """The numbers of the batches that there are. Lists the folder."""
        return sorted(batch_number(batch.path) or 0 for batch in self.batches())

    def batches(self) -> Iterator[ObjectInfo]:
        """The batches that there are. Lists the folder."""
        for info in self._store.list(self.folder):
            number = batch_number(info.path)
            # A folder inside is somebody else's.
            if number is not None and info.path == self.path(number):
                yield info

    def footer(self, number: int) -> StreamFooter:
        """What a batch says of itself. Raises OperationError when it cannot be read."""
        footer = self._footer(number)
        if footer is None:
            raise NEWEST_BATCH_UNUSABLE(where=self.path(number), reason="it does not exist")
        return footer

    def footer_if_there(self, number: int) -> StreamFooter | None:
        """The same, None when the batch is not there. Raises OperationError as `footer`."""
        return self._footer(number)

    def written_at(self, number: int) -> datetime | None:
        """When a batch was written; None when it is not there. Raises as `footer`."""
        footer = self._footer(number)
        return None if footer is None else footer.written_at

    def delete(self, number: int) -> None:
        """Remove a batch that is not the newest."""
        self._store.delete(self.path(number))

    def path(self, number: int) -> str:
        """The path of a batch in the landing zone."""
        return f"{self.folder}/{batch_name(number)}"

    def _require_successor(self, before: StreamFooter, after: StreamFooter) -> None:
        """Require that a batch continues the one before it; otherwise somebody else wrote it."""
        if after.begin != before.end:
            reason = f"it does not begin where number {before.number} ends"
            raise NEWEST_BATCH_UNUSABLE(where=self.path(after.number), reason=reason)

    def _footer(self, number: int) -> StreamFooter | None:
        path = self.path(number)
        try:
            with source_of(self._store, path) as file:
                found = read_footer(file, path)
        except UnreadableFileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise NEWEST_BATCH_UNUSABLE(where=path, reason=error) from error
        if found.number != number:
            raise NEWEST_BATCH_UNUSABLE(where=path, reason=f"its footer has number {found.number}")
        return found


def landed_tables(store: ObjectStore, folder: str) -> dict[str, int]:
    """The tables that a landing has, with the highest number of each. Lists the folder."""
    found: dict[str, int] = {}
    for info in store.list(folder):
        number = batch_number(info.path)
        inside = info.path.removeprefix(f"{folder}/").split("/")
        if number is not None and len(inside) == 2:
            found[inside[0]] = max(number, found.get(inside[0], 0))
    return found


#: The position before the first batch of a table, in its footer.
NOWHERE: Final[dict[str, object]] = {}
#: A position is written down, and nothing is read.
_NOTHING: Final = LandingLimits(max_records=0, max_bytes=0)


@dataclass(frozen=True, slots=True)
class LandedBatch:
    """A batch that was put: what it says, its size, and the records behind it."""

    footer: StreamFooter
    object_bytes: int
    behind: int


class StreamLander:
    """Takes the steps of one landed table."""

    def __init__(self, task: StreamingLanding, source: MessageSource, log: LandedLog) -> None:
        self._task, self._log = task, log
        self._kind, self._stream = source.kind, source.stream(log.table)
        self._limits = LandingLimits(task.batch.max_records, task.batch.max_bytes)
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

    def land(self, wanted: Next, now: datetime) -> LandedBatch | None:
        """Read what was decided and put it; None when another writer was first."""
        footer, taken = self.read(wanted, now)
        size = self._log.put(footer, taken.rows)
        if size is None:
            self._log.look_again()
            return None
        return LandedBatch(footer, size, taken.behind)

    def read(self, wanted: Next, now: datetime) -> tuple[StreamFooter, ReadMessages]:
        """What a batch of what was decided would hold, and say. Nothing is put."""
        if wanted.records:
            taken = self._stream.read(wanted, self._limits)
        else:
            taken = ReadMessages(SCHEMAS[self._kind].empty_table(), wanted.end, 0, wanted.behind)
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
            raise LANDED_TABLE_TAKEN(
                where=self._log.folder,
                table=shown(self._log.table),
                owner=f"the task {shown(newest.task)}",
            )
        return None if newest is None else newest.end

    def _footer(self, wanted: Next, taken: ReadMessages, now: datetime) -> StreamFooter:
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


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """A batch that was not put: its object and the path that it would have.

    `messages` were read, and the source has `behind` more, at most; `lost` is what it has no more.
    """

    path: str
    data: bytes
    messages: int
    behind: int
    lost: tuple[Lost, ...]


def sample(
    lander: StreamLander, log: LandedLog, streams: tuple[str, ...], now: datetime
) -> SampleBatch:
    """Read what is next of a table. Raises as `StreamLander.decide` and `StreamLander.land` do."""
    footer, taken = lander.read(lander.decide(streams, once=True), now)
    data = write_batch(footer, taken.rows)
    return SampleBatch(
        log.path(footer.number), data, taken.rows.num_rows, taken.behind, footer.lost
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """What is landed of the streams that there are.

    Attributes:
        tables: the streams that are landed, by landed table.
        ignored: streams that are left out, by the policy `ignore`.
        suspended: streams that wait for a decision.
    """

    tables: Mapping[str, tuple[str, ...]]
    ignored: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()


def judge(
    found: Mapping[str, tuple[str, ...]],
    known: Collection[str] | None,
    policy: Policy,
    is_asked_for: Callable[[str], bool],
) -> Judged:
    """Decide what is landed.

    Args:
        found: the streams that there are now, by landed table.
        known: those that were landed before; None: it is the first look, and what is there is what
            was asked for.
        policy: of the task, for those that a wildcard meets later.
        is_asked_for: whether a stream is named in the task.
    """
    there = {stream for streams in found.values() for stream in streams}
    new = (
        set()
        if known is None or policy == "apply"
        else {stream for stream in there if stream not in known and not is_asked_for(stream)}
    )
    tables = {
        table: tuple(stream for stream in streams if stream not in new)
        for table, streams in found.items()
    }
    left = tuple(sorted(new))
    return Judged(
        tables={table: streams for table, streams in tables.items() if streams},
        ignored=left if policy == "ignore" else (),
        suspended=left if policy in {"suspend", "stop"} else (),
    )


def waits(judged: Judged, policy: Policy, where: str) -> OperationError | None:
    """The error for streams that wait for a decision, None when none does.

    With the policy `stop` it ends the task.
    """
    if not judged.suspended:
        return None
    names = ", ".join(shown(stream) for stream in judged.suspended[:5])
    entry = NEW_TOPICS_SUSPENDED
    if policy == "stop":
        return entry.raising(TaskStoppedError)(where=where, policy=policy, topics=names)
    return entry(where=where, policy=policy, topics=names)


#: Of a source that has shards, the name of its only one.
_SHARD = "shardId-000000000000"


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and the header columns that it does not have by default."""

    value: bytes
    headers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ByHand:
    """A landed table: the task and the kind of source that landed it, and what messages mean."""

    task: str
    table: str
    source: StreamSource = "kafka"
    content: Content = JSON_CONTENT

    def batch(
        self, number: int, first: int, messages: Sequence[Message], at: datetime
    ) -> tuple[str, bytes]:
        """Path below the landing folder, and content, of the batch with this number.

        `first` is the position of its first message; all came at the time `at` to one partition.
        Raises ValueError when a header column is none of the source's, or of another type.
        """
        columns: dict[str, list[Any]] = {name: [] for name in SCHEMAS[self.source].names}
        for position, message in enumerate(messages, first):
            unknown = sorted(message.headers.keys() - STREAM_HEADERS[self.source].keys())
            if unknown:
                raise ValueError(f"{unknown[0]} is not a header column of {self.source}")
            row = {**self._headers(position, message, at), VALUE: message.value}
            for name, values in columns.items():
                values.append(row.get(name))
        try:
            rows = pa.table(columns, SCHEMAS[self.source])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(f"a header column: {error}") from error
        counts = Counts(len(messages), sum(len(message.value) for message in messages))
        footer = StreamFooter(
            self.task, self.table, self.source, number, self.content, {}, {}, at, counts, counts
        )
        return f"{self.table}/{batch_name(number)}", write_batch(footer, rows)

    def _headers(self, position: int, message: Message, at: datetime) -> dict[str, Any]:
        usual: Mapping[StreamSource, dict[str, Any]] = {
            "kafka": {
                "hdr__kafka_topic": self.table,
                "hdr__kafka_partition": 0,
                "hdr__kafka_offset": position,
            },
            "kinesis": {
                "hdr__kinesis_stream": self.table,
                "hdr__kinesis_shard": _SHARD,
                "hdr__kinesis_offset": str(position),
            },
            "files": {
                "hdr__file_name": self.table,
                "hdr__file_size": len(message.value),
                "hdr__file_record": position,
            },
            "http": {
                "hdr__http_resource": self.table,
                "hdr__http_read": 1,
                "hdr__http_page": 0,
                "hdr__http_record": position,
            },
        }
        headers = dict(usual[self.source])
        time = TIME_HEADERS.get(self.source)
        if time is not None:
            headers[time] = at
            given = message.headers.get(time)
            if isinstance(given, str):
                return {**headers, **message.headers, time: datetime.fromisoformat(given)}
        return {**headers, **message.headers}
