"""`python -m tests.cluster.simulation.sweep`: every call of a short life, struck in every way."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.cluster.simulation.sweep.call_faults import Mode
from tests.cluster.simulation.sweep.sweep import FaultedRun, counted, each, swept

#: Lives that one process leads before it reports.
CHUNK = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Strike all; 0 when nothing was wrong."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets and hashes in an order that every process has: each run has the same calls.
        os.environ["PYTHONHASHSEED"] = "0"
        module = "tests.cluster.simulation.sweep"
        os.execv(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]])
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.simulation.sweep", description=__doc__
    )
    parser.add_argument("--every", type=int, default=1, help="one of so many lives")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args(arguments)
    found: list[FaultedRun] = []
    runs = [*each(asked.every)]
    chunks = [runs[start : start + CHUNK] for start in range(0, len(runs), CHUNK)]
    with ProcessPoolExecutor(asked.jobs) as pool:
        for batch in pool.map(_swept, chunks):
            found.extend(batch)
    for one in found:
        if one.failure is not None:
            print(f"call {one.number} ({one.call}), {one.mode.value}: {one.failure}")
    print(table(counted(found)))
    wrong = sum(one.failure is not None for one in found)
    print(f"{len(found)} lives, {wrong} wrong")
    return 1 if wrong or not found else 0


def _swept(asked: Sequence[tuple[int, Mode]]) -> list[FaultedRun]:
    return list(swept(asked))


def table(counts: Counter[tuple[str, str]]) -> str:
    """How often each kind of call was struck in which way."""
    modes = [mode.value for mode in Mode]
    lines = [f"| call | {' | '.join(modes)} |", f"|---{'|---' * len(modes)}|"]
    for call in sorted({call for call, _ in counts}):
        numbers = [str(counts[call, mode]) for mode in modes]
        lines.append(f"| {call} | {' | '.join(numbers)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
