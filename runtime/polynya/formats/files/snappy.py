"""Snappy's two stream formats, in pieces of bounded size: the framing format and Hadoop's blocks.

https://github.com/google/snappy/blob/main/framing_format.txt
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

import cramjam

IDENTIFIER: Final = b"\xff\x06\x00\x00sNaPpY"
_GROUP_BYTES = 1024 * 1024
#: Hadoop's default is 256 KiB; more than this is no length but other bytes.
_MAX_BLOCK_BYTES = 64 * 1024 * 1024


def framed(source: BinaryIO) -> Iterator[bytes]:
    """The content of a framed stream; checksums are verified.

    Raises:
        EOFError: truncated.
        cramjam.DecompressionError: damaged.
    """
    # A chunk holds 64 KiB at most, so a group of them stays small whatever it expands to.
    group = bytearray(IDENTIFIER)
    while head := source.read(4):
        body = _exactly(source, int.from_bytes(head[1:], "little"))
        group += head + body
        if len(group) >= _GROUP_BYTES:
            yield bytes(cramjam.snappy.decompress(group))
            group = bytearray(IDENTIFIER)
    yield bytes(cramjam.snappy.decompress(group))


def hadoop_blocks(source: BinaryIO) -> Iterator[bytes]:
    """The content of Hadoop's `SnappyCodec`: blocks of chunks, each with its length before it.

    Raises:
        EOFError: truncated.
        ValueError: lengths that contradict each other.
        cramjam.DecompressionError: damaged.
    """
    while head := source.read(4):
        left = _length(head)
        while left:
            chunk = _exactly(source, _length(source.read(4)))
            size = cramjam.snappy.decompress_raw_len(chunk)
            if not 0 < size <= left:
                raise ValueError(f"a chunk of {size} bytes where {left} are left in its block")
            yield bytes(cramjam.snappy.decompress_raw(chunk))
            left -= size


def _length(field: bytes) -> int:
    if len(field) < 4:
        raise EOFError("it ends within a length")
    size = int.from_bytes(field, "big")
    if size > _MAX_BLOCK_BYTES:
        raise ValueError(f"a block of {size} bytes")
    return size


def _exactly(source: BinaryIO, size: int) -> bytes:
    body = source.read(size)
    if len(body) < size:
        raise EOFError(f"it ends {size - len(body)} bytes before the end of a chunk")
    return body
