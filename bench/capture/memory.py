"""Memory of the capture process while one large transaction comes through the stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.capture.figures import Figure
from bench.capture.place import GaveUpError, Run, Source
from bench.peers.tree import Peak, resident

_MEBIBYTE: Final = 2**20
#: Python with its libraries, and the JVM in the same process with its heap of 512 MB.
MOST_MIB: Final = 1536
_WORKER: Final = b"polynya.capture.worker"


def measure(source: Source, rows: int, seconds: float) -> Iterator[Figure]:
    """Insert rows in one transaction while a capture runs. Raises GaveUpError."""
    source.sql("CREATE TABLE large (id bigint PRIMARY KEY, name text, at timestamptz)",
               "INSERT INTO large VALUES (0, 'first', now())")  # fmt: skip
    insert = (
        "INSERT INTO large SELECT g, 'a name that is as long as names are ' || g, now()"
        f" FROM generate_series(1, {rows}) g"
    )
    with source.polynya("landing", "run", seconds=seconds) as run:
        run.wait(lambda: bool(run.events("capture.streaming")), "the stream")
        peak = Peak(_worker(run))
        before = resident(_worker(run))
        peak.start()
        known = run.landed()
        thread = threading.Thread(target=source.sql, args=(insert,), daemon=True)
        thread.start()
        thread.join(seconds)
        began = time.time()
        # What is known of the memory says something also when it was not landed in time.
        with suppress(GaveUpError):
            run.wait(lambda: run.landed() >= known + rows, "the transaction")
        peak.stop()
        took = max(one["second"] for one in run.events("capture.landed")) - began
        landed = run.landed() - known
    most = peak.bytes / _MEBIBYTE
    yield Figure(
        f"memory of the capture process (Python and JVM), one transaction of {rows:,} rows",
        f"at most {most:,.0f} MiB, {before / _MEBIBYTE:,.0f} MiB before it;"
        f" {landed:,} rows had landed {took:,.1f} s after its commit",
        f"≤ {MOST_MIB:,} MiB",
        most <= MOST_MIB if landed >= rows else None,
    )


def _worker(run: Run) -> int:
    """The number of the capture process that a run has started."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == run.process.pid and _WORKER in (entry / "cmdline").read_bytes():
                return int(entry.name)
        except (OSError, IndexError):
            continue
    return run.process.pid
