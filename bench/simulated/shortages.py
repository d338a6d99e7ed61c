"""Half a day on a Spot market: scenarios, and the run of a design through one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from bench.simulated.designs import ALL_SPOT, Design, Minute

MINUTES = 720
NODES = 8
PLENTY = 100


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens around the group.

    Attributes:
        name: for the report.
        room: Spot nodes that the market gives, minute by minute.
        desired: nodes that the scaling policies ask for, minute by minute.
        deploys: minutes at which a deploy resets base and percentage of every group.
        events_lost: no event of a failed launch arrives.
    """

    name: str
    room: Sequence[int]
    desired: Sequence[int] = (NODES,) * MINUTES
    deploys: frozenset[int] = frozenset()
    events_lost: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Instance-minutes that were missing, On-Demand minutes paid, healthy Spot nodes ended."""

    unmet_minutes: int
    on_demand_minutes: int
    killed_healthy_spot: int
    on_demand_at_end: int


def scenarios(seed: int) -> list[Scenario]:
    """The scenarios of the report; the seed makes those that are random."""
    partial = _room({120: 5, 360: PLENTY})
    return [
        Scenario("total shortage, 4 h", _room({120: 0, 360: PLENTY})),
        Scenario("partial shortage, 4 h", partial),
        Scenario("slow recovery", _room({120: 0} | {180 + 30 * n: n for n in range(1, 10)})),
        Scenario("flapping", _flapping(Random(seed))),
        Scenario("deploy in between", partial, deploys=frozenset({200})),
        Scenario("events lost", partial, events_lost=True),
        Scenario(
            "scaling in between",
            partial,
            desired=[_at({0: 8, 180: 3, 240: 10, 500: 4}, minute) for minute in range(MINUTES)],
        ),
    ]


def run(make: Callable[[], Design], scenario: Scenario, seed: int) -> Outcome:
    """Run a design through a scenario; it starts with all nodes in service."""
    random = Random(seed)
    design = make()
    unmet = on_demand = killed = 0
    _settle(design, scenario.desired[0])
    heard = 0
    for minute, (room, desired) in enumerate(zip(scenario.room, scenario.desired, strict=True)):
        if minute in scenario.deploys:
            design.groups[0].mix = ALL_SPOT  # the second group has no base that could be lost
        for group in design.groups:
            group.reclaim(room, random)
            killed += group.step(minute, room)
        failed = sum(len(group.failures) for group in design.groups)
        event = failed > heard and not scenario.events_lost
        design.act(Minute(minute, desired, event))
        heard = failed
        unmet += max(desired - sum(group.serving(minute) for group in design.groups), 0)
        on_demand += sum(group.alive(spot=False) for group in design.groups)
    left = sum(group.alive(spot=False) for group in design.groups)
    return Outcome(unmet, on_demand, killed, left)


def _settle(design: Design, desired: int) -> None:
    for minute in range(-10, 0):
        design.groups[0].desired = desired
        for group in design.groups:
            group.step(minute, PLENTY)


def _at(steps: dict[int, int], minute: int) -> int:
    """The value of the last step at or before a minute."""
    return steps[max(start for start in steps if start <= minute)]


def _room(steps: dict[int, int]) -> list[int]:
    return [_at({0: PLENTY} | steps, minute) for minute in range(MINUTES)]


def _flapping(random: Random) -> list[int]:
    """Room changes every 10 to 40 minutes, and is plenty for the last two hours."""
    steps, minute = {0: PLENTY}, 60
    while minute < MINUTES - 120:
        steps[minute] = random.choice([0, 2, 4, 6, PLENTY])
        minute += random.randint(10, 40)
    return _room(steps | {MINUTES - 120: PLENTY})
