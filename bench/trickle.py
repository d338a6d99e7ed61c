"""Many small datasets in one driver, into each of which one record trickles every second.

Prints for each interval the steps per second (copies and applies), the age of the records when they
could be queried, and the memory of the JVM and of Python. `python -m bench.trickle --help`
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.measurements import Notes, Point, note_option, this_run
from bench.session import session_in
from bench.step import processor_seconds
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_until_stopped, units
from polynya.lake.spark.api import SparkSession
from polynya.model.config.task import StorageTask
from polynya.observe import trace
from polynya.observe.engine import BatchCopied, DatasetApplied, UnitFailed
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore

#: Records of a table have keys below this: most are updates.
_KEYS = 1000
_MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Options:
    """The options; `kind` is `json` (a folder each) or `debezium` (files of all tables)."""

    tables: int
    minutes: float
    seconds: float
    kind: str
    freshness: str
    interval: float
    note: Path | None = None


def names(options: Options) -> list[str]:
    """The tables."""
    return [f"t{number:04d}" for number in range(options.tables)]


def task(options: Options) -> StorageTask:
    """One task with all tables."""
    document: dict[str, Any] = {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": "bench",
        "schema": "bench",
        "landing": {"path": "in", "format": options.kind},
        "batch": {"freshness": options.freshness},
    }
    if options.kind == "json":
        document["datasets"] = [
            {"name": name, "path": f"{name}/*", "keys": ["id"], "sequence_by": ["seq"]}
            for name in names(options)
        ]
    return StorageTask.model_validate(document)


def record(table: str, number: int) -> dict[str, Any]:
    """A change of one row."""
    return {"id": number * 7919 % _KEYS, "seq": number, "note": f"{table} {number}", "amount": 1.5}


def change(table: str, number: int) -> dict[str, Any]:
    """The same as a connector for PostgreSQL captures it."""
    source: dict[str, Any] = {
        "connector": "postgresql",
        "db": "d",
        "schema": "bench",
        "table": table,
    }
    source |= {"ts_ms": 1_700_000_000_000 + number, "lsn": 1_000_000 + number, "txId": number}
    source |= {"snapshot": "false", "sequence": f'["{1_000_000 + number}", "{1_000_000 + number}"]'}
    value = {"op": "c", "before": None, "after": record(table, number), "source": source}
    key = {"id": number * 7919 % _KEYS}
    return {"key": key, "value": value | {"ts_ms": source["ts_ms"]}}


class Trickle:
    """Lands a record for each table again and again, and takes away what was copied."""

    def __init__(self, folder: Path, options: Options) -> None:
        self._folder = folder
        self._options = options
        self._lock = threading.Lock()
        self._landed: dict[str, deque[tuple[float, Path]]] = {}
        self._ages: list[float] = []

    def land(self, stop: threading.Event) -> None:
        """Land until told to stop."""
        began, number = time.monotonic(), 0
        while not stop.is_set():
            number += 1
            write = self._by_table if self._options.kind == "json" else self._shared
            write(number)
            stop.wait(max(0.0, began + number * self._options.seconds - time.monotonic()))

    def _by_table(self, number: int) -> None:
        for name in names(self._options):
            file = self._folder / name / f"{number:08d}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            self._write(file, [record(name, number)], [name])

    def _shared(self, number: int) -> None:
        tables = names(self._options)
        file = self._folder / f"{number:08d}.jsonl"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(file, [change(name, number) for name in tables], tables)

    def _write(self, file: Path, records: Sequence[Any], tables: Sequence[str]) -> None:
        temporary = file.with_name(f".{file.name}")
        temporary.write_text("".join(f"{json.dumps(one)}\n" for one in records))
        with self._lock:
            for name in tables:
                self._landed.setdefault(name, deque()).append((time.monotonic(), file))
        temporary.rename(file)

    def copied(self, table: str, rows: int) -> None:
        """A table has its oldest records; the writer removes those that it no longer awaits."""
        now = time.monotonic()
        with self._lock:
            waiting = self._landed.get(table, deque())
            done = [waiting.popleft() for _ in range(min(rows, len(waiting)))]
            self._ages += [now - at for at, _ in done]
        if self._options.kind == "json":
            for _, file in done:
                file.unlink(missing_ok=True)

    def ages(self) -> list[float]:
        """Ages, in seconds, of the records that were copied since the last call."""
        with self._lock:
            ages, self._ages = self._ages, []
        return ages

    def oldest(self) -> float:
        """Seconds that the oldest record waits which is not copied."""
        with self._lock:
            since = [waiting[0][0] for waiting in self._landed.values() if waiting]
        return time.monotonic() - min(since) if since else 0.0


@dataclass
class Seen:
    """What the engine said."""

    trickle: Trickle
    copies: int = 0
    applies: int = 0
    failures: list[str] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """Take an event; several threads do."""
        if isinstance(event, BatchCopied):
            self.copies += 1
            self.trickle.copied(event.subject.rpartition(".")[2], event.rows_in)
        elif isinstance(event, DatasetApplied):
            self.applies += 1
        elif isinstance(event, UnitFailed):
            self.failures.append(event.text())


def memory(spark: SparkSession) -> tuple[float, float, float]:
    """MiB that the JVM and Python hold of the machine, and MiB in use of the heap."""
    jvm: Any = spark._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / _MEBIBYTE
    return resident(str(jvm.java.lang.ProcessHandle.current().pid())), resident("self"), heap


def resident(process: str) -> float:
    """MiB of a process that are in memory."""
    status = Path(f"/proc/{process}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def measure(
    spark: SparkSession, trickle: Trickle, seen: Seen, options: Options
) -> tuple[float, float]:
    """Print a line for each interval, and the second half in one; p50 and p95 of that."""
    began, processor = time.monotonic(), processor_seconds(spark)
    before, late = (0, 0), []
    print("minute  copies/s applies/s  age p50, p95  oldest   JVM, heap, Python (MiB)  JVM CPU")
    while time.monotonic() - began < options.minutes * 60:
        started = time.monotonic()
        time.sleep(options.interval)
        took, now = time.monotonic() - started, (seen.copies, seen.applies)
        copies, applies = ((after - one) / took for after, one in zip(now, before, strict=True))
        ages, spent = trickle.ages(), processor_seconds(spark)
        jvm, python, heap = memory(spark)
        minute = (time.monotonic() - began) / 60
        p50, p95 = quantiles(ages)
        figures = (
            f"{minute:6.1f}  {copies:8.2f} {applies:9.2f}",
            f"{p50:6.1f} {p95:6.1f}  {trickle.oldest():6.1f}",
            f"{jvm:6.0f} {heap:6.0f} {python:6.0f}  {(spent - processor) / took:20.2f}",
        )
        print("  ".join(figures), flush=True)
        before, processor = now, spent
        if minute > options.minutes / 2:
            late += ages
    half = quantiles(late)
    print(f"second half: p95 {half[1]:.1f} s of {len(late):,} records")
    return half


def quantiles(ages: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile; NaN of nothing."""
    if len(ages) < 2:
        return float("nan"), float("nan")
    found = statistics.quantiles(ages, n=20)
    return found[9], found[18]


def run(options: Options) -> None:
    """Start a driver, let records trickle, and measure."""
    notes = Notes(options.note, this_run())
    with tempfile.TemporaryDirectory() as folder:
        spark = session_in(folder)
        landing = Path(folder) / "landing"
        trickle = Trickle(landing / "in", options)
        seen = Seen(trickle)
        context = EngineContext(spark=spark, landing=LocalObjectStore(landing), sink=seen.note)
        work = units(context, [task(options)])
        threads = [
            _started(lambda: trickle.land(context.stop)),
            _started(lambda: run_until_stopped(context, work)),
        ]
        try:
            half = measure(spark, trickle, seen, options)
        finally:
            context.stop.set()
            for thread in threads:
                thread.join()
        print(f"{len(seen.failures)} failures", *seen.failures[:3], sep="\n")
        if not seen.failures:
            notes.add(*age_points(half, options))


def age_points(half: tuple[float, float], options: Options) -> list[Point]:
    """The ages of the second half for the picture; none of too few records."""
    settings = {"minutes": options.minutes, "seconds": options.seconds, "kind": options.kind}
    return [
        Point("age", name, options.tables, [age], settings)
        for name, age in zip(("p50", "p95"), half, strict=True)
        if not math.isnan(age)
    ]


def _started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.trickle", description=__doc__)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=1.0, help="between two records of a table")
    parser.add_argument("--kind", choices=("json", "debezium"), default="json")
    parser.add_argument("--freshness", default="5s", help="`batch.freshness` of the task")
    parser.add_argument("--interval", type=float, default=15.0, help="seconds of a printed line")
    note_option(parser)
    options = Options(**vars(parser.parse_args()))
    trace.begin(os.environ.get(trace.VARIABLE))
    run(options)
    trace.end()


if __name__ == "__main__":
    main()
