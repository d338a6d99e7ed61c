"""`python -m tests.cluster.simulation.scale`: a large cluster loses a tenth of its nodes."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.cluster.simulation.scale.fleet import CONFIGURED, Fleet, Sizes

#: Of one prefix of Amazon S3, a second ("Best practices design patterns").
MOST_WRITES, MOST_READS = 3500, 5500
MOST_RECOVERY_SECONDS = 60.0
MOST_SPREAD = 1.25
MOST_NEEDLESS = 0.5
#: Simulated seconds that a fleet is given before its balance is looked at.
SETTLES = 150.0


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, and whether it is within its limit."""

    name: str
    value: float
    most: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it is."""
        return self.most is None or self.value <= self.most

    def __str__(self) -> str:
        limit = "" if self.most is None else f" (at most {self.most:g})"
        return f"{'' if self.holds else 'TOO MUCH: '}{self.name}: {self.value:.2f}{limit}"


def measured(sizes: Sizes, tell: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    """Start the fleet, let it settle, take some nodes away, let it settle again."""
    fleet = Fleet(sizes, tell)
    owned = fleet.run(900.0, lambda: len(fleet.owner) == sizes.units)
    first = owned - CONFIGURED
    yield Figure("seconds until every unit of a new configuration has an owner", first)
    fleet.run(owned + SETTLES)
    yield Figure("load of the fullest node over the mean, settled", fleet.spread(), MOST_SPREAD)
    yield from _peaks(fleet, "while it starts")
    _forget(fleet)
    before = Counter(fleet.moves)
    calm = fleet.run(owned + SETTLES + 60)
    yield from _means(fleet, 60, "in calm")
    moved = fleet.moves - before
    yield Figure("moves in a calm minute", moved.total())
    _forget(fleet)
    lost, before = fleet.lose(), Counter(fleet.moves)
    recovered = fleet.run(calm + 600, lambda: not fleet.left)
    yield Figure("nodes lost", len(lost))
    yield Figure("seconds until all they had is owned", recovered - calm, MOST_RECOVERY_SECONDS)
    fleet.run(recovered + SETTLES)
    needless = (fleet.moves - before)["needless"] / max(1, len(lost))
    yield Figure("needless moves for each node lost", needless, MOST_NEEDLESS)
    yield Figure("load of the fullest node over the mean, after", fleet.spread(), MOST_SPREAD)
    yield from _peaks(fleet, "while it recovers")


def _peaks(fleet: Fleet, when: str) -> list[Figure]:
    store = fleet.store
    return [
        Figure(f"most writes in a second {when}", max(store.writes.values()), MOST_WRITES),
        Figure(f"most reads in a second {when}", max(store.reads.values()), MOST_READS),
    ]


def _means(fleet: Fleet, seconds: float, when: str) -> list[Figure]:
    store = fleet.store
    return [
        Figure(f"writes a second {when}", store.writes.total() / seconds, MOST_WRITES),
        Figure(f"reads a second {when}", store.reads.total() / seconds, MOST_READS),
    ]


def _forget(fleet: Fleet) -> None:
    fleet.store.writes.clear()
    fleet.store.reads.clear()
    fleet.store.by_folder.clear()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 0 when all is within its limits."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        module = "tests.cluster.simulation.scale"
        os.execv(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]])
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.simulation.scale")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--lost", type=float, default=0.10, help="share of the nodes")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    began = time.perf_counter()
    # Hardly anything refers to itself here, and to look at all objects again and again takes long.
    gc.disable()
    sizes = Sizes(asked.nodes, asked.units, asked.lost, asked.seed)
    holds = True
    for figure in measured(sizes, lambda how: print(f"# {how}", flush=True)):
        print(figure, flush=True)
        holds = holds and figure.holds
    processor = time.process_time()
    print(f"{time.perf_counter() - began:.0f} s of real time, {processor:.0f} s of processor time")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
