"""How long a small dataset waits while the first load of another one runs in the same process.

`run_until_stopped`, as `polynya run` calls it; a small file lands as soon as the one before was
copied. Its time is from landed to copied, so the pause between two looks is part of it.
"""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Queue

from bench.floors.floor import Measured
from bench.floors.lake import Lake, work_of
from bench.floors.records import land_changes, land_load
from bench.floors.sizes import Sizes
from bench.floors.tasks import task
from polynya.engine.runner import run_until_stopped
from polynya.observe.engine import BatchCopied, UnitFailed
from polynya.observe.events import Event

LARGE, SMALL = "waiting_large", "waiting_small"
#: A file that takes longer than this many seconds from landed to copied waited for something.
LONGEST = 10.0
_RECORDS = 100
_GIVE_UP = 3600.0


@dataclass(slots=True)
class Seen:
    """What the engine said: each copy of the small dataset, and when the load was complete."""

    expected: int
    rows: int = 0
    small: Queue[Event] = field(default_factory=Queue)
    loaded: threading.Event = field(default_factory=threading.Event)

    def note(self, event: Event) -> None:
        """Take an event of the run."""
        if isinstance(event, UnitFailed):
            self.small.put(event)
        if not isinstance(event, BatchCopied):
            return
        if event.subject.endswith(SMALL):
            self.small.put(event)
            return
        self.rows += event.rows_out
        if self.rows >= self.expected:
            self.loaded.set()

    def await_small(self) -> None:
        """Wait for the next copy of the small dataset; raises what failed instead."""
        event = self.small.get(timeout=_GIVE_UP)
        if isinstance(event, UnitFailed):
            raise event.error


def measure(lake: Lake, sizes: Sizes) -> Measured:
    """Land small files, alone and then beside a first load."""
    seen = Seen(sizes.waiting_rows)
    context = lake.engine(seen.note)
    small_task = task(SMALL, "json", schema=lake.schema)
    # The measurement is how long files wait, not what a trickle saves.
    small_task["batch"] = {"freshness": "0s"}
    tasks = (task(LARGE, "parquet", schema=lake.schema), small_task)
    land_load(lake.landing / SMALL / "load", "json", rows=_RECORDS, files=1)
    aside = lake.landing.parent / LARGE
    land_load(aside, "parquet", rows=sizes.waiting_rows, files=sizes.load_files)
    runner = threading.Thread(target=run_until_stopped, args=(context, work_of(context, *tasks)))
    runner.start()
    try:
        seen.await_small()
        small = Small(lake, seen)
        idle = [small.land() for _ in range(sizes.waiting_idle)]
        began = time.perf_counter()
        (lake.landing / LARGE).mkdir()
        aside.rename(lake.landing / LARGE / "load")
        beside = small.land_while(lambda: not seen.loaded.is_set())
        load = time.perf_counter() - began
    finally:
        context.stop.set()
        runner.join()
    for name in (LARGE, SMALL):
        shutil.rmtree(lake.landing / name, ignore_errors=True)
    return Measured(
        "the longest wait of a small dataset beside a load",
        [max(beside)],
        [load],
        "the load that runs meanwhile",
        max(2.0, load / LONGEST),
        f"first load of {sizes.waiting_rows:,} Parquet rows; {len(beside)} files of {_RECORDS} "
        f"JSON records, from landed to copied, each landed after the one before; median "
        f"{statistics.median(beside):.1f} s, without the load {statistics.median(idle):.1f} s",
    )


@dataclass(slots=True)
class Small:
    """The source of the small dataset."""

    lake: Lake
    seen: Seen
    version: int = 0

    def land(self) -> float:
        """Land one file; the seconds until it is copied."""
        self.version += 1
        folder = self.lake.landing / SMALL / "changes"
        land_changes(folder, "json", rows=_RECORDS, count=_RECORDS, version=self.version)
        began = time.perf_counter()
        self.seen.await_small()
        return time.perf_counter() - began

    def land_while(self, going: Callable[[], bool]) -> list[float]:
        """Land one after the other, at least one."""
        waited = [self.land()]
        while going():
            waited.append(self.land())
        return waited
