"""A first load by `polynya run --once`, and a `CREATE TABLE AS SELECT` of the same files.

Both are processes of their own, measured from their start to their end, in turns.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.floors.floor import Measured
from bench.floors.records import Kind, land_load
from bench.floors.same import assert_same
from bench.floors.sizes import Sizes
from bench.floors.tasks import SCHEMA, task, write_project
from polynya.lake.spark.catalog import python_catalog
from polynya.model.loader import load_project

NAME = "orders"
PEER = "peer.orders"
#: Ratio that must be reached.
FLOORS: dict[Kind, float] = {"parquet": 0.45, "json": 0.5}
_POLYNYA = ("-m", "polynya", "run", "--once", "--apply", "always", "--quiet", "--project")

#: Runs Python with arguments until it ends.
Start = Callable[[Sequence[str]], None]


def new_process(arguments: Sequence[str]) -> None:
    """Run Python with arguments; what it says is shown when it fails."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env=os.environ
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-3000:]}")


def measure(folder: Path, kind: Kind, sizes: Sizes, start: Start = new_process) -> Measured:
    """Load the same files by both, round after round; both results must be equal."""
    source = folder / "source"
    land_load(source, kind, rows=sizes.load_rows, files=sizes.load_files)
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(sizes.loads):
        project = write_project(folder / "project", task(NAME, kind))
        shutil.copytree(source, project / "landing" / NAME / "load")
        ctas = ("-m", "bench.floors.ctas", kind, str(source), str(project))
        for one, arguments in zip(seconds, ((*_POLYNYA, str(project)), ctas), strict=True):
            began = time.perf_counter()
            start(arguments)
            one.append(time.perf_counter() - began)
        catalog = python_catalog(load_project(project).target)
        rows = assert_same(catalog, f"{SCHEMA}.{NAME}", PEER)
        assert rows == sizes.load_rows
        shutil.rmtree(project)
    shutil.rmtree(source)
    return Measured(
        f"first load, {kind}",
        *seconds,
        "`CREATE TABLE AS SELECT`, cold",
        FLOORS[kind],
        f"{sizes.load_rows:,} rows of 10 columns in {sizes.load_files} files; `python "
        f"{' '.join(_POLYNYA[:-1])}` and `python -m bench.floors.ctas {kind}`, from start to end "
        f"of each process, median of {sizes.loads} in turns",
    )
