"""Compressed files, recognized by their first bytes; a stream is read to its end or refused.

Several members or frames one after the other are one file, as `cat a.gz b.gz` makes them.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import SEEK_END, BufferedIOBase
from typing import BinaryIO

import cramjam
import pyarrow as pa

from polynya.formats import limits
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files import snappy
from polynya.formats.files.spool import PIECE_BYTES, spooled

_DAMAGE = (EOFError, OSError, ValueError, zlib.error, pa.ArrowException, cramjam.DecompressionError)


@dataclass(frozen=True, slots=True)
class Codec:
    """One kind of compression: its name, how it begins, and what its content is, in pieces."""

    name: str
    start: re.Pattern[bytes]
    pieces: Callable[[BinaryIO], Iterator[bytes]]


def codec_of(head: bytes, path: str) -> Codec | None:
    """The compression of a file, by its first bytes; Hadoop's blocks also need the name."""
    for codec in _CODECS:
        if codec.start.match(head):
            return codec
    is_hadoop = path.lower().endswith(".snappy") and head.startswith(b"\0")
    return _HADOOP_SNAPPY if is_hadoop else None


def decompressed(source: BinaryIO, codec: Codec) -> AbstractContextManager[BinaryIO]:
    """The content, seekable, at its start.

    Raises:
        UnreadableFileError: on entering, when it is truncated or damaged, or expands to more than
            a file of its size may.
    """
    return spooled(_limited(source, codec))


def _limited(source: BinaryIO, codec: Codec) -> Iterator[bytes]:
    size = source.seek(0, SEEK_END)
    source.seek(0)
    most, found = limits.content_bytes(size), 0
    for piece in pieces_of(source, codec):
        found += len(piece)
        if found > most:
            raise limits.refuse_content(f"a {codec.name} archive", size)
        yield piece


def pieces_of(source: BinaryIO, codec: Codec) -> Iterator[bytes]:
    """The content in pieces, of which none is large. Raises UnreadableFileError."""
    try:
        yield from codec.pieces(source)
    except _DAMAGE as error:
        raise UnreadableFileError(f"broken {codec.name} archive: {error}") from error


def _gzip(source: BinaryIO) -> Iterator[bytes]:
    with gzip.open(source, "rb") as archive:
        yield from _pieces(archive)


def _arrow(name: str) -> Callable[[BinaryIO], Iterator[bytes]]:
    def pieces(source: BinaryIO) -> Iterator[bytes]:
        with pa.CompressedInputStream(pa.PythonFile(source, mode="r"), name) as archive:
            yield from _pieces(archive)

    return pieces


def _pieces(archive: BufferedIOBase | pa.NativeFile) -> Iterator[bytes]:
    while piece := archive.read(PIECE_BYTES):
        yield piece


_CODECS = (
    Codec("gzip", re.compile(rb"\x1f\x8b"), _gzip),
    # A skippable frame may come first, parallel compressors write one.
    Codec("Zstandard", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _arrow("zstd")),
    # `BZh` alone could begin a text: a block or the end of the archive follows.
    Codec("bzip2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), _arrow("bz2")),
    Codec("Snappy", re.compile(re.escape(snappy.IDENTIFIER)), snappy.framed),
)
_HADOOP_SNAPPY = Codec("Hadoop Snappy", re.compile(b"\0"), snappy.hadoop_blocks)
