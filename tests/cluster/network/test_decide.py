"""Which version of a network agent serves next: a table of facts and decisions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polynya.cluster.network.decide import (
    Accept,
    GoBack,
    Next,
    ObservedProcess,
    Reject,
    Stay,
    Try,
    UpdateFacts,
    UpdateLimits,
    decide,
)

LIMITS = UpdateLimits(heartbeat_seconds=120, probation_seconds=600)
OLD, NEW, NEWER = "a" * 64, "b" * 64, "c" * 64
SERVES = UpdateFacts(wanted=OLD, serving=ObservedProcess(OLD, turns=9))
PINNED = replace(SERVES, wanted=NEW)
DOUBTED = UpdateFacts(wanted=NEW, serving=ObservedProcess(NEW), former=OLD, doubted=500.0)


def tried(**known: int | float) -> UpdateFacts:
    return replace(PINNED, trial=replace(ObservedProcess(NEW), **known))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "next_"),
    [
        (SERVES, Stay()),
        (PINNED, Try()),
        (replace(PINNED, wanted=None), Try()),
        (replace(PINNED, failed={NEW: "it hung"}), Stay()),
        (replace(PINNED, wanted=NEWER, failed={NEW: "it hung"}), Try()),
        (tried(), Stay()),
        (tried(turns=2, quiet=119.0), Stay()),
        (tried(turns=3), Accept()),
        (tried(quiet=120.0), Reject("no heartbeat within 120 s")),
        (tried(ended=3), Reject("it ended with code 3 before it had served")),
        (tried(ended=0, turns=5), Reject("it ended with code 0 before it had served")),
        (
            replace(tried(turns=3), wanted=OLD),
            Reject("another version is wanted by now", failed=False),
        ),
        (DOUBTED, Stay()),
        (replace(DOUBTED, deaths=1), Stay()),
        (replace(DOUBTED, deaths=2), GoBack("it died 2 times since it serves")),
        (
            replace(DOUBTED, serving=ObservedProcess(NEW, quiet=130.0)),
            GoBack("no heartbeat for 130 s since it serves"),
        ),
        (replace(DOUBTED, doubted=0.0, deaths=5), Stay()),
    ],
)
def test_what_is_next(facts: UpdateFacts, next_: Next) -> None:
    assert decide(facts, LIMITS) == next_
