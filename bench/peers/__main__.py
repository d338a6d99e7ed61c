"""Compare applies and print a table: `python -m bench.peers [OPTIONS] [CONTENDER…]`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measurements import Notes, circumstances, note_option, this_run
from bench.peers.contenders import CONTENDERS, Contender
from bench.peers.measure import Sizes, measure
from bench.peers.result import table
from bench.plots import apply_points


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    names = ", ".join(one.name for one in CONTENDERS)
    parser.add_argument("contenders", nargs="*", metavar="CONTENDER", help=f"of {names}")
    parser.add_argument("--history", action="store_true", help="those that keep older versions")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    changed = parser.add_mutually_exclusive_group()
    changed.add_argument("--percent", type=float, default=1.0, help="of them in a file; default 1")
    changed.add_argument("--changes", type=int, help="events in a file, instead of a share")
    parser.add_argument("--keys", choices=("uniform", "clustered"), default="uniform")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count")
    parser.add_argument("--warm-up", type=int, default=2, help="rounds before them")
    parser.add_argument("--memory", default="2g", help="heap of every JVM; default 2g")
    what = "number of contenders at a time, in turns, each with its JVM; default: all"
    parser.add_argument("--together", type=int, default=len(CONTENDERS), help=what)
    note_option(parser)
    return parser.parse_args(arguments)


def chosen(given: argparse.Namespace) -> list[Contender]:
    """The contenders that are named, else all with history, or all without."""
    unknown = set(given.contenders) - {one.name for one in CONTENDERS}
    if unknown:
        raise SystemExit(f"no such contender: {', '.join(sorted(unknown))}")
    if given.contenders:
        return [one for one in CONTENDERS if one.name in given.contenders]
    return [one for one in CONTENDERS if one.history == given.history]


def sizes_of(given: argparse.Namespace) -> Sizes:
    """The sizes of the options."""
    return Sizes(
        rows=given.rows,
        count=given.changes or max(1, round(given.rows * given.percent / 100)),
        keys=given.keys,
        warm_up=given.warm_up,
        rounds=given.rounds,
        memory=given.memory,
        together=given.together,
    )


def main() -> None:
    """Print each line when it is known, then the table."""
    given = options()
    sizes, began = sizes_of(given), circumstances()
    results, notes = [], Notes(given.note, this_run())
    with tempfile.TemporaryDirectory() as folder:
        for one in measure(chosen(given), sizes, Path(folder)):
            results.append(one)
            print(one.row(sizes.count, None), flush=True)
            if not one.failed and one.wrong == 0:
                name, rows = one.contender.name, sizes.rows
                notes.add(*apply_points(name, rows=rows, count=sizes.count, seconds=one.seconds))
    print(
        f"\n{sizes.count:,} events on {sizes.rows:,} rows, {sizes.keys} keys, median of "
        f"{sizes.rounds} rounds after {sizes.warm_up}, heap {sizes.memory}, {os.cpu_count()} cores"
        f"\n`python -m bench.peers {' '.join(sys.argv[1:])}`"
        f"\nBegan {began}; ended {circumstances()}\n\n{table(results, sizes.count)}"
    )


if __name__ == "__main__":
    main()
