"""The live Current view beside a scan of the stored rows of Current: the same columns, in turns.

With nothing pending both must have the same rows. With changes pending the view must have those
that Current has after an apply.
"""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from uuid import uuid4

from bench.floors.floor import Measured
from bench.floors.lake import Lake, take_in, work_of
from bench.floors.records import COLUMNS, land_changes, land_load
from bench.floors.sizes import Sizes
from bench.floors.tasks import task
from bench.measurements import Point
from polynya.lake.spark.api import DataFrame

NAME = "viewed"
#: Share of the records with pending changes → how fast the view has to be, the scan being 1.
FLOORS: Final = {0.0: 0.85, 0.01: 0.65, 0.1: 0.65}
#: Reads all columns: two tables of the same rows have the same, in any order.
_PRINTS = f"count(*), sum(hash({', '.join(COLUMNS)}))"


def measure(lake: Lake, sizes: Sizes) -> Iterator[Measured]:
    """Load a table and query it, then with changes that are copied and not applied."""
    folder, rows = lake.landing / NAME, sizes.view_rows
    declared = task(NAME, "parquet", schema=lake.schema)
    declared["datasets"][0]["columns"] = {"ts": "timestamp"}
    land_load(folder / "load", "parquet", rows=rows, files=sizes.load_files)
    context = lake.engine()
    copying = replace(context, apply_mode="never")
    take_in(context, work_of(context, declared))
    shares = sorted({*FLOORS, *sizes.view_shares})
    for version, share in enumerate(shares):
        count = int(rows * share)
        if count:
            land_changes(folder / "changes", "parquet", rows=rows, count=count, version=version)
            take_in(copying, work_of(copying, declared))
        yield _measured(lake, sizes, count, share)
        live = _prints(lake, _view(lake))
        take_in(context, work_of(context, declared))
        assert live == _prints(lake, _stored(lake))
    shutil.rmtree(folder)


def _measured(lake: Lake, sizes: Sizes, count: int, share: float) -> Measured:
    seconds: tuple[list[float], list[float]] = ([], [])
    contenders = (_view(lake), _stored(lake))
    for number in range(sizes.view_warm_up + sizes.view_rounds):
        # Each is first as often as the other.
        for side in (0, 1) if number % 2 else (1, 0):
            # Java keeps what a query has broadcast until Python collects the cycles of py4j.
            gc.collect()
            began = time.perf_counter()
            _prints(lake, contenders[side])
            if number >= sizes.view_warm_up:
                seconds[side].append(time.perf_counter() - began)
    pending = f"{count:,} pending" if count else "nothing pending"
    ours, peer = (_work(lake, one) for one in contenders)
    rows = f"{sizes.view_rows:,} rows"
    points = (
        Point("view", f"live view of {rows}", share, seconds[0]),
        Point("view", f"scan of {rows}", share, seconds[1]),
    )
    return Measured(
        f"the view of {rows}, {pending}",
        *seconds,
        "a scan of what is stored of Current",
        FLOORS.get(share),
        f"`SELECT {_PRINTS}`, in one warm session; median of {sizes.view_rounds} rounds after "
        f"{sizes.view_warm_up}, in turns; the view takes {ours}; the scan {peer}",
        points=points,
    )


def _work(lake: Lake, rows: str) -> str:
    """What Spark does for a relation: scans in the plan with which it ends, and jobs."""
    context, group = lake.spark.sparkContext, str(uuid4())
    context.setJobGroup(group, rows)
    frame = _query(lake, rows)
    frame.collect()
    jobs = len(context.statusTracker().getJobIdsForGroup(group))
    final, _, _ = str(frame._jdf.queryExecution().executedPlan()).partition("== Initial Plan ==")
    return f"scans: {final.count('BatchScan')}, jobs: {jobs}"


def _view(lake: Lake) -> str:
    return f"{lake.schema}.{NAME}"


def _stored(lake: Lake) -> str:
    internal = f"polynya.{lake.schema}_internal.{NAME}_internal"
    return f"{internal} WHERE hdr__partition = 'current'"


def _prints(lake: Lake, rows: str) -> tuple[int, int]:
    """Number and sum of hashes of the rows of a relation."""
    (row,) = _query(lake, rows).collect()
    return row[0], row[1]


def _query(lake: Lake, rows: str) -> DataFrame:
    return lake.spark.sql(f"SELECT {_PRINTS} FROM {rows}")
