"""Warm steps of 1,000 landed records, copied and applied, with history.

Prints for each round the seconds and the processor time of the JVM, then for the last round the
Spark jobs, the calls through py4j and the classes that Spark generated and compiled.
`POLYNYA_BENCH_ROWS` sets the rows of Current, `POLYNYA_BENCH_SMALL=1` the JVM of `run --once`.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.clientserver import JavaClient
from py4j.protocol import (
    ARRAY_TYPE,
    ITERATOR_TYPE,
    LIST_TYPE,
    MAP_TYPE,
    MEMORY_COMMAND_NAME,
    MEMORY_DEL_SUBCOMMAND_NAME,
    REFERENCE_TYPE,
    SET_TYPE,
    SUCCESS,
)

from bench.session import session_in
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.engine.unit import Unit
from polynya.lake.spark.api import SparkSession
from polynya.model.config.task import StorageTask
from polynya.store.object_store import LocalObjectStore

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "35000"))
SMALL = os.environ.get("POLYNYA_BENCH_SMALL") == "1"
_RELEASE = MEMORY_COMMAND_NAME + MEMORY_DEL_SUBCOMMAND_NAME
_OBJECTS = {ARRAY_TYPE, ITERATOR_TYPE, LIST_TYPE, MAP_TYPE, REFERENCE_TYPE, SET_TYPE}
RECORDS, ROUNDS, COUNTED = 1000, 24, 8
TASK = StorageTask.model_validate(
    {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": "bench",
        "schema": "bench",
        "landing": {"path": "users", "format": "json"},
        "datasets": [
            {
                "name": "users",
                "keys": ["id"],
                "sequence_by": ["seq"],
                "timestamp": "ts",
                "apply_as_deletes": "op = 'D'",
                "except_columns": ["op"],
                "history": True,
            }
        ],
    }
)


@dataclass
class Calls:
    """Calls into the JVM, and the objects that they returned: each takes a call to release it."""

    count: int = 0
    objects: int = 0

    @property
    def all(self) -> int:
        """Those to release objects too."""
        return self.count + self.objects


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Count what crosses py4j inside the block.

    Objects are released by another thread, some time later: so what is counted are the objects.
    """
    calls, real = Calls(), JavaClient.send_command

    def counting(self: Any, command: str, *more: Any, **how: Any) -> Any:
        answer = real(self, command, *more, **how)
        if not command.startswith(_RELEASE):
            calls.count += 1
            calls.objects += answer[:1] == SUCCESS and answer[1:2] in _OBJECTS
        return answer

    JavaClient.send_command = counting
    try:
        yield calls
    finally:
        JavaClient.send_command = real


class Source:
    """A source whose records get a sequence each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._random = random.Random(5)
        self._sequence = 0
        folder.mkdir(parents=True)

    def land(self, keys: Sequence[int]) -> None:
        """Land one file with a change of each key."""
        lines = []
        for key in keys:
            self._sequence += 1
            record = {"id": key, "seq": self._sequence, "ts": "2026-01-01T00:00:00Z", "op": "U"}
            record |= {"customer": self._random.randrange(10**6), "status": "new", "amount": 1.5}
            record |= {"note": f"{self._random.getrandbits(128):032x}", "city": "Rome", "qty": 3}
            lines.append(json.dumps(record))
        (self._folder / f"{self._sequence:012d}.json").write_text("\n".join(lines) + "\n")

    def some(self) -> list[int]:
        """Keys of one round."""
        return [self._random.randrange(ROWS) for _ in range(RECORDS)]


def processor_seconds(spark: SparkSession) -> float:
    """Processor time of the JVM so far."""
    jvm: Any = spark._jvm
    spent = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get()
    return float(spent.toMillis()) / 1e3


def engine_counts(spark: SparkSession) -> tuple[int, int]:
    """Spark jobs, and classes compiled, so far."""
    jvm: Any = spark._jvm
    metrics = jvm.org.apache.spark.metrics.source.CodegenMetrics
    context: Any = spark.sparkContext
    jobs = int(context._jsc.sc().dagScheduler().nextJobId())
    return jobs, int(metrics.METRIC_COMPILATION_TIME().getCount())


def step(context: EngineContext, work: Sequence[Unit]) -> None:
    """Process what has landed."""
    for failure in run_once(context, work).failures.values():
        raise failure


def main() -> None:
    """Land, copy and apply round after round."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session_in(folder, small=SMALL)
        landing = Path(folder) / "landing"
        source = Source(landing / "users")
        context = EngineContext(spark=spark, landing=LocalObjectStore(landing), apply_mode="always")
        work = units(context, [TASK])
        source.land(range(ROWS))
        step(context, work)
        seconds, processor = [], []
        for number in range(1, ROUNDS + 1):
            source.land(source.some())
            before, jobs = (time.monotonic(), processor_seconds(spark)), engine_counts(spark)
            with counted_calls() as calls:
                step(context, work)
            seconds.append(time.monotonic() - before[0])
            processor.append(processor_seconds(spark) - before[1])
            print(f"round {number:2}: {seconds[-1]:5.2f} s, JVM {processor[-1]:5.2f} s")
        after = engine_counts(spark)
        wall, cpu = (statistics.mean(times[-COUNTED:]) for times in (seconds, processor))
        print(
            f"{ROWS:,} rows, {RECORDS:,} records a step, {os.cpu_count()} cores: {wall:.2f} s, JVM "
            f"{cpu:.2f} s (mean of {COUNTED}); {after[0] - jobs[0]} Spark jobs, "
            f"{calls.count} calls and {calls.objects} that release objects, "
            f"{after[1] - jobs[1]} classes compiled"
        )


if __name__ == "__main__":
    main()
