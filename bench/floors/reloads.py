"""A full extract of which a part differs, and `CREATE TABLE AS SELECT` of the same file."""

from __future__ import annotations

import shutil
import time

from bench.floors.floor import Measured
from bench.floors.lake import Lake
from bench.floors.sizes import Sizes
from bench.reload import extract, peer, task_of
from polynya.engine.runner import run_once, units

#: A reload may take twice as long as its peer.
AT_LEAST = 0.5
_FOLDER = "users"


def measure(lake: Lake, sizes: Sizes) -> Measured:
    """Take in one extract after the other; the first, which fills the table, does not count."""
    ours, peers = [], []
    rows, fraction = sizes.reload_rows, sizes.apply_fraction
    for number in range(1, sizes.warm_up + sizes.rounds + 2):
        file = lake.landing / _FOLDER / f"{number}.parquet"
        extract(file, number=number, rows=rows, fraction=fraction)
        context = lake.engine()
        began = time.perf_counter()
        for failure in run_once(context, units(context, [task_of(lake.schema)])).failures.values():
            raise failure
        seconds = time.perf_counter() - began
        beside = peer(lake.spark, file, f"{lake.peer}.extracts")
        if number > sizes.warm_up + 1:
            ours.append(seconds)
            peers.append(beside)
    shutil.rmtree(lake.landing / _FOLDER)
    return Measured(
        f"reload of {rows:,} rows, {fraction:.0%} differ",
        ours,
        peers,
        "`CREATE TABLE AS SELECT`, warm",
        AT_LEAST,
        f"Parquet, 4 columns, history; {len(ours)} rounds after {sizes.warm_up} and the first "
        "extract, in turns",
    )
