"""How many seeds it takes until each planted bug is caught."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tests.cluster.simulation.planted.bugs import BUGS
from tests.cluster.simulation.run import run

#: Seeds at which the search begins, one after the other.
STARTS = (1, 100_001, 200_001, 300_001, 400_001)


@dataclass(frozen=True, slots=True)
class Caught:
    """After how many seeds from `first` on a bug was caught, and how; None when it was not."""

    bug: str
    first: int
    seeds: int | None
    how: str = ""


def catch(bug: str, first: int, most: int) -> Caught:
    """Search for it."""
    with BUGS[bug].planted() as under:
        for number in range(most):
            outcome = run(first + number, under)
            if outcome.caught:
                return Caught(bug, first, number + 1, outcome.failure or "")
    return Caught(bug, first, None)


def catch_all(names: Sequence[str], most: int) -> int:
    """Search for all that are named, or all; print a table. 0 when all were caught each time."""
    chosen = [name for name in BUGS if not names or name in names]
    asked = [(name, first, most) for name in chosen for first in STARTS]
    found = []
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for one in pool.map(catch, *zip(*asked, strict=True)):
            print(f"{one.bug}, from {one.first}: {one.seeds} {one.how}", flush=True)
            found.append(one)
    print("| planted bug | like | median seeds | most | caught as |")
    print("|---|---|---|---|---|")
    for name in chosen:
        ours = [one for one in found if one.bug == name]
        seeds = [one.seeds for one in ours if one.seeds is not None]
        middle = f"{statistics.median(seeds):g}" if len(seeds) == len(ours) else "not caught"
        worst = max(seeds, default=0)
        print(f"| {name} | {BUGS[name].seen_in} | {middle} | {worst} | {ours[0].how} |", flush=True)
    return 0 if all(one.seeds is not None for one in found) else 1
