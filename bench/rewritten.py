"""A table written again by the driver and by tasks, in turns: time, processor time and memory.

Prints for groups of several sizes how long two of them take in both ways, then the same for the
whole table. `POLYNYA_BENCH_ROWS` sets its rows; their keys are in no order.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.session import session_in
from bench.step import TASK, step
from polynya.engine.context import EngineContext
from polynya.engine.runner import units
from polynya.lake.iceberg.reading import stored_file
from polynya.lake.iceberg.writing import write_rows
from polynya.lake.maintenance.base import never
from polynya.lake.maintenance.job import RewriteJob
from polynya.lake.maintenance.rewrite_data_files import stage_by_tasks
from polynya.lake.maintenance.rewrite_plan import (
    MEBIBYTE,
    RewriteCandidate,
    RewriteGroup,
    SnapshotFiles,
    look,
)
from polynya.lake.maintenance.rewrite_writer import ordered_by
from polynya.lake.maintenance.write import StagedGroup, job_of, stage_here
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.task import StorageTask, resolved
from polynya.model.headers import Partition
from polynya.store.object_store import LocalObjectStore

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "3000000"))
FILE_ROWS, ROUNDS = 50_000, 2
SIZES = (8, 32)
_TICKS = os.sysconf("SC_CLK_TCK")
Work = Sequence[tuple[RewriteGroup, RewriteJob]]


def main() -> None:
    """Both ways, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        table = filled(Path(folder))
        seen = _seen(table)
        size = sum(one.file.size_bytes for one in seen.files)
        print(f"{ROWS:,} rows, {len(seen.files)} files, {size / MEBIBYTE:,.0f} MiB")
        for mebibytes in SIZES:
            groups = _groups(seen, mebibytes * MEBIBYTE)
            if len(groups) > 1:
                compare(table, seen, groups[:2], f"2 groups of {mebibytes} MiB")
        compare(table, seen, _groups(seen, 256 * MEBIBYTE), "all of it")


def filled(folder: Path) -> DatasetTable:
    """A table whose rows are in many small files, their keys in no order."""
    document = TASK.model_dump(by_alias=True, exclude_unset=True, mode="json")
    own = {"name": "users", "keys": ["id"], "sequence_by": ["seq"], "initial_load": "*.parquet"}
    landing = {"path": "users", "format": "parquet"}
    task = StorageTask.model_validate({**document, "landing": landing, "datasets": [own]})
    (folder / "landing" / "users").mkdir(parents=True)
    keys = pc.sort_indices(pc.random(ROWS, initializer=1)).cast(pa.int64())
    amounts = pc.random(ROWS, initializer=2)
    landed = pa.table({"id": keys, "seq": keys, "note": _texts(ROWS), "amount": amounts})
    pq.write_table(landed, folder / "landing" / "users" / "load.parquet", row_group_size=100_000)
    context = EngineContext(
        spark=session_in(str(folder)),
        landing=LocalObjectStore(folder / "landing"),
        apply_mode="always",
    )
    step(context, list(units(context, [task])))
    table = DatasetTable.existing(context.spark, resolved(task, task.datasets[0]), context.owner)
    table.take_over()
    _cut(table)
    return table


def _texts(rows: int) -> pa.Array:
    """Texts of 64 characters that hardly compress."""
    data = os.urandom(32 * rows).hex().encode()
    offsets = pa.array(range(0, 64 * rows + 1, 64), pa.int32())
    return pa.StringArray.from_buffers(rows, offsets.buffers()[1], pa.py_buffer(data))


def _cut(table: DatasetTable) -> None:
    """Let the rows of Current be in small files."""
    iceberg, reach = table.table, table.table.reach().reads
    assert table.state.snapshot is not None
    assert not isinstance(reach, str)
    old = iceberg.files(Partition.CURRENT, table.state.snapshot)
    new = []
    for file in old:
        stored = stored_file(reach, file.path)
        for group in stored.groups:
            rows = stored.read(group, stored.own(iceberg.columns()))
            for at in range(0, rows.num_rows, FILE_ROWS):
                new += write_rows(iceberg, rows.slice(at, FILE_ROWS))
    table.commit(apply=table.state.apply, add=new, remove=old, summary={})


def _seen(table: DatasetTable) -> SnapshotFiles:
    assert table.state.snapshot is not None
    seen = look(table.table, table.state.snapshot, table.stored_shape(), table.dataset.layout)
    assert not isinstance(seen, str)
    return seen


def _groups(seen: SnapshotFiles, size: int) -> list[RewriteGroup]:
    """All files, in groups of about this size that become one file for each 128 MiB."""
    groups: list[RewriteGroup] = []
    part: list[RewriteCandidate] = []
    held = 0
    for one in seen.files:
        part.append(one)
        held += one.file.size_bytes
        if held >= size:
            groups.append(
                RewriteGroup("join", tuple(part), max(1, held // (128 * MEBIBYTE)), "a test")
            )
            part, held = [], 0
    if part:
        groups.append(RewriteGroup("join", tuple(part), 1, "a test"))
    return groups


def compare(
    table: DatasetTable, seen: SnapshotFiles, groups: Sequence[RewriteGroup], what: str
) -> None:
    """Write groups in both ways, in turns; print medians."""
    ways = {"driver": by_driver, "tasks": by_tasks}
    taken: dict[str, list[Taken]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, way in ways.items():
            order = ordered_by(table.dataset.layout, table.stored_shape(), Partition.CURRENT)
            work = [(group, _job(job_of(table.table, seen, group, order))) for group in groups]
            with measured() as one:
                staged = way(table, work)
            table.table.drop_files(path for some in staged for path in some.paths)
            if number:
                taken[name].append(one)
    for name, some in taken.items():
        print(f"{what}, {name}: {Taken.median(some)}", flush=True)


def by_driver(table: DatasetTable, work: Work) -> list[StagedGroup]:
    """One after the other, here."""
    return [stage_here(table.table, group, job, never) for group, job in work]


def by_tasks(table: DatasetTable, work: Work) -> list[StagedGroup]:
    """At the same time, in tasks."""
    return stage_by_tasks(table.table, work, never)


def _job(found: RewriteJob | str) -> RewriteJob:
    assert isinstance(found, RewriteJob), found
    return found


@dataclass
class Taken:
    """What was measured: seconds, and mebibytes of this process and of all Python of its tasks."""

    wall: float = 0.0
    processor: float = 0.0
    driver: float = 0.0
    tasks: float = 0.0
    largest: float = 0.0
    watching: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    @staticmethod
    def median(some: Sequence[Taken]) -> str:
        """In words."""

        def of(name: str) -> float:
            return float(statistics.median(getattr(one, name) for one in some))

        return (
            f"{of('wall'):.1f} s, {of('processor'):.1f} s of processor time, "
            f"driver +{of('driver'):,.0f} MiB, tasks {of('tasks'):,.0f} MiB together, "
            f"{of('largest'):,.0f} MiB the largest"
        )


@contextmanager
def measured() -> Iterator[Taken]:
    """Measure the block."""
    pa.default_memory_pool().release_unused()
    taken, before = Taken(), _memory(os.getpid())

    def watch() -> None:
        while not taken.over.wait(0.2):
            taken.driver = max(taken.driver, _memory(os.getpid()) - before)
            each = [_memory(pid) for pid in _workers()]
            taken.tasks = max(taken.tasks, sum(each))
            taken.largest = max([taken.largest, *each])
        taken.watching = time.thread_time()

    watcher = threading.Thread(target=watch)
    began, spent = time.monotonic(), _spent()
    watcher.start()
    try:
        yield taken
    finally:
        taken.wall = time.monotonic() - began
        taken.over.set()
        watcher.join()
        taken.processor = _spent() - spent - taken.watching


def _memory(pid: int) -> float:
    """Memory of a process in MiB, with its part of shared memory; 0 when it has ended."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return (
        next((int(line.split()[1]) for line in told.splitlines() if line[:4] == "Pss:"), 0) / 1024
    )


def _family() -> Iterator[tuple[int, list[str]]]:
    """This process and all below it: number, and fields of its `stat` after the name."""
    known: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            known[int(path.parent.name)] = path.read_text().rpartition(") ")[2].split()
    found = {os.getpid()}
    while more := {pid for pid, one in known.items() if int(one[1]) in found} - found:
        found |= more
    return ((pid, known[pid]) for pid in found if pid in known)


def _workers() -> list[int]:
    """Processes that run Python of tasks."""
    found = []
    for pid, _ in _family():
        with suppress(OSError):
            if b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def _spent() -> float:
    """Processor seconds of this process and of all below it, also of those that ended."""
    return sum(sum(map(int, one[11:15])) for _, one in _family()) / _TICKS


if __name__ == "__main__":
    main()
