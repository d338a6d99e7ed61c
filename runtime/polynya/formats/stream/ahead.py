"""Pieces of a landed batch that are read before their turn, on the other processors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: Pieces that are read at a time at most; more take memory and find no processor.
AT_ONCE: Final = max(1, min(4, os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class Place:
    """Messages that follow each other.

    Attributes:
        index: the first of them.
        count: how many they are.
        offset: of the first record of the first, in the file.
    """

    index: int
    count: int
    offset: int

    def following(self, end: int) -> list[Place]:
        """As many messages each, up to the index `end`, if each of these is one record."""
        index, count, offset = self.index, self.count, self.offset
        many = min(AT_ONCE - 1, (end - index) // count - 1)
        return [Place(index + n * count, count, offset + n * count) for n in range(1, many + 1)]


class Ahead(Generic[T]):
    """Reads pieces by `read`, which several threads call."""

    def __init__(self, read: Callable[[Place], T]) -> None:
        self._read = read
        self._begun: dict[Place, Future[T]] = {}

    def get(self, place: Place, following: Iterable[Place]) -> T:
        """Read a piece; `following` are probably the next. Raises what `read` raises."""
        begun = self._begun.pop(place, None)
        for one in following:
            if one not in self._begun:
                self._begun[one] = _pool().submit(self._read, one)
        # One that still waits for a thread is read here.
        return self._read(place) if begun is None or begun.cancel() else begun.result()

    def forget(self) -> None:
        """What was begun is not wanted."""
        for future in self._begun.values():
            future.cancel()
        self._begun.clear()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, AT_ONCE - 1), thread_name_prefix="pieces")
