"""Reading the bytes of a file, apart from what a decoder says about them.

A decoder raises errors of its own for whatever it meets, and some of them are errors of the system:
`OSError` for a damaged archive, and for a disk that does not answer. What the store raises is told
apart here, before a decoder sees it. It says nothing of the content, so the file is read again.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.begun import CarefulStore
from polynya.model.errors import OperationError, PolynyaError
from polynya.store.object_store import OF_THE_FILE, ObjectStore, not_now

_BUFFER_BYTES: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 24


@contextmanager
def source_of(store: ObjectStore, path: str) -> Iterator[BinaryIO]:
    """A seekable reader of a landed file as it is stored.

    Whatever a decoder makes of an error of the store, that error is raised.

    Raises:
        UnreadableFileError: there is no such file, or it is none that can be read.
        PolynyaError: what the store says. POLYNYA-STO-003 for any other error of the system, also
            one that is raised while the file is open, and when the memory does not suffice.
    """
    begun = store.begun if isinstance(store, CarefulStore) else None
    if begun is not None:
        begun.begin(path)
    with _opened(store, path) as found:
        watched = _Watched(found, path)
        try:
            yield cast("BinaryIO", io.BufferedReader(watched, _BUFFER_BYTES))
        except Exception as error:
            cause = watched.cause or _system_error(error)
            if begun is not None and isinstance(cause, MemoryError):
                begun.in_vain([path])
            if watched.failure is not None:
                raise watched.failure from error
            if cause is None:
                raise
            raise not_now(path, cause) from error


def _opened(store: ObjectStore, path: str) -> BinaryIO:
    try:
        return store.open(path)
    except (OSError, OperationError) as error:
        number = error.errno if isinstance(error, OSError) else errno.ENOENT
        if number is None or number in OF_THE_FILE:
            raise UnreadableFileError(f"cannot be opened: {error}") from error
        raise not_now(path, error) from error


class _Watched(io.RawIOBase):
    """A file that remembers why it could not be read."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.failure: PolynyaError | None = None
        self.cause: BaseException | None = None
        self._file, self._path = file, path
        self._into: Callable[[memoryview], int] = file.readinto  # type: ignore[attr-defined]

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Position in bytes."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move."""
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer. What a read raises is kept, whatever becomes of it."""
        view = memoryview(buffer).cast("B")[:_PIECE_BYTES]
        try:
            return self._into(view)
        except PolynyaError as error:
            self.failure = error
            raise
        except (OSError, MemoryError) as error:
            self.cause, self.failure = error, not_now(self._path, error)
            raise self.failure from error


def _system_error(error: BaseException | None) -> BaseException | None:
    """What the machine lacked, where an error comes from that; errors of decoders have no number.

    Not what somebody else has handled before.
    """
    while error is not None and not isinstance(error, PolynyaError):
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
            return error
        error = error.__cause__
    return None
