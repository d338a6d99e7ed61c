"""`make simulate-cluster`: many seeded histories of a cluster; `--seed N` replays one."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the options say; 0 when everything held and something happened."""
    asked = _asked(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets and hashes in an order that every process has: a seed replays everywhere.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.cluster.simulation", *sys.argv[1:]])
    if asked.planted is not None:
        return _planted(asked)
    return _one(asked.seed) if asked.seed is not None else _many(asked)


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this one and tell what happened")
    parser.add_argument("--first", type=int, default=1, help="first of many seeds")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, help="end after so many, with fewer seeds")
    parser.add_argument("--planted", nargs="*", help="seeds until each planted bug is caught")
    return parser.parse_args(arguments)


def _one(seed: int) -> int:
    from tests.cluster.simulation.plan import drawn
    from tests.cluster.simulation.run import run

    plan = drawn(seed)
    print(
        f"seed {seed}: {len(plan.machines)} machines, {len(plan.units)} units, faults until ",
        end="",
    )
    print(f"{plan.heals:.1f} s: {', '.join(sorted(plan.kinds)) or 'none'}")
    for strike in sorted(plan.strikes, key=lambda one: one.at):
        print(f"  {strike.at:7.2f} s {strike.what} {strike.args}")
    outcome = run(seed, plan=plan)
    print(table(outcome.counts))
    print(outcome.failure or "all held")
    return 1 if outcome.failure else 0


def _many(asked: argparse.Namespace) -> int:
    from tests.cluster.simulation.many import rate, run_many, vacuous

    began, told = time.perf_counter(), time.perf_counter()
    counts: Counter[str] = Counter()
    failures: dict[int, str] = {}
    seconds = None if asked.minutes is None else 60 * asked.minutes
    for batch in run_many(asked.first, asked.count, asked.jobs, seconds):
        counts.update(batch.counts)
        for seed, failure in batch.failures.items():
            print(f"seed {seed} failed {failure}", flush=True)
            print(f"  replay: python -m tests.cluster.simulation --seed {seed}", flush=True)
        failures.update(batch.failures)
        if time.perf_counter() - told > 60:
            told = time.perf_counter()
            done, failed = counts["schedules"], len(failures)
            print(f"{done} schedules, {rate(began, counts):.0f}/s, {failed} failed", flush=True)
    print(table(counts))
    print(f"{counts['schedules']} schedules, {rate(began, counts):.1f}/s, {len(failures)} failed")
    empty = vacuous(counts)
    print(*(f"vacuous: {reason}" for reason in empty), sep="\n")
    return 1 if failures or empty else 0


def _planted(asked: argparse.Namespace) -> int:
    from tests.cluster.simulation.planted.catching import catch_all

    return catch_all(asked.planted, most=asked.count)


def table(counts: Counter[str]) -> str:
    """Counts as lines, by name."""
    width = max(map(len, counts), default=0)
    return "\n".join(f"  {name:<{width}}  {counts[name]:>12,}" for name in sorted(counts))


if __name__ == "__main__":
    sys.exit(main())
