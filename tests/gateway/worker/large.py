"""What a capture takes: processor time for a row and memory, of a load and of one transaction.

`python -m tests.gateway.worker.large --rows 1000000` prints the rows of a table. Processor seconds
are counted, not the time that passes, so that other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from examples.servers.postgresql import PostgresServer
from polynya.gateway.source import Access
from polynya.gateway.wire import WorkerSettings
from tests.gateway.worker.process import CaptureProcess
from tests.postgresql import postgres_server

_TICKS = os.sysconf("SC_CLK_TCK")
_MEBIBYTE = 2**20
_TRANSACTIONS = 20
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

    def row(self, what: str) -> str:
        """As a row of a table."""
        per = self.worker / self.rows
        return (
            f"| {what} | {self.rows:,} | {self.worker:.1f} | {per * 1e6:.0f} | {1 / per:,.0f} | "
            f"{self.server:.1f} | {self.seconds:.0f} | {self.memory:,.0f} |"
        )


@dataclass(frozen=True, slots=True)
class Steady:
    """What a stream took that never rests, and seconds from a commit to its landed batch."""

    taken: Taken
    median: float
    p95: float
    longest: float


class Large:
    """A capture of a table with many rows, and of one transaction with as many."""

    def __init__(self, server: PostgresServer, folder: Path, rows: int) -> None:
        self._server, self._folder, self._rows = server, folder, rows
        for name in ("loaded", "streamed"):
            server.run(f"CREATE TABLE {name} (id int PRIMARY KEY, n int, v text)")
        server.run(f"INSERT INTO loaded {_rows(rows)}")
        self._capture: CaptureProcess | None = None
        self._next = 1_000_000_000

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

    def steady(self, per_second: int, seconds: int) -> Steady:
        """So many changes a second, in twenty transactions."""
        known = set(self._batches())
        before = self._landed()
        began = (self._worker_seconds(), self._server_seconds(), time.monotonic())
        each, first = per_second // _TRANSACTIONS, self._next
        for number in range(seconds * _TRANSACTIONS):
            at = first + number * each
            self._server.run(
                f"INSERT INTO streamed SELECT i, 0, 'new' FROM generate_series({at}, "
                f"{at + each - 1}) i"
            )
            time.sleep(max(0.0, began[2] + (number + 1) / _TRANSACTIONS - time.monotonic()))
        changes = each * seconds * _TRANSACTIONS
        self._next += changes
        self._until(before + changes)
        taken = self._taken(changes, began)
        late = sorted(_delays(path for path in self._batches() if path not in known))
        return Steady(taken, late[len(late) // 2], late[len(late) * 95 // 100], late[-1])

    def _batches(self) -> list[Path]:
        return sorted((self._folder / "landing" / "large").glob("capture-*"))

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


def _delays(batches: Iterable[Path]) -> Iterator[float]:
    """Seconds from the commit of each event to the moment when its batch was there."""
    for path in batches:
        there = path.stat().st_mtime
        content = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd").read()
        for line in content.splitlines()[1:]:
            yield there - json.loads(line)["value"]["source"]["ts_us"] / 1e6


def _rows(rows: int) -> str:
    return f"SELECT i, i % 1000, 'row ' || i FROM generate_series(1, {rows}) i"


def main(arguments: list[str]) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="large", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rates", type=int, nargs="*", default=[200, 2000, 5000])
    parser.add_argument("--seconds", type=int, default=30, help="of each rate")
    given = parser.parse_args(arguments)
    print("| what | rows | capture s | µs a row | rows/s of a core | server s | passed s | MiB |")
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        large = Large(server, Path(folder), given.rows)
        print(large.load().row("load"), flush=True)
        print(large.transaction().row("one transaction"), flush=True)
        for rate in given.rates:
            steady = large.steady(rate, given.seconds)
            print(steady.taken.row(f"{rate:,} changes a second"))
            late = (steady.median, steady.p95, steady.longest)
            print(
                "commit to landed batch, s: " + "p50 {:.1f}, p95 {:.1f}, most {:.1f}".format(*late)
            )
        large.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
