"""What one exact batch of files gives, and what tasks give that read them in splits."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, FileProgress
from polynya.formats.loads import LoadLimits, SplitPlan, SplitReport
from polynya.formats.native.format import read_native
from polynya.formats.native.loads import NativeLoads
from polynya.model.config.task import StorageTask, resolved
from polynya.model.types import DataType
from polynya.testing.fakes import MemoryObjectStore

WHOLE = BatchLimits(1 << 40, 1 << 40)
Outcome = tuple[dict[str, DataType], list[Any], list[Any], dict[str, FileProgress], Any]


def request_for(
    files: dict[str, bytes],
    file_format: str = "json",
    start: int = 0,
    landing: dict[str, Any] | None = None,
    **settings: Any,
) -> ReadRequest:
    """A request for all of these files, of a dataset with the key `id`."""
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "shop",
            "schema": "shop",
            "landing": {"path": "in", "format": file_format} | (landing or {}),
            "datasets": [
                {"name": "users", "keys": ["id"], "sequence_by": ["seq"],
                 "initial_load": "*"} | settings
            ],
        }
    )  # fmt: skip
    known = KnownTable(resolved(task, task.datasets[0]))
    parts = [FilePart(path, len(data), start) for path, data in files.items()]
    return ReadRequest(MemoryObjectStore(files), parts, {known.source: known}, WHOLE, load=True)


def exactly(request: ReadRequest) -> Outcome:
    """What one batch gives."""
    batch: DatasetBatch = read_native(request)
    names = ["__ci", "__tail", *batch.schema]
    rows = batch.rows.select(names).to_pylist()
    rejected = [(r.file, r.offset, r.rule, r.error, r.raw) for r in batch.rejected]
    times = [time for time in batch.rows.column("__ts").to_pylist() if time is not None]
    return dict(batch.schema), rows, rejected, dict(batch.files), max(times, default=None)


def by_tasks(request: ReadRequest, split_bytes: int) -> Outcome:
    """What tasks give that read splits of this size, and read again as the engine lets them."""
    loads, limits = NativeLoads(), LoadLimits(split_bytes=split_bytes)
    damaged: dict[str, str] = {}
    plan = loads.plan(request, limits, damaged, {})
    while True:
        assert isinstance(plan, SplitPlan)
        batches, reports = read(plan)
        broken = {s.file: why for s in plan.splits if (why := reports[s.number].damaged)}
        damaged.update(broken)
        following = (
            loads.plan(request, limits, damaged, {}) if broken else loads.settled(plan, reports)
        )
        if following is plan:
            break
        plan = following
    rows = [row for batch in batches for row in batch.to_pylist()]
    good = [{n: v for n, v in row.items() if n in {"__ci", "__tail", *plan.schema}}
            for row in rows if row["__rule"] is None]  # fmt: skip
    service = ("__file", "__offset", "__rule", "__error", "__raw")
    bad = [tuple(row[name] for name in service) for row in rows if row["__rule"] is not None]
    bad += [(r.file, r.offset, r.rule, r.error, r.raw) for r in plan.rejected]
    newest = max((r.newest for r in reports.values() if r.newest is not None), default=None)
    time = None if newest is None else pa.scalar(newest, pa.timestamp("us", "UTC")).as_py()
    files = plan.progress_after(reports)
    order = {part.path: number for number, part in enumerate(request.files)}
    bad.sort(key=lambda one: (order[one[0]], one[1]))
    return dict(plan.schema), good, bad, files, time


def read(plan: SplitPlan) -> tuple[list[pa.RecordBatch], dict[int, SplitReport]]:
    reports: dict[int, SplitReport] = {}
    batches = [
        batch
        for split in plan.splits
        for batch in plan.reader.read(split, lambda number, said: reports.update({number: said}))
    ]
    return batches, reports


def same(left: Outcome, right: Outcome) -> bool:
    """Also where a value is NaN or a negative zero."""
    return repr(left) == repr(right)
