"""The live Current view beside a scan of the stored rows of Current: the same columns, in turns.

With nothing pending both must have the same rows. With one percent pending the view must have those
that Current has after an apply.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace

from bench.floors.floor import Measured
from bench.floors.lake import Lake, take_in, work_of
from bench.floors.records import COLUMNS, land_changes, land_load
from bench.floors.sizes import Sizes
from bench.floors.tasks import task

NAME = "viewed"
#: How many times the time of the scan a view may take.
NOTHING_PENDING, SOME_PENDING = 2.0, 3.0
#: Reads all columns: two tables of the same rows have the same, in any order.
_PRINTS = f"count(*), sum(hash({', '.join(COLUMNS)}))"


def measure(lake: Lake, sizes: Sizes) -> Iterator[Measured]:
    """Load a table and query it, then once more with changes that are copied and not applied."""
    folder, rows = lake.landing / NAME, sizes.view_rows
    declared = task(NAME, "parquet", schema=lake.schema)
    declared["datasets"][0]["columns"] = {"ts": "timestamp"}
    land_load(folder / "load", "parquet", rows=rows, files=sizes.load_files)
    context = lake.engine()
    take_in(context, work_of(context, declared))
    yield _measured(lake, sizes, f"the view of {rows:,} rows, nothing pending", NOTHING_PENDING)
    assert _prints(lake, _view(lake)) == _prints(lake, _stored(lake))
    count = max(1, int(rows * sizes.apply_fraction))
    land_changes(folder / "changes", "parquet", rows=rows, count=count, version=1)
    copying = replace(context, apply_mode="never")
    take_in(copying, work_of(copying, declared))
    yield _measured(lake, sizes, f"the view of {rows:,} rows, {count:,} pending", SOME_PENDING)
    live = _prints(lake, _view(lake))
    take_in(context, work_of(context, declared))
    assert live == _prints(lake, _stored(lake))
    shutil.rmtree(folder)


def _measured(lake: Lake, sizes: Sizes, what: str, at_most: float) -> Measured:
    seconds: tuple[list[float], list[float]] = ([], [])
    contenders = (_view(lake), _stored(lake))
    for number in range(sizes.view_warm_up + sizes.view_rounds):
        # Each is first as often as the other.
        for side in (0, 1) if number % 2 else (1, 0):
            began = time.perf_counter()
            _prints(lake, contenders[side])
            if number >= sizes.view_warm_up:
                seconds[side].append(time.perf_counter() - began)
    return Measured(
        what,
        *seconds,
        "a scan of what is stored of Current",
        1 / at_most,
        f"`SELECT {_PRINTS}`, in one warm session; median of {sizes.view_rounds} rounds after "
        f"{sizes.view_warm_up}, in turns; the view may take {at_most:g} times as long",
    )


def _view(lake: Lake) -> str:
    return f"{lake.schema}.{NAME}"


def _stored(lake: Lake) -> str:
    internal = f"polynya.{lake.schema}_internal.{NAME}_internal"
    return f"{internal} WHERE hdr__partition = 'current'"


def _prints(lake: Lake, rows: str) -> tuple[int, int]:
    """Number and sum of hashes of the rows of a relation."""
    (row,) = lake.spark.sql(f"SELECT {_PRINTS} FROM {rows}").collect()
    return row[0], row[1]
