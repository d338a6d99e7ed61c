"""Text in another encoding becomes UTF-8, so that everything after it reads one encoding only."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO

from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.spool import PIECE_BYTES, spooled
from polynya.model.config.delivery import Encoding

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def transcoded(source: BinaryIO, encoding: Encoding) -> AbstractContextManager[BinaryIO]:
    """The content in UTF-8, seekable, at its start.

    A byte without a meaning in `windows-1252` spoils its record only: it becomes bytes that are no
    UTF-8 either.

    Raises:
        UnreadableFileError: on entering, when it is in another encoding than the settings say, or
            is cut off.
    """
    return spooled(_pieces(source, encoding))


def _pieces(source: BinaryIO, encoding: Encoding) -> Iterator[bytes]:
    start = source.read(len(codecs.BOM_UTF8))
    source.seek(0)
    if start == codecs.BOM_UTF8:
        raise UnreadableFileError(f"not {encoding}: it begins with the byte order mark of UTF-8")
    if encoding == "utf-16" and not start.startswith(_UTF16_MARKS):
        raise UnreadableFileError("not utf-16: it does not begin with a byte order mark")
    errors = "strict" if encoding == "utf-16" else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    try:
        while piece := source.read(PIECE_BYTES):
            yield decoder.decode(piece).encode("utf-8", "surrogatepass")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError as error:
        raise UnreadableFileError(f"not {encoding}: {error}") from error
