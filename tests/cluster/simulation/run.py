"""Run seeds: one history each, and what came of it."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.cluster.simulation.drill import Drill, Under
from tests.cluster.simulation.judge import knowing
from tests.cluster.simulation.judge.oracle import Violation
from tests.cluster.simulation.parts.world import World
from tests.cluster.simulation.plan import PROMPT, SLOW_TO_KNOW, Plan, drawn

#: When faults are healed and a node works, all that waits is done after so many seconds.
PROGRESS = 120.0
#: So much later where configurations differ: until the leader hears of it.
LEARNING = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one seed. `failure` is what was wrong, None when all held; `raised`: an error of the code.

    A planted bug that cannot even run would raise in each life: that is not what `caught` means.
    """

    seed: int
    failure: str | None
    counts: Counter[str] = field(default_factory=Counter)
    raised: bool = False

    @property
    def caught(self) -> bool:
        """Whether a rule was broken."""
        return self.failure is not None and not self.raised


def run(
    seed: int,
    under: Under | None = None,
    plan: Plan | None = None,
    prepare: Callable[[Drill], None] = lambda drill: None,
) -> Outcome:
    """The history of a seed; `prepare` may change what strikes it before it begins."""
    plan = plan or drawn(seed)
    world = World(seed)
    drill = Drill(world, plan, under or Under())
    prepare(drill)
    failure, raised = None, False
    try:
        _live(drill)
    except Violation as wrong:
        failure = str(wrong)
    except Exception as error:
        # What a member may not raise.
        raised = True
        place = traceback.extract_tb(error.__traceback__)[-1]
        failure = f"at {world.now:.3f} s: {error!r} in {place.filename}:{place.lineno}"
    outcome = Outcome(seed, failure, _counted(drill), raised)
    world.end()
    return outcome


def _live(drill: Drill) -> None:
    world, plan, oracle = drill.world, drill.plan, drill.oracle
    last = max(plan.heals, plan.feeds)
    world.run(last)
    progress = PROGRESS + (LEARNING if plan.knows else 0.0)
    deadline = last + progress
    while world.now < deadline and not (all(drill.units_done.values()) and not drill.open_wishes):
        world.run(world.now + 5)
    oracle.judge_tables()
    if plan.calm:
        oracle.judge_calm()
        oracle.counts["calm lives judged"] += 1
    if plan.kinds <= PROMPT and "crash" in plan.kinds:
        oracle.counts["recoveries judged"] += len(oracle.judge_recovery(world.now))
    if plan.knows and plan.kinds <= SLOW_TO_KNOW:
        settled = knowing.settled(plan)
        world.run(max(settled.values()) + knowing.HAND_OVER)
        oracle.counts["units judged that not all know"] += knowing.judge(oracle, plan, settled)
    late = sorted(unit.name for unit, done in drill.units_done.items() if not done)
    late += [f"what is asked of {unit}" for unit in drill.open_wishes]
    if late:
        oracle.fail(f"no progress in {progress:g} s after all faults were healed: {late}")


def _counted(drill: Drill) -> Counter[str]:
    """What happened, by name; faults are those of `Drill.counts`."""
    counts = Counter({f"fault: {name}": count for name, count in drill.counts.items()})
    counts.update(drill.oracle.counts)
    counts["schedules"] = 1
    counts["claims"] = drill.oracle.records.claims
    counts["rows"] = sum(feed.table.state.position for feed in drill.feeds.values())
    counts["takeovers"] = sum(
        len({commit.state.epoch for commit in feed.table.commits}) for feed in drill.feeds.values()
    )
    counts["commits"] = sum(len(feed.table.commits) for feed in drill.feeds.values())
    counts["requests"] = sum(drill.objects.requests.values())
    counts["simulated seconds"] = int(drill.world.now)
    return counts


def total(outcomes: Iterable[Outcome]) -> Counter[str]:
    """The counts of all."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        found.update(outcome.counts)
    return found
