"""Avro that would take more memory than its bytes let one expect is refused before it is read."""

from __future__ import annotations

import bz2
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import cramjam

from polynya.formats.contents.compressed import MOST_BYTES
from polynya.formats.contents.decoded import MOST_RECORDS, too_many
from polynya.formats.errors import RecordError
from polynya.formats.records.avro import DAMAGE, block_bodies
from polynya.formats.records.avro_types import MAX_DEPTH, named_types

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def check_schema(schema: Any, others: Mapping[str, Any]) -> None:
    """Raise ValueError for a schema with arrays of items that take no bytes.

    A datum of ten bytes could have any number of them.
    """
    _check(schema, {**others, **named_types(schema)}, set(), 0)


def check_blocks(file: io.BytesIO, header: bytes, codec: str) -> None:
    """Refuse a container that expands to more than a message may.

    Raises:
        RecordError: too_large.
    """
    records = size = 0
    for count, body in block_bodies(file, header):
        records += count
        if records > MOST_RECORDS:
            raise too_many()
        if codec != "null":
            size += _expanded_size(codec, body, MOST_BYTES - size)
        if size > MOST_BYTES:
            raise RecordError(
                "too_large", f"an Avro container of more than {MOST_BYTES:,} bytes, decompressed"
            )


def _expanded_size(codec: str, body: bytes, most: int) -> int:
    """The size of a block, or something greater than `most`."""
    try:
        match codec:
            case "deflate":
                return len(zlib.decompressobj(-15).decompress(body, most + 1))
            case "snappy":
                return int(cramjam.snappy.decompress_raw_len(body[:-4]))
            case "bzip2":
                return _in_pieces(bz2.BZ2Decompressor, body, most)
            case "xz":
                return _in_pieces(lzma.LZMADecompressor, body, most)
            case _:
                return _in_pieces(zstd.ZstdDecompressor, body, most)
    except DAMAGE:
        # The reader says what is wrong with it.
        return 0


class _Decompressor(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _in_pieces(make: Callable[[], Any], body: bytes, most: int) -> int:
    """The size of streams one after the other."""
    size = 0
    while body and size <= most:
        stream: _Decompressor = make()
        size += len(stream.decompress(body, most + 1 - size))
        body = stream.unused_data if stream.eof else b""
    return size


def _check(schema: Any, named: Mapping[str, Any], seen: set[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError("the schema is nested too deeply")
    if isinstance(schema, list):
        for branch in schema:
            _check(branch, named, seen, depth + 1)
    elif isinstance(schema, str):
        if schema in named and schema not in seen:
            seen.add(schema)
            _check(named[schema], named, seen, depth + 1)
    elif isinstance(schema, Mapping):
        for item in schema.get("fields", ()):
            _check(item["type"], named, seen, depth + 1)
        if "items" in schema and _takes_no_bytes(schema["items"], named, 0):
            raise ValueError("an array has items that take no bytes")
        for inner in ("items", "values", "type"):
            if isinstance(schema.get(inner), list | Mapping) or inner != "type":
                _check(schema.get(inner), named, seen, depth + 1)


def _takes_no_bytes(schema: Any, named: Mapping[str, Any], depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(schema, str):
        if schema in named:
            return _takes_no_bytes(named[schema], named, depth + 1)
        return schema == "null"
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "record":
        return all(_takes_no_bytes(one["type"], named, depth + 1) for one in schema["fields"])
    if schema.get("type") == "fixed":
        return int(schema["size"]) == 0
    kind = schema.get("type")
    return kind not in {"array", "map", "enum"} and _takes_no_bytes(kind, named, depth + 1)
