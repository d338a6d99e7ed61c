"""Measure the floors and print them as one table: `python -m bench.floors [OPTIONS]`."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench import cold
from bench.floors import loads, merges, reloads, views, waiting
from bench.floors.floor import Measured, table
from bench.floors.lake import lake_in
from bench.floors.records import Kind
from bench.floors.sizes import TINY, Sizes
from polynya.observe import trace

PARTS = ("cold", "load", "step", "apply", "reload", "views", "waiting")
_KINDS: tuple[Kind, ...] = ("parquet", "json")


def measured(parts: Sequence[str], sizes: Sizes, folder: Path) -> Iterator[Measured]:
    """Each line when it is known; the processes of the loads are over before the session begins."""
    if "cold" in parts:
        yield from cold.measure(cold.lake_of_demo(), sizes.loads)
    if "load" in parts:
        for kind in _KINDS:
            yield loads.measure(folder, kind, sizes)
    if set(parts) <= {"cold", "load"}:
        return
    with lake_in(folder) as lake:
        for case in merges.cases(sizes):
            if case.name.split("_")[0] in parts:
                yield merges.measure(lake, case, sizes)
        if "reload" in parts:
            yield reloads.measure(lake, sizes)
        if "views" in parts:
            yield from views.measure(lake, sizes)
        if "waiting" in parts:
            yield waiting.measure(lake, sizes)


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.floors", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to try it")
    parser.add_argument("--memory", default="6g", help="heap of every JVM; default 6g")
    for name, what in (
        ("load-rows", "rows of a first load"),
        ("loads", "how often each is repeated"),
        ("step-rows", "rows of the table that small batches change"),
        ("rounds", "rounds that count"),
        ("warm-up", "rounds before them, of large batches"),
        ("step-warm-up", "rounds before them, of small batches"),
        ("reload-rows", "rows of the extracts that are compared"),
        ("view-rows", "rows of the table whose view is queried"),
        ("waiting-rows", "rows of the load beside which a small dataset waits"),
    ):
        parser.add_argument(f"--{name}", type=int, help=what)
    what = "rows of the tables of which one percent changes"
    parser.add_argument("--apply-rows", type=int, nargs="+", help=what)
    return parser.parse_args()


def sizes_of(given: argparse.Namespace) -> Sizes:
    """The sizes of the options, those that were not given as usual."""
    named = {name: value for name, value in vars(given).items() if value is not None}
    own = {name: value for name, value in named.items() if name in Sizes.__dataclass_fields__}
    if "apply_rows" in own:
        own["apply_rows"] = tuple(own["apply_rows"])
    return replace(TINY if given.tiny else Sizes(), **own)


def circumstances() -> str:
    """When, on how many cores, under which load, at which commit."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, load {load}, {commit}"


def main() -> None:
    """Print each line when it is known, then the table."""
    given = options()
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    os.environ.setdefault("POLYNYA_DRIVER_MEMORY", given.memory)
    began = circumstances()
    lines = []
    trace.begin(os.environ.get(trace.VARIABLE))
    with tempfile.TemporaryDirectory() as folder:
        for one in measured(given.parts or PARTS, sizes_of(given), Path(folder)):
            lines.append(one)
            print(one.row(), flush=True)
    trace.end()
    print(f"\nBegan {began}; ended {circumstances()}\n\n{table(lines)}")


if __name__ == "__main__":
    main()
