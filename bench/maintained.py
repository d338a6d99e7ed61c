"""A table after 500 small merges: worn, written again, and beside a copy that is freshly written.

Prints the files of a small table that gets 20 records a second for ten minutes; then, for a large
one, the files of each state, what the rewrites took, and the processor time of full reads and of
applies beside those of the fresh copy.
`POLYNYA_BENCH_ROWS` sets the rows, `POLYNYA_BENCH_MERGES` the merges, `POLYNYA_BENCH_FILES` the
seconds.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from bench.session import session_in
from bench.step import TASK, Source, processor_seconds, step
from polynya.engine.context import EngineContext
from polynya.engine.runner import units
from polynya.engine.unit import Unit
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.rewrite_data_files import RULE, rewrite_data_files
from polynya.lake.maintenance.snapshots import Keep, expire_snapshots
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import CATALOG
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.headers import Partition
from polynya.store.object_store import LocalObjectStore

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "1000000"))
MERGES = int(os.environ.get("POLYNYA_BENCH_MERGES", "500"))
RECORDS, READS, APPLIES = 1000, 7, 15
#: Ten minutes of a file a second, and how often the optimizer looks.
FILES = int(os.environ.get("POLYNYA_BENCH_FILES", "600"))
OF_FILE, KEYS, LOOK = 20, 500, 60
NONE = Keep(timedelta(), 1)


def task(name: str, form: str) -> StorageTask:
    """The task of `bench.step` for another dataset."""
    document: dict[str, Any] = TASK.model_dump(by_alias=True, exclude_unset=True, mode="json")
    document["name"] = f"{name}_task"
    document["landing"] = {"path": name, "format": form}
    # Without history both tables hold the same rows in the end.
    document["datasets"] = [{**document["datasets"][0], "name": name, "history": False}]
    return StorageTask.model_validate(document)


@dataclass
class Table:
    """A dataset with a source of its own."""

    context: EngineContext
    landing: Path
    source: Source
    dataset: ResolvedDataset
    work: list[Unit]
    chance: random.Random

    @classmethod
    def of(cls, context: EngineContext, landing: Path, name: str) -> Table:
        """An empty one."""
        given = task(name, "json")
        folder, work = landing / name, list(units(context, [given]))
        dataset = resolved(given, given.datasets[0])
        return cls(context, folder, Source(folder), dataset, work, random.Random(7))

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.context.spark

    def change(self, keys: list[int]) -> float:
        """Land, copy and apply one change of each key; the processor time that it took."""
        self.source.land(keys)
        began = spent(self.spark)
        step(self.context, self.work)
        took = spent(self.spark) - began
        for file in self.landing.iterdir():
            file.unlink()
        return took

    def change_some(self) -> float:
        """The same for some keys, drawn evenly."""
        return self.change([self.chance.randrange(ROWS) for _ in range(RECORDS)])

    def opened(self) -> DatasetTable:
        """The table, taken over."""
        table = DatasetTable.existing(self.spark, self.dataset, self.context.owner)
        table.take_over()
        return table

    def again(self) -> None:
        """The engine opens the table again, which another owner has taken over."""
        self.work = list(units(self.context, [task(self.dataset.name, "json")]))

    def files(self) -> str:
        """How many files there are."""
        table = DatasetTable.existing(self.spark, self.dataset)
        snapshot = table.state.snapshot
        assert snapshot is not None
        current, prior = (
            len(table.table.files(one, snapshot)) for one in (Partition.CURRENT, Partition.PRIOR)
        )
        deletes = len(table.table.position_deletes(snapshot) or ())
        return f"{current} files of Current, {prior} of Prior, {deletes} of deletes"

    def at(self) -> str:
        """The snapshot of now in SQL."""
        table = DatasetTable.existing(self.spark, self.dataset)
        assert table.state.snapshot is not None
        return table.table.at(table.state.snapshot)


def rewritten(table: Table, *, thorough: bool) -> str:
    """Write files again; what it took."""
    rule = RULE.thorough() if thorough else RULE
    done = rewrite_data_files(table.opened(), _limits(), rule)
    table.again()
    return _said(done)


def _limits() -> ActionLimits:
    return ActionLimits(datetime.now(UTC))


def _said(done: ActionOutcome) -> str:
    return f"{done.why} ({done.written_bytes:,} bytes, {done.seconds:.1f} s)"


def spent(spark: SparkSession) -> float:
    """Processor time so far, of the JVM and of this process, in seconds."""
    return processor_seconds(spark) + time.process_time()


def read(spark: SparkSession, relation: str) -> float:
    """Processor time of a full read of Current."""
    rows = spark.sql(f"SELECT * FROM {relation} WHERE hdr__partition = 'current'")
    began = spent(spark)
    rows.write.format("noop").mode("overwrite").save()
    return spent(spark) - began


def in_turns(rounds: int, contenders: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Medians of contenders that are measured in turns, the first round left out."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, measure in contenders.items():
            seconds = measure()
            if number:
                found[name].append(seconds)
    return {name: statistics.median(times) for name, times in found.items()}


def told(what: str, medians: dict[str, float], beside: str) -> None:
    """Print medians and their ratio to one of them: how many times as fast."""
    for name, seconds in medians.items():
        print(f"{what}, {name}: {seconds:.3f} s, {medians[beside] / seconds:.2f} x as fast")


def worn(context: EngineContext, landing: Path) -> None:
    """A large table after many merges."""
    users = Table.of(context, landing, "users")
    users.change(list(range(ROWS)))
    for _ in range(MERGES):
        users.change_some()
    relations = {"worn": users.at()}
    print(f"after {MERGES} merges of {RECORDS:,} into {ROWS:,} rows: {users.files()}")
    print(f"by the rule: {rewritten(users, thorough=False)}: {users.files()}")
    relations["by the rule"] = users.at()
    print(f"thorough: {rewritten(users, thorough=True)}: {users.files()}")
    relations["thorough"] = users.at()
    fresh = Table.of(context, landing, "fresh")
    fresh.change(list(range(ROWS)))
    spark = context.spark
    relations["fresh"] = f"{CATALOG}.bench.copy"
    same = f"SELECT * FROM {users.at()} ORDER BY id"
    spark.sql(f"CREATE TABLE {relations['fresh']} USING iceberg AS {same}")
    reads = {name: partial(read, spark, at) for name, at in relations.items()}
    told("full read", in_turns(READS, reads), "fresh")
    for table in (users, fresh):
        # Metadata of hundreds of snapshots is written with every commit.
        expire_snapshots(table.opened(), limits=_limits(), keep=NONE, readers=list)
        table.again()
    changes = {
        "rewritten": users.change_some,
        "fresh": fresh.change_some,
    }
    told("1,000 changes", in_turns(APPLIES, changes), "fresh")


def trickled(context: EngineContext, landing: Path) -> None:
    """A small table, each file of it copied and applied by itself."""
    small = Table.of(context, landing, "small")
    small.change(list(range(KEYS)))
    most = ""
    for number in range(1, FILES + 1):
        small.change([(number * 7919 + one * 31) % KEYS for one in range(OF_FILE)])
        if number % LOOK == 0:
            before = small.files()
            print(f"after {number} s: {before}; {rewritten(small, thorough=False)}")
            most = small.files()
    print(f"in the end: {most}")


def main() -> None:
    """Both."""
    with tempfile.TemporaryDirectory() as folder:
        landing = Path(folder) / "landing"
        context = EngineContext(
            spark=session_in(folder), landing=LocalObjectStore(landing), apply_mode="always"
        )
        trickled(context, landing)
        worn(context, landing)


if __name__ == "__main__":
    main()
