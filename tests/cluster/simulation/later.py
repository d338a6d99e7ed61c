"""Processes of a later version beside those of this one, in one simulated cluster.

The later one is this one with more to say: a higher `minor`, and fields that nobody else knows, in
objects, inside of them and in records. Each process has its version from its number, so that a
machine goes from one to the other and back with each restart, as in an upgrade and its rollback.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import NodeIdentity
from tests.cluster.later_version import object_with_more, record_with_more
from tests.cluster.simulation import agent
from tests.cluster.simulation.drill import Under
from tests.cluster.simulation.judge.records import FOREIGN, decoded
from tests.cluster.simulation.parts.store import StoreLine, Write
from tests.cluster.simulation.parts.stream import Stream
from tests.cluster.simulation.voice import Voice


def is_later(process: str) -> bool:
    """Whether a process, called `MACHINE#NUMBER`, is of the later version."""
    return int(process.rpartition("#")[2]) % 2 == 1


class LaterLine(StoreLine):
    """The store as a process of the later version writes to it."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See `StoreLine`."""
        return super().put_if_absent(path, _said(path, data))

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        """See `StoreLine`."""
        return super().put_if_unchanged(path, _said(path, data), version)


class LaterStream:
    """The stream as a process of the later version writes to it."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self.listeners = stream, stream.listeners

    def put(self, data: bytes) -> None:
        """Put a record with more in it."""
        self._stream.put(record_with_more(data))


class Mixed:
    """What is under test where versions are mixed. `counts` says what met whom."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    @contextmanager
    def cluster(self) -> Iterator[Under]:
        """The code under test, in which each process speaks its version."""
        before = agent.Voice
        agent.Voice = _voice  # type: ignore[assignment,misc]
        try:
            yield Under(member=self._member)
        finally:
            agent.Voice = before  # type: ignore[misc]

    def _member(
        self, store: StoreLine, cluster: str, me: NodeIdentity, *args: Any, **more: Any
    ) -> Member:
        if self._see not in store._objects.watchers:
            store._objects.watchers.append(self._see)
        if is_later(store._process.name):
            self.counts["processes of the later version"] += 1
            store = LaterLine(store._objects, store._process, store._faults)
            return Member(store, cluster, replace(me, version="2"), *args, **more)
        self.counts["processes of this version"] += 1
        return Member(store, cluster, me, *args, **more)

    def _see(self, change: Write) -> None:
        before, after = decoded(change.before), decoded(change.after)
        if "#" not in change.process or not before or FOREIGN not in before or after is None:
            return
        if not is_later(change.process):
            self.counts["objects of the later version written again by this one"] += 1


def _voice(stream: Any, machine: Any, cluster: str, incarnation: str, process: str) -> Voice:
    if is_later(process):
        stream = LaterStream(stream)
    return Voice(stream, machine, cluster, incarnation, process)


def _said(path: str, data: bytes) -> bytes:
    return data if "/probes/" in path else object_with_more(data)
