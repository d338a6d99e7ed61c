"""Content that is made on the way: seekable, on disk when it is large, never whole in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, cast

#: How much of a file is read and converted at a time.
PIECE_BYTES: Final = 1024 * 1024
_MEMORY_BYTES: Final = 32 * 1024 * 1024


@contextmanager
def spooled(pieces: Iterable[bytes]) -> Iterator[BinaryIO]:
    """The pieces as one file, at its start. What making them raises is raised before the body."""
    with tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES) as spool:
        for piece in pieces:
            spool.write(piece)
        spool.seek(0)
        yield cast("BinaryIO", spool)
