"""A short life of two members, and the same life with its call number n struck, for each n.

Both join; one leads, plans; they claim and work; something is asked of a unit; one is told to end,
hands over, releases, leaves and comes back; the other vanishes, and its units are taken over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from polynya.cluster.unit import JobKey
from tests.cluster.simulation.drill import Under
from tests.cluster.simulation.parts.faults import Rates
from tests.cluster.simulation.parts.stream import StreamRates
from tests.cluster.simulation.parts.tables import CommitRates
from tests.cluster.simulation.plan import MachinePlan, Plan, Strike
from tests.cluster.simulation.run import Outcome, run
from tests.cluster.simulation.sweep.call_faults import Blow, Mode

SEED = 1
UNITS = {JobKey("t", f"u{number}"): 8 for number in range(3)}
LIFE = Plan(
    kinds=frozenset({"sweep"}),
    machines=(MachinePlan(0.5, 0.0, 0.0), MachinePlan(3.0, 0.0, 0.0)),
    units=UNITS,
    epochs={},
    loads={},
    feeds=80.0,
    heals=105.0,
    store=Rates(),
    blackouts=[],
    commits=CommitRates(),
    stream=StreamRates(),
    strikes=(
        Strike(18.0, "ask", (0, "reload", None)),
        Strike(30.0, "terminate", (0, None, 12.0)),
        Strike(55.0, "crash", (1, 0, None)),
    ),
    knows={},
)


@dataclass(frozen=True, slots=True)
class FaultedRun:
    """One life. `failure` is what was wrong, None when all held."""

    number: int
    call: str
    mode: Mode
    failure: str | None


def run_once(blow: Blow, under: Under | None = None) -> Outcome:
    """The life, with this call struck."""
    return run(SEED, under, LIFE, blow.prepare)


def calls() -> list[str]:
    """Of the life in which nothing is struck, which has to be right."""
    blow = Blow()
    outcome = run_once(blow)
    assert outcome.failure is None, outcome.failure
    return blow.calls


def each(every: int = 1, first: int = 0) -> Iterator[tuple[int, Mode]]:
    """What is struck: each call in each mode, or one of `every` of these from `first` on."""
    every_one = [(number, mode) for mode in Mode for number in range(len(calls()))]
    yield from every_one[first::every]


def swept(asked: Iterable[tuple[int, Mode]], under: Under | None = None) -> Iterator[FaultedRun]:
    """What came of each."""
    for number, mode in asked:
        blow = Blow(number, mode)
        failure = run_once(blow, under).failure
        if failure is None and not blow.fell:
            failure = "the call was never made"
        yield FaultedRun(number, blow.calls[number] if blow.fell else "?", mode, failure)


def counted(faulted: Iterable[FaultedRun]) -> Counter[tuple[str, str]]:
    """How many lives, by the call and the mode."""
    return Counter((one.call, one.mode.value) for one in faulted)
