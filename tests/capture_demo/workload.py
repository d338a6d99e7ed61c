"""A workload that goes on in threads: sessions that change rows, and one that changes tables."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.capture_demo.bank import Bank, Limits, steps_of


class _LostError(Exception):
    """The session has lost its server."""


@dataclass
class Counts:
    """What was done."""

    steps: int = 0
    refused: int = 0
    lost: int = 0
    changes: int = 0


@dataclass
class Workload:
    """Sessions of a server of a bank.

    Attributes:
        pause: seconds between two steps of a session.
        between: seconds between two changes of the tables.
    """

    bank: Bank
    server: Any
    limits: Limits
    seed: str = "1"
    sessions: int = 3
    pause: float = 0.0
    between: float = 2.0
    counts: Counts = field(default_factory=Counts)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin; returns at once."""
        for number in range(self.sessions):
            steps = steps_of(self.bank, f"{self.seed}/{number}", self.limits)
            self._begin(self._change_rows, steps)
        self._begin(self._change_tables, None)

    def stop(self) -> None:
        """Stop after the steps that are at work, and wait for them."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    @property
    def has_changed_all(self) -> bool:
        """Whether all changes of tables were made."""
        return self.counts.changes >= len(self.bank.changes)

    def _begin(self, work: Any, steps: Any) -> None:
        thread = threading.Thread(target=work, args=() if steps is None else (steps,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _change_rows(self, steps: Iterator[list[str]]) -> None:
        for session in self._sessions():
            with suppress(_LostError):
                while not self._stop.is_set():
                    if self._done(session, next(steps)) is None:
                        self.counts.steps += 1
                    else:
                        # A lock or a unique key against another session.
                        self.counts.refused += 1
                    self._stop.wait(self.pause)

    def _change_tables(self) -> None:
        for session in self._sessions():
            with suppress(_LostError):
                while not self._stop.is_set() and not self.has_changed_all:
                    self._stop.wait(self.between)
                    error = self._done(session, ["BEGIN", *self._next_change(), "COMMIT"])
                    # It may have been committed just before the server went, which did not say so.
                    if error is None or any(word in str(error) for word in self.bank.done):
                        self.counts.changes += 1
                return

    def _next_change(self) -> tuple[str, ...]:
        return self.bank.changes[self.counts.changes]

    def _done(self, session: Any, statements: list[str]) -> BaseException | None:
        """Run statements; why they were refused. Raises _LostError."""
        try:
            for statement in statements:
                session.run(statement)
        except self.bank.errors as error:
            try:
                session.run("ROLLBACK")
            except self.bank.errors:
                raise _LostError from error
            return error
        return None

    def _sessions(self) -> Iterator[Any]:
        """A session, and another one each time that it was lost."""
        while not self._stop.is_set():
            try:
                session = self.bank.connect(self.server)
            except self.bank.errors:
                self._stop.wait(0.2)
                continue
            try:
                yield session
            finally:
                with suppress(*self.bank.errors):
                    session.close()
            self.counts.lost += 1
