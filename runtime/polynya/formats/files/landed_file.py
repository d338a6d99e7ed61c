"""Opening a landed file: decompression by its first bytes, and refusing what is of another format.

A compressed file is decompressed to the end before its first record is taken, so that a truncated
archive is known in time. Everything that makes a file unreadable becomes `UnreadableFileError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.compression import codec_of, decompressed
from polynya.formats.files.encodings import transcoded
from polynya.formats.files.source import source_of
from polynya.model.config.delivery import Encoding
from polynya.store.object_store import ObjectStore

_SNIFF_BYTES = 8192
#: A file in whose first bytes every so many is none of a text is no text.
_ODD_SHARE = 10

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
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xff\xfe", "a UTF-16 text"),
    (b"\xfe\xff", "a UTF-16 text"),
)
_MAGIC = {"parquet": b"PAR1", "orc": b"ORC", "avro": b"Obj\x01"}


@contextmanager
def landed_file(
    store: ObjectStore,
    path: str,
    file_format: str,
    *,
    encoding: Encoding | None = None,
    or_one_of: Sequence[str] = (),
) -> Iterator[BinaryIO]:
    """A seekable reader of the file's content, decompressed, text in UTF-8, at its start.

    Args:
        store: where the file is.
        path: its path in the store.
        file_format: `parquet`, `orc`, `avro`, or the name of a text format.
        encoding: of a text; None: UTF-8.
        or_one_of: `avro`, `parquet`: may stand in place of the text.

    Raises:
        UnreadableFileError: it cannot be opened, is truncated or of another format, or too large.
        DependencyError: POLYNYA-STO-003, the store or the machine cannot read it now.
    """
    with ExitStack() as open_files:
        content = open_files.enter_context(source_of(store, path))
        codec = codec_of(_head(content), path)
        if codec is not None:
            content = open_files.enter_context(decompressed(content, codec))
            inner = codec_of(_head(content), "")
            if inner is not None:
                raise UnreadableFileError(f"a {inner.name} archive inside a {codec.name} archive")
        if encoding is not None and encoding != "utf-8":
            content = open_files.enter_context(transcoded(content, encoding))
        head = _head(content)
        if not any(head.startswith(_MAGIC[one]) for one in or_one_of):
            _check_content(head, file_format)
        yield content


def _head(file: BinaryIO) -> bytes:
    head = file.read(_SNIFF_BYTES)
    file.seek(0)
    return head


def _check_content(head: bytes, file_format: str) -> None:
    magic = _MAGIC.get(file_format)
    if magic is not None:
        if not head.startswith(magic):
            raise UnreadableFileError(f"not {file_format}: it starts with {head[:8]!r}")
        return
    kind = next((name for start, name in _FOREIGN if head.startswith(start)), None)
    if kind is not None:
        raise UnreadableFileError(f"not {file_format}: it is {kind}")
    if b"\0" in head and _ODD_SHARE * _odd(head) > len(head):
        raise UnreadableFileError(f"not {file_format}: it has many NUL bytes, so it is no text")


def _odd(head: bytes) -> int:
    """How many NUL bytes and bytes that are not UTF-8 it has: a value may hold a few."""
    return head.count(b"\0") + head.decode("utf-8", "replace").count("\ufffd")
