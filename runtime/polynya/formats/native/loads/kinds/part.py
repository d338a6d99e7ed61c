"""A part of a file that reads as a file of its own."""

from __future__ import annotations

import io
from typing import BinaryIO

_BUFFER_BYTES = 1024 * 1024


def part_of(file: BinaryIO, head: bytes, begin: int, end: int | None) -> io.BufferedReader:
    """`head`, then the bytes of a file from `begin` to `end`; None: to its own end."""
    file.seek(begin)
    return io.BufferedReader(_Part(head, file, None if end is None else end - begin), _BUFFER_BYTES)


class _Part(io.RawIOBase):
    def __init__(self, head: bytes, file: BinaryIO, left: int | None) -> None:
        self._head, self._file, self._left = head, file, left

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, from the head first."""
        room = len(buffer)
        if self._head:
            found, self._head = self._head[:room], self._head[room:]
        else:
            wanted = room if self._left is None else min(room, self._left)
            found = self._file.read(wanted) if wanted else b""
            self._left = None if self._left is None else self._left - len(found)
        buffer[: len(found)] = found
        return len(found)
