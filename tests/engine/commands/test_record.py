"""The history of one record, from its stored rows: order, validity, what was visible. No JVM."""

from __future__ import annotations

from polynya.engine.commands.record import record_entries
from polynya.model import headers as h
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
