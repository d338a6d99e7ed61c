"""What the footer of an ORC file says of nested values, which Arrow does not hand on.

A list of equal items takes a few bytes, whatever its length. The statistics of the columns tell how
many items there are, before Arrow makes all of a stripe.
https://orc.apache.org/specification/ORCv1/
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

import cramjam
from pyarrow import orc

from polynya.formats import limits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: Kinds of types, as the footer numbers them.
_NESTED: Final = frozenset({10, 11})
_TYPES, _STATISTICS = 4, 7
_KIND, _SUBTYPES = 1, 2
_VALUES, _COLLECTION = 1, 12
_CHILDREN: Final = 3

#: A field of a message: its number, and its value: a number, or bytes.
_Field = tuple[int, "int | bytes"]


def nested_values(reader: orc.ORCFile, file: BinaryIO, size: int) -> int:
    """How many values the lists and maps of a file hold, as it says; 0 where it does not say.

    `size` is that of the file, in bytes.
    """
    tail = reader.file_footer_length + reader.file_postscript_length + 1
    if not 0 < reader.file_footer_length <= min(size, limits.HEADER_BYTES):
        return 0
    file.seek(size - tail)
    try:
        footer = _uncompressed(
            file.read(reader.file_footer_length), reader.compression, reader.compression_size
        )
        return _counted(footer)
    except (ValueError, EOFError, zlib.error, zstd.ZstdError, cramjam.DecompressionError):
        # Whoever reads the rows says what is wrong.
        return 0


def _counted(footer: bytes) -> int:
    fields = [(number, value) for number, value in _fields(footer) if isinstance(value, bytes)]
    types = [list(_fields(value)) for number, value in fields if number == _TYPES]
    statistics = [list(_fields(value)) for number, value in fields if number == _STATISTICS]
    counts = [_sum(one, _VALUES) for one in statistics]
    total = 0
    for type_, own in zip(types, statistics, strict=False):
        if _sum(type_, _KIND) in _NESTED:
            inner = [kind for n, one in type_ if n == _SUBTYPES for kind in _packed(one)]
            total += max(_children(own), *(counts[at] for at in inner if at < len(counts)), 0)
    return total


def _sum(fields: list[_Field], wanted: int) -> int:
    return sum(one for number, one in fields if number == wanted and isinstance(one, int))


def _children(statistics: list[_Field]) -> int:
    """How many children the statistics of a list or a map tell, 0 where they tell none."""
    inner = (one for n, one in statistics if n == _COLLECTION and isinstance(one, bytes))
    return sum(_sum(list(_fields(one)), _CHILDREN) for one in inner)


def _packed(value: int | bytes) -> Iterator[int]:
    if isinstance(value, int):
        yield value
        return
    stream = io.BytesIO(value)
    while (number := _number(stream)) is not None:
        yield number


def _fields(message: bytes) -> Iterator[_Field]:
    """The fields of a message of Protocol Buffers. Raises ValueError."""
    stream = io.BytesIO(message)
    while (key := _number(stream)) is not None:
        number, kind = key >> 3, key & 7
        if number == 0:
            # Zeros behind a block of LZ4, which does not say how long it is.
            return
        if kind == 0:
            value = _number(stream)
            if value is None:
                raise ValueError("a number is cut off")
            yield number, value
        elif kind == 2:
            length = _number(stream)
            yield number, stream.read(min(length or 0, len(message)))
        elif kind in {1, 5}:
            stream.read(8 if kind == 1 else 4)
        else:
            raise ValueError(f"a field of kind {kind}")


def _number(stream: BinaryIO) -> int | None:
    """A number of variable length; None at the end."""
    found = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            return None
        found |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return found
    raise ValueError("a number is too long")


def _uncompressed(data: bytes, codec: str, block: int) -> bytes:
    """The content of chunks, each with its length in three bytes before it."""
    if codec in {"UNCOMPRESSED", "NONE"}:
        return data
    found = bytearray()
    at = 0
    while at + 3 <= len(data) and len(found) <= limits.HEADER_BYTES:
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        found += chunk if head & 1 else _expanded(chunk, codec, min(block, limits.HEADER_BYTES))
        at += 3 + (head >> 1)
    return bytes(found)


def _expanded(chunk: bytes, codec: str, most: int) -> bytes:
    match codec:
        case "ZLIB":
            return zlib.decompressobj(-15).decompress(chunk, most)
        case "ZSTD":
            return zstd.ZstdDecompressor().decompress(chunk, most)
        case "LZ4":
            return bytes(cramjam.lz4.decompress_block(chunk, output_len=most))
        case "SNAPPY" if cramjam.snappy.decompress_raw_len(chunk) <= most:
            return bytes(cramjam.snappy.decompress_raw(chunk))
        case _:
            raise ValueError(f"a chunk of {codec} that is too large, or not known")
