"""Tables without key in one round: whose events land, and whose wait for the load of their table.

The thread that lands the stream and those that load take turns, so that a load lands with exactly
the events that have been held back for it. What is held back is lost with the process, and that is
right: a load after it has a later view.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from polynya.gateway.landing.keyless import Parted, is_settled, moved, parted
from polynya.gateway.landing.position import Position, StreamPosition
from polynya.gateway.landing.seen import is_seen
from polynya.gateway.landing.stream import StreamEvent
from polynya.gateway.source import Seen, SourceTable
from polynya.gateway.worker.loads.spool import Spool
from polynya.model.errors import OperationError

#: Connectors whose stream has a table as soon as it is made.
_AT_ONCE: Final = frozenset({"mariadb", "mysql"})
_WITHOUT_KEY: Final = b'{"key":null,'


class Keyless:
    """The tables without key of a round."""

    def __init__(
        self,
        connector: str,
        tables: Mapping[str, SourceTable],
        position: Position,
        *,
        loads: bool,
    ) -> None:
        """Begin a round.

        Args:
            connector: of the database.
            tables: that there are.
            position: at which the round begins.
            loads: what is not loaded is loaded in this round.
        """
        self.connector, self._known = connector, frozenset(tables)
        self._turn, self._lock = threading.Lock(), threading.Lock()
        names = [name for name, one in tables.items() if one.lacks_key]
        self._watched = {name for name in names if not is_settled(position.tables.get(name))}
        waiting = [name for name in self._watched if position.tables[name].state == "queued"]
        self._held = {name: Spool(name) for name in waiting if loads}
        self._failed: dict[str, OperationError] = {}

    def are_apart(self, events: Sequence[StreamEvent]) -> Sequence[bool] | None:
        """Which events are for `parted` to decide; None: none of them."""
        if not self._watched and self.connector not in _AT_ONCE:
            return None
        apart = [event.table is not None and self._is_apart(event) for event in events]
        return apart if any(apart) else None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Nobody else lands what concerns these tables meanwhile."""
        with self._turn:
            yield

    def parted(self, events: Sequence[StreamEvent], position: Position) -> Parted:
        """What becomes of events that are apart; those of tables to be loaded are held."""
        found = parted(self.connector, events, position)
        for _, group in groupby(found.kept, key=lambda one: (one.table, id(one.shape))):
            self._hold(list(group))
        return found

    def moved(self, before: Position, stream: StreamPosition, found: Parted) -> Position:
        """The position after events of the stream."""
        return moved(self.connector, before, stream, found.left_out)

    def look_again(self, position: Position) -> None:
        """Let go of the tables whose events all land from now on."""
        for name in [name for name in self._watched if is_settled(position.tables.get(name))]:
            self._watched.discard(name)

    def taken(self, table: str) -> Spool:
        """What has been held of a table since it was taken last. The caller closes it.

        Raises:
            OperationError: POLYNYA-GTW-011, there was no room for all.
        """
        with self._lock:
            if table in self._failed:
                raise self._failed[table]
            held, self._held[table] = self._held[table], Spool(table)
            return held

    def unseen(self, lines: bytes, seen: Seen) -> list[bytes]:
        """Those of event lines that a view has not."""
        every = lines.splitlines(keepends=True)
        return [line for line in every if not is_seen(self.connector, seen, line)]

    def drop(self, table: str) -> None:
        """Hold nothing of a table any more."""
        with self._lock:
            held = self._held.pop(table, None)
        if held is not None:
            held.close()

    def close(self) -> None:
        """Remove what is held."""
        for table in list(self._held):
            self.drop(table)

    def _is_apart(self, event: StreamEvent) -> bool:
        if event.table in self._watched:
            return True
        # A new table is in a binlog before anybody has looked for it.
        is_new = event.table not in self._known and self.connector in _AT_ONCE
        return is_new and event.line.startswith(_WITHOUT_KEY) and not _is_truncation(event.line)

    def _hold(self, events: Sequence[StreamEvent]) -> None:
        """Hold events of one table and one schema."""
        table, shape = str(events[0].table), events[0].shape or {}
        with self._lock:
            if table not in self._held or table in self._failed:
                return
            try:
                self._held[table].add(b"".join(one.line for one in events), len(events), shape)
            except OperationError as error:
                self._failed[table] = error


def _is_truncation(line: bytes) -> bool:
    return bool(json.loads(line)["value"].get("op") == "t")
