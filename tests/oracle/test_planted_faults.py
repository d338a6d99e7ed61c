"""A fold with a fault planted in it must be caught by the cases or by the random histories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.oracle.arrivals import VARIATIONS
from tests.oracle.cases import covered
from tests.oracle.expect import current_rows, history_rows
from tests.oracle.fold import DELETE, TRUNCATE, Event, Folded, Version, fold
from tests.oracle.histories import Shape, captured_history, native_history, seeded
from tests.oracle.values import bag

SHAPE = Shape(columns=("name", "note"), key_count=4, truncates=6, loads=30)


def last_arrival_wins(events: list[Event]) -> Folded:
    """The classic: no sequence, the last event in arrival order wins."""
    return fold([replace(event, sequence=number) for number, event in enumerate(events)])


def tombstones_forgotten(events: list[Event]) -> Folded:
    """Deletes apply to what came before them and are then forgotten."""
    kept = [
        event
        for number, event in enumerate(events)
        if event.op != DELETE or any(other.key == event.key for other in events[:number])
    ]
    return fold(kept)


def upserts_win_ties(events: list[Event]) -> Folded:
    """An upsert beats a delete of equal sequence."""
    upserts = {(e.key, e.sequence) for e in events if e.op not in (DELETE, TRUNCATE)}
    return fold([e for e in events if e.op != DELETE or (e.key, e.sequence) not in upserts])


def truncates_only_forward(events: list[Event]) -> Folded:
    """A truncate reaches what has arrived before it, not what arrives late."""
    seen: list[Event] = []
    for event in events:
        if event.op == TRUNCATE:
            keys = {other.key for other in seen if other.op != TRUNCATE}
            seen += [replace(event, op=DELETE, key=key) for key in keys]
        else:
            seen.append(event)
    return fold(seen)


def placeholders_as_null(events: list[Event]) -> Folded:
    """Columns that were not sent become NULL."""
    return fold(
        [
            replace(e, values={**dict.fromkeys(e.unsent), **e.values}, unsent=frozenset())
            for e in events
        ]
    )


def old_keys_ignored(events: list[Event]) -> Folded:
    """A key change carries nothing over."""
    return fold([replace(event, old_key=None) for event in events])


def timestamps_order(events: list[Event]) -> Folded:
    """Source time instead of the sequence."""
    return fold([replace(e, sequence=(e.timestamp, e.sequence)) for e in events])


def times_not_raised(events: list[Event]) -> Folded:
    """Intervals that go back in time."""
    times = {(e.key, e.sequence): e.timestamp for e in events}
    folded = fold(events)

    def lowered(version: Version) -> Version:
        return replace(version, from_ts=times.get((version.key, version.sequence)))

    return replace(folded, versions={k: list(map(lowered, v)) for k, v in folded.versions.items()})


FAULTS = (
    last_arrival_wins,
    tombstones_forgotten,
    upserts_win_ties,
    truncates_only_forward,
    placeholders_as_null,
    old_keys_ignored,
    timestamps_order,
    times_not_raised,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_random_histories_catch_it(fault: object) -> None:
    caught = 0
    for seed in range(40):
        choices = seeded(seed)
        make = captured_history if seed % 2 else native_history
        events = make(choices, SHAPE, 20)
        mixed = [choices.pick(events) for _ in range(3)] + events[::-1]
        caught += dict(fault(mixed).versions) != dict(fold(mixed).versions)

    assert caught > 0


@pytest.mark.parametrize("fault", FAULTS[:4], ids=lambda fault: fault.__name__)
def test_the_cases_catch_it(fault: object) -> None:
    caught = []
    for case in covered():
        for arrive in VARIATIONS.values():
            events = [case.event(row) for batch in arrive(case.batches) for row in batch]
            rows = history_rows if case.history else current_rows
            try:
                got = bag(rows(case, fault(events)))
            except (TypeError, AttributeError):
                continue  # NULLs that the fault does not handle are no verdict
            caught += [case.id] * (got not in [bag(wanted) for wanted in case.wanted()])

    assert caught
