"""Records of users out of one record of Kinesis, as its Producer Library packs them.

Such a record is four bytes, a message of Protocol Buffers and its MD5. Of that format only what is
needed is read here:
https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from polynya.store.shards import ShardRecord

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
    for field, value in _fields(message):
        if not isinstance(value, bytes):
            continue
        if field == _KEYS:
            keys.append(value.decode())
        elif field == _HASHES:
            hashes.append(value.decode())
        elif field == _RECORDS:
            parts.append(_part(value))
    return [
        (keys[one.key], None if one.hashed is None else hashes[one.hashed], one.data)
        for one in parts
    ]


def _part(message: bytes) -> _Part:
    values = dict(_fields(message))
    key, hashed, data = values.get(_KEY), values.get(_HASH), values.get(_DATA)
    if not isinstance(key, int) or not isinstance(data, bytes) or isinstance(hashed, bytes):
        raise ValueError("a record without key or data")  # noqa: TRY004 - of its bytes
    return _Part(key, hashed, data)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field. Raises ValueError for what is no message."""
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
