"""Kinesis shards read in parallel, with the records that its Producer Library aggregated.

An aggregated record is four bytes, a Protocol Buffers message and its MD5. Only the needed part of
the format is parsed here:
https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from polynya.formats.landed import SCHEMAS
from polynya.store.clock import Clock
from polynya.store.shards import BusyError, ExpiredError, ShardPage, ShardRecord, Shards
from polynya.streams.kinesis.plan import ShardPosition

_MAGIC: Final = b"\xf3\x89\x9a\xc2"
_DIGEST_BYTES: Final = 16
#: Fields of the message, and of each record in it.
_KEYS, _HASHES, _RECORDS = 1, 2, 3
_KEY, _HASH, _DATA = 1, 2, 3
#: Kinds of value in Protocol Buffers.
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10
_HIGHEST: Final = 2**128 - 1


@dataclass(frozen=True, slots=True)
class _Part:
    """A record as it is packed: indexes of its key and of its hash, if it has one, and its data."""

    key: int
    hashed: int | None
    data: bytes


def user_records(record: ShardRecord, hashes: tuple[int, int] | None) -> tuple[ShardRecord, ...]:
    """The records in one, in their order; the record itself when nothing is packed in it.

    The number of each is that of Kinesis and `.` and its own. Records whose hash is not in the
    shard's range `hashes` are left out: their producer did not know yet that the shard was split,
    and sends them again to where they belong.
    """
    packed = _packed(record.data)
    if packed is None:
        return (record,)
    try:
        found = [(key, _hash(key, hashed), data) for key, hashed, data in _records(packed)]
    except (ValueError, IndexError):
        # Somebody else's bytes that begin and end alike.
        return (record,)
    low, high = hashes or (0, _HIGHEST)
    return tuple(
        replace(record, number=f"{record.number}.{at:06d}", key=key, data=data)
        for at, (key, place, data) in enumerate(found)
        if low <= place <= high
    )


def _packed(data: bytes) -> bytes | None:
    """The message of Protocol Buffers in a record, None when there is none."""
    if not data.startswith(_MAGIC) or len(data) <= len(_MAGIC) + _DIGEST_BYTES:
        return None
    message, digest = data[len(_MAGIC) : -_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    right = hashlib.md5(message, usedforsecurity=False).digest() == digest
    return message if right else None


def _records(message: bytes) -> list[tuple[str, str | None, bytes]]:
    """Key, explicit hash and data of each record. Raises ValueError or IndexError."""
    keys: list[str] = []
    hashes: list[str] = []
    parts: list[_Part] = []
    for number, value in _fields(message):
        if not isinstance(value, bytes):
            continue
        if number == _KEYS:
            keys.append(value.decode())
        elif number == _HASHES:
            hashes.append(value.decode())
        elif number == _RECORDS:
            parts.append(_part(value))
    return [
        (keys[part.key], None if part.hashed is None else hashes[part.hashed], part.data)
        for part in parts
    ]


def _part(message: bytes) -> _Part:
    values = dict(_fields(message))
    key, hashed, data = values.get(_KEY), values.get(_HASH), values.get(_DATA)
    if not isinstance(key, int) or not isinstance(data, bytes) or isinstance(hashed, bytes):
        raise ValueError("a record without key or data")  # noqa: TRY004 - of its bytes
    return _Part(key, hashed, data)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field. Raises ValueError for what is not a message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        field, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield field, value
            continue
        size = {_FIXED_64: 8, _FIXED_32: 4}.get(kind)
        if kind == _BYTES:
            size, at = _varint(message, at)
        if size is None or at + size > len(message):
            raise ValueError("no message of Protocol Buffers")
        yield field, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number at a place, and the place after it. Raises ValueError."""
    value = 0
    for shift, byte in enumerate(message[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ValueError("a number without end")


def _hash(key: str, hashed: str | None) -> int:
    """Where a record belongs: its explicit hash, else that of its key. Raises ValueError."""
    if hashed is not None:
        return int(hashed)
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest(), "big")


#: A shard answers five reads a second, of all its readers together.
_PAUSE_SECONDS: Final = 0.25
#: Reads without a record after which a shard counts as read for now, although it says that more
#: follows: then a batch does not wait for it.
_MAX_EMPTY_READS: Final = 20
#: So often a place is asked for again that has expired.
_MAX_ITERATOR_RENEWALS: Final = 3
#: Threads that read, unless a task says how many: they wait for the network most of the time.
DEFAULT_READERS: Final = 8


@dataclass(frozen=True, slots=True)
class WantedShard:
    """A shard to be read from a position on; `hashes` as in `Shard`."""

    stream: str
    shard: str
    position: ShardPosition
    hashes: tuple[int, int] | None = None


@dataclass(slots=True)
class ReadShard:
    """What was read of a shard.

    Attributes:
        stream, shard: their names.
        position: after it.
        hashes: of the shard's keys; see `Shard`.
        records: in their order, those of one record of Kinesis together.
        bytes: of their data.
        behind: more can be read now.
        refused: why nothing could be read.
    """

    stream: str
    shard: str
    position: ShardPosition
    hashes: tuple[int, int] | None = None
    records: list[ShardRecord] = field(default_factory=list)
    bytes: int = 0
    behind: bool = False
    refused: BusyError | None = None


@dataclass(slots=True)
class _Place:
    """Where a shard goes on: the iterator for what follows a position."""

    position: ShardPosition
    iterator: str


class ShardsReader:
    """Reads shards, `readers` at a time. What it keeps between two batches saves requests only."""

    def __init__(self, shards: Shards, clock: Clock, *, readers: int = DEFAULT_READERS) -> None:
        self._shards, self._readers = shards, readers
        self._clock = clock
        self._places: dict[tuple[str, str], _Place] = {}

    def read(
        self,
        wanted: Sequence[WantedShard],
        *,
        max_records: int,
        max_bytes: int,
    ) -> list[ReadShard]:
        """Read from shards until each is read for now or has its part of the limits.

        Args:
            wanted: of which shards.
            max_records: most records of all.
            max_bytes: most bytes of all; one record is always taken.

        Raises:
            DependencyError: a shard cannot be read; or all that there is waits in busy ones.
        """
        if not wanted:
            return []
        readers = min(self._readers, len(wanted))
        found: list[ReadShard] = []
        with ThreadPoolExecutor(readers) as threads:
            # A few at a time: what one leaves of its part the next ones may use.
            for begin in range(0, len(wanted), readers):
                part = wanted[begin : begin + readers]
                records = max_records - sum(len(read.records) for read in found)
                size = max_bytes - sum(read.bytes for read in found)
                if found and (records < len(part) or size < len(part)):
                    found += [_unread(wanted, behind=True) for wanted in part]
                    continue
                found += threads.map(
                    lambda one: self._read_one(
                        one,
                        max_records=max(1, records // len(part)),  # noqa: B023 - read at once
                        max_bytes=max(1, size // len(part)),  # noqa: B023 - read at once
                    ),
                    part,
                )
        busy = next((read.refused for read in found if read.refused), None)
        if busy is not None and not any(read.records for read in found):
            raise busy
        return found

    def _read_one(self, wanted: WantedShard, *, max_records: int, max_bytes: int) -> ReadShard:
        found = _unread(wanted)
        empty = 0
        while True:
            try:
                page = self._page(found.stream, found.shard, found.position)
            except BusyError as error:
                # What others have is not to wait for it.
                found.behind = True
                found.refused = None if found.records else error
                return found
            self._take(found, page, max_records, max_bytes)
            empty = 0 if page.records else empty + 1
            full = len(found.records) >= max_records or found.bytes >= max_bytes
            if full or not found.behind or empty >= _MAX_EMPTY_READS:
                return found
            self._clock.sleep(_PAUSE_SECONDS)

    def _page(self, stream: str, shard: str, at: ShardPosition) -> ShardPage:
        """What follows a position."""
        known = self._places.pop((stream, shard), None)
        iterator = known.iterator if known and known.position == at else None
        for tries in range(_MAX_ITERATOR_RENEWALS):
            try:
                page = self._shards.read(stream, iterator or self._iterator(stream, shard, at))
            except ExpiredError:
                if tries == _MAX_ITERATOR_RENEWALS - 1:
                    raise
                iterator = None
                continue
            break
        return page

    def _iterator(self, stream: str, shard: str, at: ShardPosition) -> str:
        if at.after is not None:
            return self._shards.after(stream, shard, at.after)
        return self._shards.since(stream, shard, at.since)

    def _take(self, found: ReadShard, page: ShardPage, max_records: int, max_bytes: int) -> None:
        """Add the records of a page, as far as the shard's part of a batch has room."""
        before = self._clock.now() - page.behind
        for record in page.records:
            full = len(found.records) >= max_records or found.bytes + len(record.data) > max_bytes
            if full and found.records:
                found.behind = True
                return
            # A place is that of a record of Kinesis, so all that is in it comes at once.
            records = user_records(record, found.hashes)
            found.records += records
            found.bytes += sum(len(record.data) for record in records)
            found.position = ShardPosition(record.number, seen=record.arrived)
        if page.following is None:
            found.position = replace(found.position, ended=True)
            found.behind = False
            return
        found.behind = bool(page.behind)
        seen = max(filter(None, (found.position.seen, before)))
        found.position = replace(found.position, seen=seen)
        self._places[found.stream, found.shard] = _Place(found.position, page.following)


def _unread(wanted: WantedShard, *, behind: bool = False) -> ReadShard:
    return ReadShard(wanted.stream, wanted.shard, wanted.position, wanted.hashes, behind=behind)


def rows_of(found: Sequence[ReadShard]) -> pa.Table:
    """The records as the rows of a landed batch, shard after shard."""
    schema = SCHEMAS["kinesis"]
    columns: Mapping[str, list[object]] = {name: [] for name in schema.names}
    streams, shards, numbers, keys, times, values = columns.values()
    for one in found:
        streams += [one.stream] * len(one.records)
        shards += [one.shard] * len(one.records)
        for record in one.records:
            numbers.append(record.number)
            keys.append(record.key)
            times.append(record.arrived)
            values.append(record.data)
    arrays = [pa.array(columns[kind.name], kind.type) for kind in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
