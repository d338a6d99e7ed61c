"""Which shards of Kinesis are read next, and how far each was read. Pure.

A shard from a split or a merge is read after all its parents were read to their ends, so that
records of one key keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from pydantic import TypeAdapter

from polynya.formats.landed import Lost
from polynya.model.documents.stored import Entries, Moment, from_stored
from polynya.store.shards import Shard, ShardedStream
from polynya.streams.source import Position, PositionSummary


@dataclass(frozen=True, slots=True)
class ShardPosition:
    """How far a shard was read.

    Attributes:
        after: number of the last record that was read, None before the first one.
        since: without one, from which moment on it is read; None: from its first record.
        seen: all that arrived before this moment was read.
        ended: it is closed and was read to its end.
    """

    after: str | None = None
    since: Moment | None = None
    seen: Moment | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class KinesisStreamPosition:
    """How far a stream was read. `created` tells it from another one of its name."""

    created: Moment
    shards: Entries[str, ShardPosition]


@dataclass(frozen=True, slots=True)
class KinesisPosition:
    """How far the streams of a landed table were read.

    `behind` is how many shards had more, or waited for their parents, when it was written; None
    where an older version wrote it.
    """

    streams: Entries[str, KinesisStreamPosition]
    behind: int | None = None

    def as_read(self) -> KinesisPosition:
        """The same of which something was read: what arrived since the stream is there is missed.

        Where nothing was read a stream may have deleted what it likes.
        """
        return KinesisPosition(
            {
                name: replace(
                    stream,
                    shards={
                        shard_id: replace(one, seen=one.seen or one.since or stream.created)
                        for shard_id, one in stream.shards.items()
                    },
                )
                for name, stream in self.streams.items()
            }
        )

    def to_json(self) -> dict[str, Any]:
        """The object in the footer of a landed batch."""
        values: dict[str, Any] = _STORED.dump_python(self, mode="json", exclude_defaults=True)
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> KinesisPosition:
        """Read what `to_json` wrote. Raises ValueError for anything else."""
        return from_stored(_STORED, values)


_STORED: Final = TypeAdapter(KinesisPosition)


def described(position: Position) -> PositionSummary:
    """What a position of Kinesis says of itself.

    How many records follow Kinesis does not tell: these are shards. Each knows up to which moment
    all that arrived was read, from what Kinesis says of how far a read is behind.
    """
    found = KinesisPosition.from_json(position)
    places = {
        f"{name}/{shard_id}": _place(one)
        for name, stream in sorted(found.streams.items())
        for shard_id, one in sorted(stream.shards.items())
    }
    open_shards = (
        shard
        for stream in found.streams.values()
        for shard in stream.shards.values()
        if not shard.ended
    )
    moments = [shard.seen or shard.since for shard in open_shards]
    return PositionSummary(
        places, found.behind, min((moment for moment in moments if moment), default=None)
    )


def _place(shard: ShardPosition) -> str:
    if shard.ended:
        return "read to its end"
    if shard.after is not None:
        return f"after {shard.after}"
    return "from its first record" if shard.since is None else f"since {shard.since.isoformat()}"


Start: TypeAlias = datetime | Literal["earliest", "now"]

#: Records that the stream deleted before they were read.
RETENTION: Final = "retention"
#: The stream was deleted and made again.
RECREATED: Final = "recreated"


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What is read of a stream next.

    Attributes:
        position: before reading, with the shards that came.
        readable: shards to be read, in the order of their names.
        waiting: how many shards wait for their parents.
        moves: the position says something new even without a record.
        lost: what is gone.
    """

    position: KinesisStreamPosition
    readable: tuple[str, ...]
    waiting: int
    moves: bool
    lost: tuple[Lost, ...] = ()


def plan(
    name: str,
    before: KinesisStreamPosition | None,
    stream: ShardedStream,
    start: Start,
    now: datetime,
) -> StreamPlan:
    """Decide which shards are read.

    Args:
        name: of the stream.
        before: how far it was read, None if it never was.
        stream: as it is now.
        start: where to begin one that was never read.
        now: the time.
    """
    lost: list[Lost] = []
    known = before
    if known is not None and known.created != stream.created:
        lost.append(Lost(name, known.created.isoformat(), stream.created.isoformat(), RECREATED))
        known, start = None, "earliest"
    there = {shard.id: shard for shard in stream.shards}
    if known is None:
        shards = _first(there, start, now)
    else:
        lost += [
            Lost(f"{name}/{shard_id}", one.after or "", "", RETENTION)
            for shard_id, one in sorted(known.shards.items())
            if shard_id not in there and not one.ended
        ]
        shards = {shard_id: one for shard_id, one in known.shards.items() if shard_id in there}
    horizon = now - stream.keeps
    for shard_id, one in sorted(shards.items()):
        if _is_overtaken(one, horizon):
            lost.append(Lost(f"{name}/{shard_id}", one.after or "", "", RETENTION))
            # All that was read arrived before it.
            shards[shard_id] = ShardPosition(since=horizon, seen=horizon)
    position = KinesisStreamPosition(stream.created, shards)
    readable, waiting, position = _readable(position, there)
    return StreamPlan(
        position,
        readable,
        waiting,
        moves=before is None or bool(lost),
        lost=tuple(lost),
    )


def _first(there: Mapping[str, Shard], start: Start, now: datetime) -> dict[str, ShardPosition]:
    """The shards with which a stream begins: those without parents, or those that are open."""
    if start == "now":
        # A moment stays the same place until a record comes; the newest place would move along.
        return {
            shard_id: ShardPosition(ended=True)
            if one.closed
            else ShardPosition(since=now, seen=now)
            for shard_id, one in there.items()
        }
    since = None if start == "earliest" else start
    return {
        shard_id: ShardPosition(since=since)
        for shard_id, one in there.items()
        if not any(parent in there for parent in one.parents)
    }


def _is_overtaken(shard: ShardPosition, horizon: datetime) -> bool:
    """Whether records may have been deleted that were not read: those that arrived after `seen`."""
    return not shard.ended and shard.seen is not None and shard.seen < horizon


def _readable(
    position: KinesisStreamPosition, there: Mapping[str, Shard]
) -> tuple[tuple[str, ...], int, KinesisStreamPosition]:
    """The shards to read; those that came and whose parents are done are in the position then."""
    shards = dict(position.shards)
    waiting = 0
    for shard_id, one in there.items():
        if shard_id in shards:
            continue
        parents = [parent for parent in one.parents if parent in there]
        if all(parent in shards and shards[parent].ended for parent in parents):
            seen = [shards[parent].seen for parent in parents]
            known = [moment for moment in seen if moment is not None]
            # Its records came after those of its parents.
            oldest = min(known) if known and len(known) == len(seen) else None
            shards[shard_id] = ShardPosition(since=_since(one, shards), seen=oldest)
        else:
            waiting += 1
    readable = tuple(sorted(shard_id for shard_id, one in shards.items() if not one.ended))
    return readable, waiting, replace(position, shards=shards)


def _since(shard: Shard, shards: Mapping[str, ShardPosition]) -> datetime | None:
    """Where a shard begins that came: as its parents did, if no record of theirs was read."""
    parents = [shards[parent] for parent in shard.parents if parent in shards]
    moments = [parent.since for parent in parents if parent.since is not None]
    return max(moments) if moments and len(moments) == len(parents) else None
