"""Runs many seeds on all cores."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass

from tests.cluster.simulation.run import Outcome, run, total

#: Seeds that one process runs before it reports.
CHUNK = 20


@dataclass(frozen=True, slots=True)
class Batch:
    """What seeds `first` and following came to: their counts, and the failures by seed."""

    counts: Counter[str]
    failures: dict[int, str]


def run_many(first: int, count: int, jobs: int, seconds: float | None) -> Iterator[Batch]:
    """Run `count` seeds from `first` on, or as many as `seconds` of real time allow.

    The result of each chunk when it is there, in the order of the seeds.
    """
    ends = float("inf") if seconds is None else time.monotonic() + seconds
    starts = iter(range(first, first + count, CHUNK))
    with ProcessPoolExecutor(jobs) as pool:
        running: deque[Future[Batch]] = deque()
        while True:
            while len(running) < 2 * jobs and time.monotonic() < ends:
                start = next(starts, None)
                if start is None:
                    break
                seeds = range(start, min(start + CHUNK, first + count))
                running.append(pool.submit(_batch, seeds))
            if not running:
                return
            yield running.popleft().result()


def _batch(seeds: range) -> Batch:
    outcomes = [run(seed) for seed in seeds]
    failures = {one.seed: one.failure for one in outcomes if one.failure is not None}
    return Batch(total(outcomes), failures)


def first_caught(runs: Callable[[int], Outcome], most: int, first: int = 1) -> int | None:
    """How many seeds it takes until a rule is broken; None when the first `most` all hold."""
    for number in range(most):
        if runs(first + number).caught:
            return number + 1
    return None


def vacuous(counts: Counter[str]) -> list[str]:
    """Why a run proves nothing: what hardly happened in it."""
    faults = sum(count for name, count in counts.items() if name.startswith("fault: "))
    schedules = counts["schedules"]
    found = []
    if faults < schedules:
        found.append(f"{faults} faults in {schedules} schedules")
    if counts["takeovers"] < schedules:
        found.append(f"{counts['takeovers']} takeovers in {schedules} schedules")
    if counts["fenced"] * 20 < schedules:
        found.append(f"{counts['fenced']} fenced commits in {schedules} schedules")
    if counts["rows"] < 20 * schedules:
        found.append(f"{counts['rows']} rows in {schedules} schedules")
    return found


def rate(began: float, counts: Counter[str]) -> float:
    """Schedules per second of real time."""
    return counts["schedules"] / max(1e-9, time.perf_counter() - began)
