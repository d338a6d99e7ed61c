"""Opening a landed file: decompression by magic, and refusing what is not of the declared format.

A compressed file is decompressed to the end before its first record is taken, so that a truncated
archive is known in time. Everything that makes a file unreadable becomes `UnreadableFileError`.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from polynya.landing.errors import UnreadableFileError
from polynya.model.errors import OperationError
from polynya.store.object_store import ObjectStore

_GZIP = b"\x1f\x8b"
_SNIFF_BYTES = 8192
_SPOOL_BYTES = 32 * 1024 * 1024
_COPY_BYTES = 1024 * 1024

#: First bytes of what people put into landing folders by mistake.
_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "a Parquet file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (_GZIP, "a gzip archive inside a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xff\xfe", "a UTF-16 text"),
    (b"\xfe\xff", "a UTF-16 text"),
)
_MAGIC = {"parquet": b"PAR1", "orc": b"ORC", "avro": b"Obj\x01"}


@contextmanager
def landed_file(store: ObjectStore, path: str, file_format: str) -> Iterator[BinaryIO]:
    """A seekable reader of the file's content, decompressed, at its start.

    Args:
        store: where the file is.
        path: its path in the store.
        file_format: `json`, `csv`, `debezium` (text) or `parquet`, `orc`, `avro`.

    Raises:
        UnreadableFileError: it cannot be opened, is truncated or of another format.
    """
    try:
        source = store.open(path)
    except (OSError, OperationError) as error:
        raise UnreadableFileError(f"cannot be opened: {error}") from error
    with source:
        if source.read(len(_GZIP)) != _GZIP:
            source.seek(0)
            _check_content(source, file_format)
            yield source
            return
        source.seek(0)
        with _decompressed(source) as content:
            _check_content(content, file_format)
            yield content


@contextmanager
def _decompressed(source: BinaryIO) -> Iterator[BinaryIO]:
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
        try:
            with gzip.open(source, "rb") as archive:
                shutil.copyfileobj(archive, spool, _COPY_BYTES)
        except (EOFError, OSError, zlib.error) as error:
            raise UnreadableFileError(f"broken gzip archive: {error}") from error
        spool.seek(0)
        yield cast("BinaryIO", spool)


def _check_content(file: BinaryIO, file_format: str) -> None:
    head = file.read(_SNIFF_BYTES)
    file.seek(0)
    magic = _MAGIC.get(file_format)
    if magic is not None:
        if not head.startswith(magic):
            raise UnreadableFileError(f"not {file_format}: it starts with {head[:8]!r}")
        return
    kind = next((name for start, name in _FOREIGN if head.startswith(start)), None)
    if kind is not None:
        raise UnreadableFileError(f"not {file_format}: it is {kind}")
    if b"\0" in head:
        raise UnreadableFileError(f"not {file_format}: it has NUL bytes, so it is no text")
