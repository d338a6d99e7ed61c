"""Columns of data files that stay in memory after they were read. A data file never changes.

A small table is read again in every apply: to open and decode its files costs more than all else
that the apply does.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, TypeAlias

import pyarrow as pa

#: Bytes of decoded columns in this process.
LIMIT: Final = 128 * 2**20

Columns: TypeAlias = dict[str, pa.ChunkedArray]


class Kept:
    """Columns by place (a file, or a part of one), up to `limit` bytes: the last used stay.

    Threads share it.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._places: OrderedDict[Hashable, Columns] = OrderedDict()
        self.size_bytes = 0

    def of(self, place: Hashable, names: Iterable[str]) -> Columns:
        """Those of the columns that are known."""
        with self._lock:
            known = self._places.get(place)
            if known is None:
                return {}
            self._places.move_to_end(place)
            return {name: known[name] for name in names if name in known}

    def add(self, place: Hashable, columns: Mapping[str, pa.ChunkedArray]) -> None:
        """Keep columns; places that were not used for the longest time are forgotten."""
        with self._lock:
            known = self._places.setdefault(place, {})
            self._places.move_to_end(place)
            for name, column in columns.items():
                if name not in known:
                    known[name] = column
                    self.size_bytes += column.nbytes
            while self.size_bytes > self._limit:
                _, forgotten = self._places.popitem(last=False)
                self.size_bytes -= sum(column.nbytes for column in forgotten.values())


#: What this process keeps.
KEPT: Final = Kept()
