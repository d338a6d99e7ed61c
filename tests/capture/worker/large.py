"""What a capture takes: processor time for a row and memory, of a load and of one transaction.

Processor seconds are counted, not the time that passes, so that other work on the machine changes
little.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from examples.servers.postgresql import PostgresServer
from polynya.capture.source import Access
from polynya.capture.wire import WorkerSettings
from tests.capture.worker.process import CaptureProcess

_TICKS = os.sysconf("SC_CLK_TCK")
_MEBIBYTE = 2**20
_LONGEST = 7200.0


@dataclass(frozen=True, slots=True)
class Taken:
    """What one part took.

    Attributes:
        rows: that landed.
        worker: processor seconds of the capture process.
        server: processor seconds of all processes of the database.
        seconds: that passed.
        memory: the most that the capture process had since it began, in MiB.
    """

    rows: int
    worker: float
    server: float
    seconds: float
    memory: float


class Large:
    """A capture of a table with many rows, and of one transaction with as many."""

    def __init__(self, server: PostgresServer, folder: Path, rows: int) -> None:
        self._server, self._folder, self._rows = server, folder, rows
        for name in ("loaded", "streamed"):
            server.run(f"CREATE TABLE {name} (id int PRIMARY KEY, n int, v text)")
        server.run(f"INSERT INTO loaded {_rows(rows)}")
        self._capture: CaptureProcess | None = None

    def load(self) -> Taken:
        """Load the table; the capture goes on."""
        server = self._server_seconds()
        began = time.monotonic()
        self._capture = CaptureProcess(self._settings(), self._folder / "log")
        self._until(self._rows)
        return self._taken(self._rows, (0.0, server, began))

    def transaction(self) -> Taken:
        """One transaction with as many rows as the table has."""
        before = self._landed()
        self._server.run(f"INSERT INTO streamed {_rows(self._rows)}")
        began = (self._worker_seconds(), self._server_seconds(), time.monotonic())
        self._until(before + self._rows)
        return self._taken(self._rows, began)

    def stop(self) -> None:
        """End the capture."""
        assert self._capture is not None
        self._capture.kill()

    def _settings(self) -> WorkerSettings:
        server = self._server
        access = Access(
            "postgresql", server.host, server.port, server.database, server.user, server.password,
            tls="disable", task="large",
        )  # fmt: skip
        return WorkerSettings(
            "large", "follow", access, str(self._folder / "landing"), "large", ("public.%",)
        )

    def _landed(self) -> int:
        assert self._capture is not None
        return sum(event["events"] for event in self._capture.of("landed"))

    def _until(self, rows: int) -> None:
        assert self._capture is not None
        until = time.monotonic() + _LONGEST
        while self._landed() < rows:
            assert self._capture.process.poll() is None, self._capture.told[-1:]
            assert time.monotonic() < until, "it takes too long"
            time.sleep(0.2)

    def _taken(self, rows: int, began: tuple[float, float, float]) -> Taken:
        worker, server, at = began
        return Taken(
            rows,
            self._worker_seconds() - worker,
            self._server_seconds() - server,
            time.monotonic() - at,
            self._memory(),
        )

    def _worker_seconds(self) -> float:
        assert self._capture is not None
        return _seconds(self._capture.process.pid)

    def _memory(self) -> float:
        assert self._capture is not None
        lines = Path(f"/proc/{self._capture.process.pid}/status").read_text().splitlines()
        most = next(line for line in lines if line.startswith("VmHWM"))
        return int(most.split()[1]) * 1024 / _MEBIBYTE

    def _server_seconds(self) -> float:
        """Of all sessions together, also those that have ended."""
        first = int((self._server.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return _seconds(first, ended=True) + sum(_seconds(int(one)) for one in children)


def _seconds(process: int, *, ended: bool = False) -> float:
    """Processor seconds of a process, with those of its children that have `ended`."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return sum(int(one) for one in fields[11 : 15 if ended else 13]) / _TICKS


def _rows(rows: int) -> str:
    return f"SELECT i, i % 1000, 'row ' || i FROM generate_series(1, {rows}) i"
