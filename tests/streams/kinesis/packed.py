"""Records as the Kinesis Producer Library packs them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

MAGIC = b"\xf3\x89\x9a\xc2"


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def sealed(message: bytes) -> bytes:
    return MAGIC + message + hashlib.md5(message, usedforsecurity=False).digest()


def packed(
    *records: tuple[str, bytes], hashes: Sequence[int | None] = (), tags: bytes = b""
) -> bytes:
    """One record of Kinesis that holds these; `hashes` are the explicit ones of some."""
    keys = list(dict.fromkeys(key for key, _ in records))
    places = [one for one in hashes if one is not None]
    message = b"".join(text(1, key.encode()) for key in keys)
    message += b"".join(text(2, str(one).encode()) for one in places)
    for index, (key, data) in enumerate(records):
        part = number(1, keys.index(key))
        explicit = hashes[index] if index < len(hashes) else None
        if explicit is not None:
            part += number(2, places.index(explicit))
        message += text(3, part + text(3, data) + tags)
    return sealed(message)
