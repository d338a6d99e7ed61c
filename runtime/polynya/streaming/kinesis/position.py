"""How far the shards of streams were read, as landed batches write it down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from polynya.streaming.source import Described, Position


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
    since: datetime | None = None
    seen: datetime | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """How far a stream was read. `created` tells it from another one of its name."""

    created: datetime
    shards: Mapping[str, ShardPosition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KinesisPosition:
    """How far the streams of a landed table were read.

    `behind` is how many shards had more, or waited for their parents, when it was written; None
    where an older version wrote it.
    """

    streams: Mapping[str, StreamPosition] = field(default_factory=dict)
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
        behind = {} if self.behind is None else {"behind": self.behind}
        return {
            "streams": {
                name: {
                    "created": stream.created.isoformat(),
                    "shards": {
                        shard_id: _written(one) for shard_id, one in sorted(stream.shards.items())
                    },
                }
                for name, stream in sorted(self.streams.items())
            },
            **behind,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> KinesisPosition:
        """What `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        return cls(
            {
                name: StreamPosition(
                    datetime.fromisoformat(stream["created"]),
                    {shard_id: _read(one) for shard_id, one in stream["shards"].items()},
                )
                for name, stream in values["streams"].items()
            },
            values.get("behind"),
        )


def described(position: Position) -> Described:
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
        one for stream in found.streams.values() for one in stream.shards.values() if not one.ended
    )
    moments = [one.seen or one.since for one in open_shards]
    return Described(places, found.behind, min((one for one in moments if one), default=None))


def _place(shard: ShardPosition) -> str:
    if shard.ended:
        return "read to its end"
    if shard.after is not None:
        return f"after {shard.after}"
    return "from its first record" if shard.since is None else f"since {shard.since.isoformat()}"


def _written(shard: ShardPosition) -> dict[str, Any]:
    moments = {"since": shard.since, "seen": shard.seen}
    values: dict[str, Any] = {name: at.isoformat() for name, at in moments.items() if at}
    if shard.after is not None:
        values["after"] = shard.after
    if shard.ended:
        values["ended"] = True
    return values


def _read(values: Mapping[str, Any]) -> ShardPosition:
    after = values.get("after")
    return ShardPosition(
        None if after is None else str(after),
        _moment(values.get("since")),
        _moment(values.get("seen")),
        bool(values.get("ended", False)),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
