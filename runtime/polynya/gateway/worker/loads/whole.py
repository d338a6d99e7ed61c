"""The load of a table without key: in one piece, with what its view has not of the stream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from polynya.gateway.landing.epochs import in_epoch
from polynya.gateway.landing.lander import Lander
from polynya.gateway.landing.position import Position
from polynya.gateway.landing.seen import has_all
from polynya.gateway.source import Chunk, Seen, Snapshot, SourceTable, Whole
from polynya.gateway.worker.loads.keyless import Keyless
from polynya.gateway.worker.loads.spool import Spool
from polynya.gateway.worker.masks import TableMasks
from polynya.model.errors import DependencyError

#: How long a database may take to show what its stream has said already.
_LONGEST_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.2


class Stopped(Exception):  # noqa: N818 - it is none
    """The load was told to end. Nothing of the table has landed."""


@dataclass(slots=True)
class WholeLoad:
    """The load of one table.

    Attributes:
        table: without key.
        stop: ends it.
    """

    table: SourceTable
    snapshot: Snapshot
    lander: Lander
    masks: TableMasks
    keyless: Keyless
    stop: threading.Event

    def land(self, rows: int, where: str | None, read: Callable[[Chunk], None]) -> None:
        """Load it, as one batch.

        Args:
            rows: about so many are read at a time.
            where: a condition of the user.
            read: is told of what was read.

        Raises:
            Stopped: it was told to.
            OperationError: it cannot be read, or POLYNYA-GTW-011. Nothing of it has landed.
            DependencyError: POLYNYA-GTW-013, or what may pass.
        """
        with closing(Spool(self.table.name)) as spool, self._moment(rows, where) as whole:
            shape = self.snapshot.envelope(self.table)
            for chunk in whole.chunks:
                if self.stop.is_set():
                    raise Stopped
                self._add(spool, shape, chunk)
                read(chunk)
            loaded = spool.events
            # Most of what the stream brought meanwhile, while it goes on; then the rest.
            self._add_held(spool, whole.seen)
            with self.keyless.turn():
                self._add_held(spool, whole.seen)
                self._land(spool, loaded, whole.seen)

    @contextmanager
    def _moment(self, rows: int, where: str | None) -> Iterator[Whole]:
        """A moment that has all events that were left out until now."""
        name, waited = self.table.name, 0.0
        place = self.lander.position.left_out.get(name)
        while True:
            with self.snapshot.whole(self.table, rows, where) as whole:
                if place is None or has_all(self.keyless.connector, whole.seen, place):
                    yield whole
                    return
            if self.stop.wait(_PAUSE_SECONDS):
                raise Stopped
            waited += _PAUSE_SECONDS
            if waited > _LONGEST_SECONDS:
                raise _behind(name)

    def _add(self, spool: Spool, shape: Mapping[str, Any], chunk: Chunk) -> None:
        masks, lines = self.masks.of_table(self.table.name, shape), chunk.lines
        if masks is not None:
            shape, lines = masks.schema, masks.lines(lines)
        spool.add(in_epoch(lines, self.lander.position.epoch), chunk.rows, shape)

    def _add_held(self, spool: Spool, seen: Seen) -> None:
        with closing(self.keyless.taken(self.table.name)) as held:
            for lines, shape in held.parts():
                fresh = self.keyless.unseen(lines, seen)
                spool.add(in_epoch(b"".join(fresh), self.lander.position.epoch), len(fresh), shape)

    def _land(self, spool: Spool, rows: int, seen: Seen) -> None:
        name = self.table.name

        def move(before: Position) -> Position:
            loaded = before.tables[name].with_whole(rows, seen, self.lander.number + 1)
            after = before.with_table(name, loaded)
            left_out = {one: place for one, place in before.left_out.items() if one != name}
            return replace(after, left_out=left_out)

        self.lander.land_file(spool.file, spool.events, {name: spool.shapes}, move)
        self.keyless.drop(name)


def _behind(table: str) -> DependencyError:
    return DependencyError(
        "POLYNYA-GTW-013",
        f"the database does not show rows of {table} that its binlog has said already",
        state="nothing of the table has landed; all else goes on",
        fix="nothing to do: it is tried again. A replica that the server waits for before it "
        "commits (semi-synchronous replication) may be away",
    )
