"""A landing zone that dies at a put, and what has landed in one."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from polynya.formats.debezium.captured import read_header
from polynya.formats.debezium.order import native_position
from polynya.testing.fakes import MemoryObjectStore


class Killed(Exception):
    """The process dies here."""


class DeadlyStore(MemoryObjectStore):
    """Kills at the so-manieth put of a batch, before or after it."""

    def __init__(self) -> None:
        super().__init__()
        self.kill_at: int | None = None
        self.after = False
        self._puts = 0
        self.is_dead = False

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Put, or die."""
        if self.is_dead:
            raise Killed
        self._puts += 1
        if self._puts == self.kill_at and not self.after:
            self.is_dead = True
            raise Killed
        done = super().put_if_absent(path, data)
        if self._puts == self.kill_at:
            self.is_dead = True
            raise Killed
        return done

    def revive(self) -> None:
        """For the next process."""
        self.is_dead, self.kill_at, self._puts = False, None, 0


def landed_values(store: MemoryObjectStore, folder: str) -> list[dict[str, Any]]:
    """The values of all events that have landed, in their order."""
    found = []
    for info in store.list(folder):
        data = store.get(info.path)
        read_header(io.BytesIO(data), info.path)
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as content:
            lines = content.read().splitlines()[1:]
        found += [json.loads(line)["value"] for line in lines]
    return found


def folded(values: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, str]]:
    """What tables are after events, by the order that the reader gives them."""
    tables: dict[str, dict[int, str]] = {}
    placed = sorted(enumerate(values), key=lambda one: (native_position(one[1]), one[0]))
    for _, value in placed:
        source = value["source"]
        rows = tables.setdefault(f"{source['schema']}.{source['table']}", {})
        if value["op"] == "t":
            rows.clear()
        elif value["op"] == "d":
            rows.pop(value["before"]["id"], None)
        else:
            rows[value["after"]["id"]] = value["after"]["v"]
    return tables
