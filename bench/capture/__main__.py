"""Measure captures of a real PostgreSQL: `python -m bench capture [PART …] [OPTIONS]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from bench.capture import changes, latency, load, memory
from bench.capture.figures import Figure, table
from bench.capture.place import STORAGE, GaveUpError, source_in
from bench.measurements import circumstances
from examples.servers.postgresql import PostgresServer, postgres_server

PARTS: Final = ("load", "changes", "latency", "sustained", "memory")
#: Seconds more for the part that warms up.
_WARM: Final = 60.0
_Measure: TypeAlias = Callable[[PostgresServer, Path], Iterator[Figure]]


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench capture", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--load-rows", type=int, default=500_000, help="default 500,000")
    parser.add_argument("--changes", type=int, default=150_000, help="default 150,000")
    parser.add_argument("--rounds", type=int, default=3, help="of load and changes; default 3")
    parser.add_argument("--rate", type=int, default=2000, help="changes a second; default 2000")
    parser.add_argument("--sustained", type=int, default=5000, help="likewise; default 5000")
    parser.add_argument("--seconds", type=float, default=45.0, help="of both rates; default 45")
    parser.add_argument("--rows", type=int, default=500_000, help="of the one transaction; 500,000")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds of each part of Polynya; default 120"
    )
    given = parser.parse_args(arguments)
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    return given


def measures(given: argparse.Namespace) -> Mapping[str, _Measure]:
    """What each part does, over a database of its own."""
    limit = given.limit
    storage = ("tasks/live.yml", STORAGE)
    return {
        "load": lambda server, folder: load.measure(
            (source_in(server, folder, f"load{one}") for one in range(given.rounds)),
            given.load_rows,
            limit,
        ),
        "changes": lambda server, folder: changes.measure(
            source_in(server, folder, "changes"), given.changes, given.rounds, limit
        ),
        "latency": lambda server, folder: latency.measure(
            source_in(server, folder, "latency", storage), given.rate, given.seconds, limit + _WARM
        ),
        "sustained": lambda server, folder: latency.keep_up(
            source_in(server, folder, "sustained", storage),
            given.sustained,
            given.seconds,
            limit + _WARM,
        ),
        "memory": lambda server, folder: memory.measure(
            source_in(server, folder, "memory"), given.rows, limit
        ),
    }


def main(arguments: Sequence[str] = ()) -> None:
    """Print each figure when it is known, then the table. A part that fails is a line of it."""
    given, began = options(arguments), circumstances()
    figures: list[Figure] = []
    known = measures(given)
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        for part in given.parts or PARTS:
            since = time.monotonic()
            try:
                for figure in known[part](server, Path(folder)):
                    figures.append(figure)
                    print(f"{figure.what}: {figure.measured}", flush=True)
            except GaveUpError as error:
                figures.append(Figure(part, f"not measured: {' '.join(str(error).split())[:300]}"))
                print(figures[-1].measured, flush=True)
            print(f"  {part}: {time.monotonic() - since:.0f} s", flush=True)
    command = " ".join(["python -m bench capture", *arguments])
    print(f"\nBegan {began}; ended {circumstances()}: `{command}`\n\n{table(figures)}")


if __name__ == "__main__":
    main(sys.argv[1:])
