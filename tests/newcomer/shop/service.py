"""A `polynya run` that goes on over a shop, and the files that land while it does."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.killing import Running, running
from tests.newcomer.shop.freshness import Landed
from tests.newcomer.shop.project import Shop

#: How long the first and the last records may take to come into sight, in seconds.
PATIENCE = 240.0


def plainly(folder: Path) -> AbstractContextManager[Running]:
    """The command as users give it."""
    return running(folder, "run")


@dataclass
class Service:
    """`polynya run`, started again whenever it was killed, as a supervisor does.

    `begin` starts it in the folder of a project.
    """

    shop: Shop
    stack: ExitStack
    begin: Callable[[Path], AbstractContextManager[Running]] = plainly
    kills: int = 0
    said: list[str] = field(default_factory=list)
    run: Running | None = None

    def start(self) -> None:
        """Start it."""
        self.run = self.stack.enter_context(self.begin(self.shop.folder))

    def kill(self) -> None:
        """Kill Python and the JVM at once, and start again."""
        assert self.run is not None
        self.run.kill()
        self.said.append(self.run.text())
        self.kills += 1
        self.start()

    def end(self) -> int:
        """SIGTERM, and the exit code."""
        assert self.run is not None
        self.run.process.terminate()
        code = self.run.wait()
        self.said.append(self.run.text())
        return code

    @property
    def lives(self) -> bool:
        """Whether it did not end by itself."""
        return self.run is not None and self.run.process.poll() is None


def land(shop: Shop, records: int) -> dict[Landed, float]:
    """A file of so many changes for each table; the moments at which they were closed."""
    closed = {}
    for table in shop.tables:
        number = shop.feeds[table.name].files
        closed[table.name, number] = shop.land_changes(table, records, now=datetime.now(UTC))
    return closed


def until(ready: Callable[[], bool], service: Service) -> None:
    """Wait until it is so, or nothing comes of it: the service ended, or patience did."""
    deadline = time.monotonic() + PATIENCE
    while not ready() and service.lives and time.monotonic() < deadline:
        time.sleep(0.1)
