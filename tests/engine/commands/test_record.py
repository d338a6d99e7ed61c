"""The history of one record, from its stored rows: order, validity, what was visible. No JVM."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polynya.engine.commands.record import record_entries
from polynya.lake.fold.fold import TruncateEvent
from polynya.model import headers as h
from polynya.query.record_rows import truncate_row
from tests.oracle.fold import DELETE, TRUNCATE, UPSERT, Event, fold
from tests.server.tables import at, current, event, kept, prior


def test_events_and_their_versions_are_one_entry_each() -> None:
    first, second = event("1", "I", 1, 10, id=7, v="a"), event("2", "U", 2, 20, id=7, v="b")
    entries = record_entries(
        [
            current("2", "U", 2, 25, id=7, v="b"),
            prior("1", "I", (1, 2), (15, 25), id=7, v="a"),
            kept(second, 25),
            kept(first, 15),
        ]
    )

    assert [(one.kind, one.values["v"]) for one in entries] == [("insert", "a"), ("update", "b")]
    assert [(one.copied_at, one.applied_at) for one in entries] == [
        (at(10), at(15)),
        (at(20), at(25)),
    ]
    assert [(one.valid_from, one.valid_to) for one in entries] == [(at(1), at(2)), (at(2), None)]
    assert [(one.visible_from, one.visible_to) for one in entries] == [
        (at(10), at(20)),
        (at(20), None),
    ]
    assert entries[1].changed == ("v",)
    assert all(one.exact and not one.late for one in entries)


def test_without_kept_events_the_apply_is_when_a_version_was_seen_at_the_latest() -> None:
    (entry,) = record_entries([current("1", "I", 1, 15, id=7)])

    assert (entry.copied_at, entry.visible_from, entry.exact) == (None, at(15), False)


def test_a_pending_event_closes_the_version_before_it() -> None:
    before, pending = record_entries(
        [current("1", "I", 1, 15, id=7, v="a"), event("2", "U", 4, 20, id=7, v="b")]
    )

    assert (before.valid_to, before.visible_to) == (at(4), at(20))
    assert (pending.pending, pending.valid_from, pending.valid_to) == (True, at(4), None)


def test_a_time_that_goes_back_is_raised() -> None:
    _, pending = record_entries([current("1", "I", 9, 15, id=7), event("2", "U", 4, 20, id=7)])

    assert pending.valid_from == at(9)


def test_a_late_event_is_between_and_was_never_current() -> None:
    entries = record_entries(
        [
            current("3", "U", 3, 15, id=7, v="c"),
            prior("1", "I", (1, 3), (10, 15), id=7, v="a"),
            event("2", "U", 2, 30, id=7, v="b"),
        ]
    )

    first, late, last = entries
    assert (late.late, late.pending, late.visible_from) == (True, True, None)
    assert (first.valid_to, late.valid_from, late.valid_to) == (at(2), at(2), at(3))
    assert not last.late
    assert (last.visible_from, last.visible_to) == (at(15), None)


def test_what_was_superseded_in_one_step_was_never_visible() -> None:
    first, second = record_entries(
        [
            prior("1", "I", (1, 2), (15, 15), id=7),
            current("2", "U", 2, 15, id=7),
        ]
    )

    assert (first.visible_from, first.late) == (None, False)
    assert second.visible_from == at(15)


def test_a_delete_a_truncate_and_a_correction_have_their_kinds() -> None:
    entries = record_entries(
        [
            prior("1", "I", (1, 2), (5, 6), id=7, v="a"),
            prior("2", "D", (2, 3), (6, 6), id=7),
            prior("3", "u", (3, 4), (7, 8), id=7, v="b"),
            {**prior("4", "D", (4, None), (8, 8), id=7), h.SOURCE_POSITION: "truncate"},
        ]
    )

    assert [one.kind for one in entries] == ["insert", "delete", "correction", "truncate"]
    assert [one.is_gone for one in entries] == [False, True, False, True]
    assert entries[2].changed == ()


def test_a_pending_truncate_deletes_what_is_there_and_only_that() -> None:
    cleared = {**event("5", "T", 5, 50), h.SOURCE_POSITION: None}
    gone = record_entries([current("1", "I", 1, 10, id=7)], [cleared])
    never = record_entries([event("9", "I", 9, 90, id=7)], [cleared])

    assert [one.kind for one in gone] == ["insert", "truncate"]
    assert (gone[0].valid_to, gone[1].is_gone) == (at(5), True)
    assert [one.kind for one in never] == ["insert"]


def test_a_column_that_was_not_sent_keeps_its_value_until_a_delete() -> None:
    unsent = {h.UNSENT: '["v"]'}
    entries = record_entries(
        [
            current("1", "I", 1, 10, id=7, v="a", w=1),
            {**event("2", "U", 2, 20, id=7, v=None, w=2), **unsent},
            event("3", "D", 3, 30, id=7),
            {**event("4", "U", 4, 40, id=7, v=None, w=3), **unsent},
        ]
    )

    assert [one.values.get("v") for one in entries] == ["a", "a", None, None]
    assert (entries[1].unsent, entries[1].changed) == (("v",), ("w",))


def test_events_of_one_sequence_are_one_entry() -> None:
    (entry,) = record_entries([event("1", "U", 1, 10, id=7), event("1", "U", 1, 12, id=7)])

    assert entry.deliveries == 2


def test_loads_come_before_all_events_one_after_the_other() -> None:
    entries = record_entries(
        [
            current("1", "U", 5, 30, id=7, v="c"),
            prior("", "L", (2, 5), (20, 30), id=7, v="b"),
            prior("", "L", (1, 2), (10, 20), id=7, v="a"),
        ]
    )

    assert [one.values["v"] for one in entries] == ["a", "b", "c"]
    assert [one.kind for one in entries] == ["load", "load", "update"]


def test_a_dataset_that_appends_keeps_each_row() -> None:
    entries = record_entries(
        [current("1", "I", 1, 10, id=7), current("1", "I", 1, 10, id=7)], appends=True
    )

    assert [(one.valid_to, one.visible_to) for one in entries] == [(None, None)] * len(entries)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int, int, dict[str, str], frozenset[str]]]:
    """Events of one record, and truncates: operation, time, arrival, values, columns not sent."""
    size = draw(st.integers(1, 7))
    arrivals = draw(st.permutations(range(size)))
    made = []
    for arrival in arrivals:
        operation = draw(st.sampled_from("UUUDT"))
        values = {name: draw(st.sampled_from("abc")) for name in "vw"}
        unsent = draw(st.sets(st.sampled_from("vw"), max_size=2)) if operation == "U" else ()
        made.append((operation, draw(st.integers(0, 9)), arrival, values, frozenset(unsent)))
    return made


@given(histories())
def test_pending_events_become_the_versions_of_the_reference_fold(history: list[Any]) -> None:
    folded, rows, cleared = [], [], []
    for number, (operation, time, arrival, values, unsent) in enumerate(history, 1):
        kind = {"U": UPSERT, "D": DELETE, "T": TRUNCATE}[operation]
        key = () if operation == "T" else (7,)
        sent = {"id": 7, **values} if operation == "U" else {}
        folded.append(Event(key, number, kind, sent, at(time), unsent=unsent))
        row = event(str(number), operation, time, 100 + arrival, id=7)
        if operation == "T":
            cleared.append(row)
            continue
        known = {name: None if name in unsent else value for name, value in values.items()}
        rows.append({**row, **known, h.UNSENT: json.dumps(sorted(unsent))})

    entries = record_entries(rows, cleared)

    versions = fold(folded).versions.get((7,), ()) if rows else ()
    assert [(one.is_gone, one.valid_from, one.valid_to) for one in entries] == [
        (one.deleted, one.from_ts, one.to_ts) for one in versions
    ]
    assert [shown(one) for one in entries if not one.is_gone] == [
        shown(one) for one in versions if not one.deleted
    ]
    for moment in range(len(history)):
        there = [one for one, known in zip(folded, history, strict=True) if known[2] <= moment]
        now = fold(there).current().get((7,)) if there else None
        visible = [
            one
            for one in entries
            if one.visible_from is not None
            and one.visible_from <= at(100 + moment)
            and (one.visible_to is None or at(100 + moment) < one.visible_to)
            and not one.is_gone
        ]
        assert [one.sequence for one in visible] == ([] if now is None else [str(now.sequence)])


@given(histories(), st.integers(0, 7))
def test_late_and_later_events_over_stored_versions_do_too(history: list[Any], known: int) -> None:
    """The events that had arrived by then were applied, and the others are pending."""
    whole, applied, rows, cleared = [], [], [], []
    for number, (operation, time, arrival, values, unsent) in enumerate(history, 1):
        kind = {"U": UPSERT, "D": DELETE, "T": TRUNCATE}[operation]
        key = () if operation == "T" else (7,)
        sent = {"id": 7, **values} if operation == "U" else {}
        whole.append(Event(key, number, kind, sent, at(time), unsent=unsent))
        if arrival < known:
            applied.append(whole[-1])
            if operation == "T":
                micros = round(at(time).timestamp() * 1e6)
                cleared.append(truncate_row(TruncateEvent(str(number), None, micros)))
            continue
        row = event(str(number), operation, time, 100 + arrival, id=7)
        if operation == "T":
            cleared.append(row)
            continue
        carried = {name: None if name in unsent else value for name, value in values.items()}
        rows.append({**row, **carried, h.UNSENT: json.dumps(sorted(unsent))})
    stored = fold(applied).versions.get((7,), ()) if applied else ()
    unsent_of = {number: one[4] for number, one in enumerate(history, 1)}
    for one in stored:
        last = one is stored[-1] and not one.deleted
        place, times = str(one.sequence), (one.from_ts, one.to_ts)
        base = current(place, one.op, 0, 50) if last else prior(place, one.op, (0, 0), (50, 50))
        marks = {h.FROM_TIMESTAMP: times[0], h.TO_TIMESTAMP: times[1]}
        if one.by_truncate:
            marks[h.SOURCE_POSITION] = "truncate"
        else:
            marks[h.UNSENT] = json.dumps(sorted(unsent_of[one.sequence]))
        rows.append({**base, **marks, "id": 7, **{n: one.values.get(n) for n in "vw"}})

    entries = record_entries(rows, cleared)

    versions = fold(whole).versions.get((7,), ()) if any(one.key for one in whole) else ()
    assert [(one.is_gone, one.valid_from, one.valid_to) for one in entries] == [
        (one.deleted, one.from_ts, one.to_ts) for one in versions
    ]
    assert [shown(one) for one in entries if not one.is_gone] == [
        shown(one) for one in versions if not one.deleted
    ]


def shown(one: Any) -> dict[str, Any]:
    """The values of an entry or a version."""
    return {name: one.values.get(name) for name in "vw"}
