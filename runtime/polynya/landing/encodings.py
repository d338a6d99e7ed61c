"""Text in another encoding becomes UTF-8, so that everything behind reads one encoding only."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from polynya.landing.errors import UnreadableFileError
from polynya.model.delivery import Encoding

_SPOOL_BYTES = 32 * 1024 * 1024
_COPY_BYTES = 1024 * 1024
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextmanager
def transcoded(source: BinaryIO, encoding: Encoding) -> Iterator[BinaryIO]:
    """The content in UTF-8, seekable, at its start; on disk when it is large.

    A byte without a meaning in `windows-1252` spoils its record only: it becomes bytes that are no
    UTF-8 either.

    Raises:
        UnreadableFileError: it is in another encoding than the settings say, or is cut off.
    """
    start = source.read(len(codecs.BOM_UTF8))
    source.seek(0)
    if start == codecs.BOM_UTF8:
        raise UnreadableFileError(f"not {encoding}: it begins with the byte order mark of UTF-8")
    if encoding == "utf-16" and not start.startswith(_UTF16_MARKS):
        raise UnreadableFileError("not utf-16: it does not begin with a byte order mark")
    errors = "strict" if encoding == "utf-16" else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
        try:
            while piece := source.read(_COPY_BYTES):
                spool.write(decoder.decode(piece).encode("utf-8", "surrogatepass"))
            spool.write(decoder.decode(b"", final=True).encode("utf-8"))
        except UnicodeError as error:
            raise UnreadableFileError(f"not {encoding}: {error}") from error
        spool.seek(0)
        yield cast("BinaryIO", spool)
