"""The long form of the random test: `python -m tests.derived --steps 100000 --seed 1`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.derived.random_steps import follow_seed, shrunk
from tests.derived.shop import Counts, Tables, WrongResultError


def main() -> int:
    """Follow random statements over random histories; print the seed of a wrong one, made small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="steps to take in all")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    given = parser.parse_args()
    counts, tables, start = Counts(), Tables(), time.monotonic()
    reasons: Counter[str] = Counter()
    seed = given.seed
    while counts.steps < given.steps:
        try:
            reason = follow_seed(seed, tables, counts)
        except WrongResultError as wrong:
            print(f"WRONG at seed {seed}\n{wrong}\nmade small:\n{shrunk(seed)}", flush=True)
            return 1
        if reason is not None:
            reasons[reason] += 1
        seed += 1
        if (seed - given.seed) % 50 == 0:
            print(f"seed {seed - 1}: {counts}, {time.monotonic() - start:.0f} s", flush=True)
    print(f"seeds {given.seed} to {seed - 1}: {counts}, 0 wrong")
    for reason, number in reasons.most_common():
        print(f"  full {number}: {reason}")
    return 0


sys.exit(main())
