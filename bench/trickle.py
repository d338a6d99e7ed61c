"""Many small datasets in one driver, into each of which one record trickles every second.

Another process writes the records, so that the driver does nothing but its work. Prints for each
interval the steps per second (copies and applies), the age of the records when they could be
queried, and memory and processor time of the JVM and of Python. `python -m bench.trickle --help`
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
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
    """Records that another process lands, round after round, and their ages in the tables.

    A record counts from the beginning of its round, before its file exists.
    """

    def __init__(self, folder: Path, options: Options) -> None:
        self._lock = threading.Lock()
        self._rounds: list[float] = []
        self._copied = dict.fromkeys(names(options), 0)
        self._ages: list[float] = []
        self._writer, theirs = Pipe()
        # A fork would take the threads of the JVM's client along.
        spawn = get_context("spawn")
        self._process = spawn.Process(target=land, args=(theirs, folder, options), daemon=True)
        self._process.start()

    def copied(self, table: str, rows: int) -> None:
        """A table has its next records; the writer removes their files."""
        now = time.monotonic()
        with self._lock:
            self._take_rounds()
            first = self._copied[table]
            self._copied[table] = last = min(first + rows, len(self._rounds))
            self._ages += [now - began for began in self._rounds[first:last]]
            self._writer.send((table, first, last))

    def ages(self) -> list[float]:
        """Ages, in seconds, of the records that were copied since the last call."""
        with self._lock:
            ages, self._ages = self._ages, []
        return ages

    def oldest(self) -> float:
        """Seconds that the oldest record waits which is not copied."""
        with self._lock:
            self._take_rounds()
            waiting = self._rounds[min(self._copied.values()) :]
        return time.monotonic() - waiting[0] if waiting else 0.0

    def end(self) -> None:
        """Land nothing more."""
        with self._lock:
            self._writer.send(None)
        self._process.join()

    def _take_rounds(self) -> None:
        while self._writer.poll():
            self._rounds.append(self._writer.recv())


def land(engine: Connection, folder: Path, options: Options) -> None:
    """Land a record for each table again and again, until told to stop.

    Each round tells when it begins. What comes back are the records that a table has: its name, and
    the first and the last round.
    """
    began, number = time.monotonic(), 0
    while True:
        while engine.poll():
            if (copied := engine.recv()) is None:
                return
            _remove(folder, options, *copied)
        engine.send(time.monotonic())
        _write_round(folder, options, number)
        number += 1
        time.sleep(max(0.0, began + number * options.seconds - time.monotonic()))


def _write_round(folder: Path, options: Options, number: int) -> None:
    tables = names(options)
    if options.kind == "debezium":
        _write(folder / f"{number:08d}.jsonl", [change(name, number) for name in tables])
        return
    for name in tables:
        _write(_file(folder, name, number), [record(name, number)])


def _write(file: Path, records: Sequence[Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}")
    temporary.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    temporary.rename(file)


def _remove(folder: Path, options: Options, table: str, first: int, last: int) -> None:
    if options.kind == "json":
        for number in range(first, last):
            _file(folder, table, number).unlink()


def _file(folder: Path, table: str, number: int) -> Path:
    return folder / table / f"{number:08d}.json"


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
    began, processor = time.monotonic(), _processors(spark)
    before, late = (0, 0), []
    print("minute  copies/s applies/s  age p50, p95  oldest   JVM, heap, Python (MiB)  their CPU")
    while time.monotonic() - began < options.minutes * 60:
        started = time.monotonic()
        time.sleep(options.interval)
        took, now = time.monotonic() - started, (seen.copies, seen.applies)
        copies, applies = ((after - one) / took for after, one in zip(now, before, strict=True))
        ages, spent = trickle.ages(), _processors(spark)
        of_java, of_python = (
            (after - one) / took for after, one in zip(spent, processor, strict=True)
        )
        jvm, python, heap = memory(spark)
        minute = (time.monotonic() - began) / 60
        p50, p95 = quantiles(ages)
        figures = (
            f"{minute:6.1f}  {copies:8.2f} {applies:9.2f}",
            f"{p50:6.1f} {p95:6.1f}  {trickle.oldest():6.1f}",
            f"{jvm:6.0f} {heap:6.0f} {python:6.0f}  {of_java:15.2f} {of_python:5.2f}",
        )
        print("  ".join(figures), flush=True)
        before, processor = now, spent
        if minute > options.minutes / 2:
            late += ages
    half = quantiles(late)
    print(f"second half: p95 {half[1]:.1f} s of {len(late):,} records")
    return half


def _processors(spark: SparkSession) -> tuple[float, float]:
    """Seconds of a processor that the JVM and Python took so far."""
    return processor_seconds(spark), time.process_time()


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
        thread = _started(lambda: run_until_stopped(context, work))
        try:
            half = measure(spark, trickle, seen, options)
        finally:
            context.stop.set()
            thread.join()
            trickle.end()
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
