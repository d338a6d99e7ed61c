"""Measure the floors and print them as one table: `python -m bench.floors [OPTIONS]`."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench import cold, limits, reads
from bench.floors import beside, loads, merges, reloads, small, views, waiting
from bench.floors.floor import Measured, table
from bench.floors.lake import Lake, lake_in
from bench.floors.records import Kind
from bench.floors.sizes import TINY, Sizes
from bench.measurements import Notes, circumstances, note_option, this_run
from polynya.observe import trace

PARTS = ("cold", "load", "reads", "bytes", "step", "apply", "reload", "views", "waiting")
#: These take minutes each, and the peers are fetched: they run when they are named.
NAMED = ("limits", "beside")
#: They need no session of this process.
_APART = {"cold", "load", "reads", "bytes", "beside"}
_LISTED = f"{', '.join(PARTS)}; when they are named {' and '.join(NAMED)}"
_KINDS: tuple[Kind, ...] = ("parquet", "json")


def measured(parts: Sequence[str], sizes: Sizes, folder: Path) -> Iterator[Measured]:
    """Each line when it is known; processes of their own are over before the session begins."""
    yield from _apart(parts, sizes, folder)
    if not set(parts) <= _APART:
        with lake_in(folder) as lake:
            yield from _in_session(parts, sizes, lake)


def _apart(parts: Sequence[str], sizes: Sizes, folder: Path) -> Iterator[Measured]:
    if "cold" in parts:
        yield from cold.measure(cold.lake_of_demo(), sizes.loads)
    if "load" in parts:
        for kind in _KINDS:
            yield loads.measure(folder, kind, sizes)
    if "reads" in parts:
        yield from reads.measure(folder / "reads", sizes.read_rows)
    if "bytes" in parts:
        yield from small.measure(folder)
    if "beside" in parts:
        for case in beside.cases(sizes):
            yield from beside.measure(folder / "beside", case, sizes)


def _in_session(parts: Sequence[str], sizes: Sizes, lake: Lake) -> Iterator[Measured]:
    for case in merges.cases(sizes):
        if case.name.split("_")[0] in parts:
            yield merges.measure(lake, case, sizes)
    if "reload" in parts:
        yield reloads.measure(lake, sizes)
    if "views" in parts:
        yield from views.measure(lake, sizes)
    if "waiting" in parts:
        yield waiting.measure(lake, sizes)
    if "limits" in parts:
        yield from limits.floors(lake, sizes)


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.floors", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {_LISTED}")
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
        ("read-rows", "rows of the table that is read without Spark"),
        ("view-rows", "rows of the table whose view is queried"),
        ("waiting-rows", "rows of the load beside which a small dataset waits"),
    ):
        parser.add_argument(f"--{name}", type=int, help=what)
    what = "rows of the tables of which one percent changes"
    parser.add_argument("--apply-rows", type=int, nargs="+", help=what)
    parser.add_argument(
        "--view-shares", type=float, nargs="+", help="shares of pending records, too"
    )
    parser.add_argument("--beside-memory", help="heap of each peer; default 2g")
    note_option(parser)
    return parser.parse_args()


def sizes_of(given: argparse.Namespace) -> Sizes:
    """The sizes of the options, those that were not given as usual."""
    named = {name: value for name, value in vars(given).items() if value is not None}
    own = {name: value for name, value in named.items() if name in Sizes.__dataclass_fields__}
    for name in own.keys() & {"apply_rows", "view_shares"}:
        own[name] = tuple(own[name])
    return replace(TINY if given.tiny else Sizes(), **own)


def main() -> None:
    """Print each line when it is known, then the table."""
    given = options()
    unknown = set(given.parts) - {*PARTS, *NAMED}
    if unknown:
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are: {_LISTED}")
    os.environ.setdefault("POLYNYA_DRIVER_MEMORY", given.memory)
    began = circumstances()
    lines, notes = [], Notes(given.note, this_run())
    trace.begin(os.environ.get(trace.VARIABLE))
    with tempfile.TemporaryDirectory() as folder:
        for one in measured(given.parts or PARTS, sizes_of(given), Path(folder)):
            lines.append(one)
            print(one.row(), flush=True)
            notes.add(*one.points)
    trace.end()
    print(f"\nBegan {began}; ended {circumstances()}\n\n{table(lines)}")


if __name__ == "__main__":
    main()
