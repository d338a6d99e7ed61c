"""What strikes a run and when: drawn from a seed, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from polynya.cluster.unit import JobKey
from tests.cluster.simulation.parts.faults import Blackout, Rates
from tests.cluster.simulation.parts.stream import StreamRates
from tests.cluster.simulation.parts.tables import CommitRates


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """When a machine starts, and how wrong its clocks are."""

    starts: float
    drift: float
    skew: float


@dataclass(frozen=True, slots=True)
class Knows:
    """When a machine has a unit in its configuration."""

    since: float = 0.0
    until: float = math.inf

    def at(self, moment: float) -> bool:
        """Whether it has it then."""
        return self.since <= moment < self.until


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault: a method of `Drill` and what it is called with."""

    at: float
    what: str
    args: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All of a run. No fault begins after `heals`; input arrives until `feeds`.

    `kinds` are those faults that this run has; none in a calm one. `epochs` are those of tables
    that somebody owned before there was a cluster. `knows` has the units that not all machines
    know all the time, with what becomes of each on every machine.
    """

    kinds: frozenset[str]
    machines: tuple[MachinePlan, ...]
    units: Mapping[JobKey, int]
    epochs: Mapping[JobKey, int]
    loads: Mapping[JobKey, float]
    feeds: float
    heals: float
    store: Rates
    blackouts: list[Blackout]
    commits: CommitRates
    stream: StreamRates
    strikes: tuple[Strike, ...]
    knows: Mapping[JobKey, tuple[Knows, ...]]

    @property
    def calm(self) -> bool:
        """Whether nothing may move once all nodes are there."""
        return self.kinds <= QUIET


#: Kinds of faults, and the share of the runs that have each.
KINDS: Mapping[str, float] = {
    "crash": 0.6,
    "pause": 0.5,
    "store": 0.6,
    "blackout": 0.25,
    "commits": 0.5,
    "stream": 0.5,
    "clocks": 0.5,
    "suspend": 0.15,
    "drain": 0.35,
    "hang": 0.25,
    "person": 0.35,
    "meddle": 0.3,
    "loads": 0.4,
    "twin": 0.08,
    "before": 0.25,
    "wishes": 0.35,
    "configuration": 0.3,
}
#: Steps that outlast all patience: only beside faults that leave the other nodes alive.
STICK_SHARE = 0.05
STICK_BESIDE = frozenset({"store", "blackout", "commits", "stream", "clocks", "loads", "before"})
CALM_SHARE = 0.06
#: These alone are no cause for a move: what the stream says is advice, and no clock is trusted.
QUIET = frozenset({"stream", "clocks"})
#: With these alone the time to recover is judged.
PROMPT = QUIET | {"crash", "loads"}
#: With these alone it is judged when a unit that some know is where it is known.
SLOW_TO_KNOW = QUIET | {"configuration", "loads"}
SINGLE_SHARE = 0.14
#: Besides: only where nothing else is wrong it can be judged how soon a unit is where it is known.
CONFIGURATION_SHARE = 0.02


def drawn(seed: int, only: frozenset[str] | None = None) -> Plan:
    """The plan of a seed; with faults of these kinds `only`, if that is said."""
    random = Random(f"plan {seed}")
    kinds = _kinds(random) if only is None else only
    nodes = random.randint(2, 4)
    begins, lasts = 15.0, 50.0 + 65.0 * random.random()
    heals = begins + lasts if kinds else begins
    units = {
        JobKey("t", f"u{number}"): random.randint(20, 60) for number in range(random.randint(2, 6))
    }
    return Plan(
        kinds=kinds,
        machines=tuple(_machine(random, kinds) for _ in range(nodes)),
        units=units,
        epochs={unit: random.randint(1, 9) for unit in units} if "before" in kinds else {},
        loads={unit: random.lognormvariate(0, 1) for unit in units} if "loads" in kinds else {},
        feeds=begins + lasts,
        heals=heals,
        store=_store(random) if "store" in kinds else Rates(),
        blackouts=_blackouts(random, nodes, begins, heals) if "blackout" in kinds else [],
        commits=_commits(random) if "commits" in kinds else CommitRates(),
        stream=_stream(random) if "stream" in kinds else StreamRates(),
        strikes=tuple(_strikes(random, kinds, nodes, begins, heals)),
        knows=_knows(random, units, nodes, begins, heals) if "configuration" in kinds else {},
    )


def _knows(
    random: Random, units: Iterable[JobKey], nodes: int, begins: float, heals: float
) -> dict[JobKey, tuple[Knows, ...]]:
    """Units that are added to the configuration, some of which are deleted, and who takes it in."""
    found = {}
    for unit in units:
        if random.random() < 0.4:
            continue
        added = random.choice((0.0, random.uniform(begins, begins + 0.6 * (heals - begins))))
        deleted = random.uniform(added, heals) if random.random() < 0.2 else math.inf
        since = [_taken_in(random, added, heals) for _ in range(nodes)]
        if math.isinf(min(since)):
            since[random.randrange(nodes)] = added
        found[unit] = tuple(Knows(one, _taken_in(random, deleted, heals)) for one in since)
    return found


def _taken_in(random: Random, changed: float, heals: float) -> float:
    """When a machine takes in a change of the configuration: soon, late or never."""
    draw = random.random()
    if math.isinf(changed) or draw < 0.3:
        return math.inf
    return changed + 15 * random.random() if draw < 0.65 else random.uniform(changed, heals)


def _kinds(random: Random) -> frozenset[str]:
    draw = random.random()
    if draw < CALM_SHARE:
        return frozenset()
    if draw < CALM_SHARE + SINGLE_SHARE:
        return frozenset({random.choice(sorted(KINDS))})
    if draw < CALM_SHARE + SINGLE_SHARE + CONFIGURATION_SHARE:
        return frozenset({"configuration"})
    kinds = frozenset(kind for kind, share in KINDS.items() if random.random() < share)
    return (kinds & STICK_BESIDE) | {"stick"} if random.random() < STICK_SHARE else kinds


def _machine(random: Random, kinds: frozenset[str]) -> MachinePlan:
    late = random.random() < 0.2 and not kinds <= QUIET
    starts = (60 if late else 8) * random.random()
    if "clocks" not in kinds:
        return MachinePlan(starts, 0.0, 0.0)
    return MachinePlan(starts, random.uniform(-0.02, 0.02), random.uniform(-3600, 3600))


def _store(random: Random) -> Rates:
    def rate(most: float) -> float:
        return most * random.random() if random.random() < 0.6 else 0.0

    return Rates(
        lost=rate(0.2),
        applied_but_error=rate(0.3),
        refused_but_applied=rate(0.3),
        refused=rate(0.2),
        late=rate(0.15),
        slow=rate(0.1),
    )


def _commits(random: Random) -> CommitRates:
    return CommitRates(0.1 * random.random(), 0.15 * random.random(), 0.15 * random.random())


def _stream(random: Random) -> StreamRates:
    return StreamRates(
        lost=0.6 * random.random(),
        doubled=0.3 * random.random(),
        late=0.4 * random.random(),
        replayed=0.3 * random.random(),
        garbage=0.2 * random.random(),
        gone=random.random() < 0.15,
    )


def _blackouts(random: Random, nodes: int, begins: float, heals: float) -> list[Blackout]:
    found = []
    for _ in range(random.randint(1, 2)):
        at = random.uniform(begins, heals)
        node = None if random.random() < 0.5 else f"n{random.randrange(nodes)}"
        found.append(Blackout(at, min(heals, at + random.uniform(5, 60)), node))
    return found


def _strikes(
    random: Random, kinds: frozenset[str], nodes: int, begins: float, heals: float
) -> list[Strike]:
    strikes: list[Strike] = []

    def strike(what: str, *args: object) -> None:
        strikes.append(Strike(random.uniform(begins, heals), what, args))

    def times(kind: str, most: int) -> range:
        return range(random.randint(1, most) if kind in kinds else 0)

    def node() -> int:
        return random.randrange(nodes)

    def perhaps(seconds: float, share: float) -> float | None:
        return seconds if random.random() < share else None

    for _ in times("crash", 4):
        back = perhaps(40 * random.random(), 0.7)
        strike("crash", node(), random.randrange(25), back)
    for _ in times("pause", 3):
        # Early, so that most of those that outlast a lease end before all is healed.
        at = random.uniform(begins, begins + 0.4 * (heals - begins))
        args = (
            node(),
            random.randrange(25),
            random.choice((8, 40, 60, 100)) * random.uniform(0.7, 1),
        )
        strikes.append(Strike(at, "stop", args))
    for _ in times("suspend", 1):
        strike("suspend", node(), random.uniform(10, 300))
    for _ in times("clocks", 3):
        strike("turn_clock", node(), random.choice((-3600, -40, 40, 3600)))
    for _ in times("twin", 1):
        strike("twin", node())
    for _ in times("hang", 2):
        strike("hang", random.randrange(6), random.uniform(20, 200))
    for _ in times("drain", 2):
        killed, back = perhaps(random.uniform(1, 120), 0.3), perhaps(random.uniform(5, 60), 0.6)
        strike("terminate", node(), killed, back)
    if "stick" in kinds:
        strikes.append(Strike(heals - 60, "stick", (random.randrange(6),)))
    for _ in times("wishes", 4):
        kind = random.choice(("reload", "recreate"))
        strike("ask", random.randrange(6), kind, perhaps(random.uniform(0, 60), 0.15))
    strikes.extend(_by_hand(random, kinds, nodes, begins, heals))
    return strikes


def _by_hand(
    random: Random, kinds: frozenset[str], nodes: int, begins: float, heals: float
) -> list[Strike]:
    found: list[Strike] = []

    def strike(what: str, *args: object) -> None:
        found.append(Strike(random.uniform(begins, heals), what, args))

    if "person" in kinds:
        for _ in range(random.randint(1, 3)):
            node, unit = random.randrange(nodes), random.randrange(6)
            draw, seconds = random.random(), random.uniform(10, 90)
            if draw < 0.25:
                strike("freeze", random.uniform(5, 50))
            elif draw < 0.5:
                strike("empty", node, seconds)
            else:
                strike("move", unit, node, seconds)
    if "meddle" in kinds:
        for _ in range(random.randint(1, 4)):
            if random.random() < 0.6:
                strike("meddle", random.choice(("", "units", "plans", "nodes")), random.random())
            else:
                data = random.choice((None, b"", b"{", b"[]", b'{"v": 1}', b"\xff\x00"))
                folder = random.choice(("plans", "plans", "wanted", "differences"))
                strike("damage", folder, random.random(), data)
    return found
