"""The queries that run at a server: few at a time, each with its limits and a way to end it."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE, SERVER_BUSY
from polynya.model.error_catalogue.server_queries import (
    QUERIES_OF_PERSON,
    QUERY_CANCELLED,
    QUERY_ID_TAKEN,
    QUERY_TOO_LARGE,
    QUERY_TOO_LONG,
)
from polynya.model.names import shown
from polynya.query.statement_stop import StatementStop
from polynya.store.clock import Clock

#: Queries that run at a time: each takes all processors for as long as it needs.
MOST_QUERIES: Final = 4
#: Of one person, so that others get answers too.
MOST_OF_PERSON: Final = 2


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one query may take: time, and memory of its rows."""

    seconds: float
    megabytes: int


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A query that runs: whose it is, since when, and what stops it."""

    id: str
    who: str
    sql: str
    since: datetime
    stop: StatementStop

    def cancel(self) -> None:
        """End it; its answer is POLYNYA-SRV-102."""
        self.stop.stop(QUERY_CANCELLED(where=self.id))


class RunningQueries:
    """The running queries of a server. Usable from many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[str, RunningQuery] = {}
        self._lock = threading.Lock()

    @contextmanager
    def running(
        self, who: str, sql: str, limits: QueryLimits, *, name: str | None = None, is_shared: bool
    ) -> Iterator[RunningQuery]:
        """A query for as long as the block runs; it ends what runs in it at its limits.

        Args:
            who: the person who asks.
            sql: the statement, for those who look at what runs.
            limits: what it may take.
            name: its id, which a client chose to cancel it by; by default a random one.
            is_shared: whether several people ask this server, so that each gets a part of it.

        Raises:
            OperationError: too many run already, of all or of this person.
            ConflictError: a query of this id runs.
        """
        too_large = QUERY_TOO_LARGE(most=limits.megabytes)
        stop = StatementStop(limits.megabytes * 2**20, too_large)
        made = RunningQuery(name or secrets.token_urlsafe(12), who, sql, self._clock.now(), stop)
        with self._lock:
            if made.id in self._running:
                raise QUERY_ID_TAKEN(name=shown(made.id))
            if len(self._running) >= MOST_QUERIES:
                raise SERVER_BUSY(most=MOST_QUERIES)
            if is_shared and len(self._of(who)) >= MOST_OF_PERSON:
                raise QUERIES_OF_PERSON(most=MOST_OF_PERSON)
            self._running[made.id] = made
        try:
            with made.stop.stopping_after(
                limits.seconds, QUERY_TOO_LONG(seconds=f"{limits.seconds:g}")
            ):
                yield made
        finally:
            with self._lock:
                del self._running[made.id]

    def of(self, who: str) -> list[RunningQuery]:
        """The running queries of a person, the oldest first."""
        with self._lock:
            return self._of(who)

    def cancel(self, name: str, who: str) -> None:
        """End a query of a person. Raises ConfigError POLYNYA-SRV-001 where none has this id."""
        for one in self.of(who):
            if one.id == name:
                one.cancel()
                return
        raise NO_SUCH_RESOURCE(what=f"running query {shown(name)} of yours")

    def _of(self, who: str) -> list[RunningQuery]:
        return [one for one in self._running.values() if one.who == who]
