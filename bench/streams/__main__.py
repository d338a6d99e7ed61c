"""Measure a stream of Kafka beside Spark: `python -m bench streams [OPTIONS]`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.measurements import circumstances
from bench.streams import steady, throughput
from bench.streams.session import Place, place_in
from polynya.observe import trace


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench streams", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="of the topic")
    parser.add_argument("--rounds", type=int, default=3, help="that count")
    parser.add_argument(
        "--latency", action="store_true", help="how old messages are when the live view shows them"
    )
    parser.add_argument(
        "--mixed",
        action="store_true",
        help="the same of four topics with some messages that are large, and some that are broken",
    )
    parser.add_argument("--minutes", type=float, help="--latency for this long, with the memory")
    parser.add_argument("--seconds", type=float, default=60.0, help="of these; default 60")
    parser.add_argument("--rate", type=int, help="messages a second; default 1000, 60 of --mixed")
    parser.add_argument("--mode", choices=("append_only", "merge"), default="append_only")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] = ()) -> None:
    """Print each round when it is known, then the table."""
    given, began = options(arguments), circumstances()
    trace.begin(os.environ.get(trace.VARIABLE))
    with tempfile.TemporaryDirectory() as folder, place_in(Path(folder)) as place:
        table = _measured(place, given)
    trace.end()
    print(f"\nBegan {began}; ended {circumstances()}\n\n{table}")


def _measured(place: Place, given: argparse.Namespace) -> str:
    if not given.latency and not given.mixed and given.minutes is None:
        rounds = throughput.measure(place, given.records, given.rounds)
        return throughput.result(rounds)
    seconds = given.seconds if given.minutes is None else 60 * given.minutes
    workload = steady.MIXED if given.mixed else steady.PLAIN
    rate = given.rate or (60 if given.mixed else 1000)
    measured = steady.measure(place, workload, rate, seconds, given.mode)
    return measured.result(memory=given.minutes is not None)


if __name__ == "__main__":
    main(sys.argv[1:])
