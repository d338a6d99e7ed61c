"""The oracle itself: order-free, contiguous in time, equal to hand-written outcomes."""

from __future__ import annotations

import itertools
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.fold import DELETE, TRUNCATE, UPSERT, Event, Folded, append_only, fold
from tests.oracle.histories import Shape, captured_history, native_history, seeded
from tests.oracle.strategies import captured_events, deliveries, native_events
from tests.oracle.values import EPOCH


def at(seconds: float) -> object:
    return EPOCH + timedelta(seconds=seconds)


def up(sequence: int, key: int = 1, *, ts: float | None = None, **more: object) -> Event:
    values = {"v": more.pop("v", f"v{sequence}"), "w": more.pop("w", None)}
    unsent = more.get("unsent", frozenset())
    values = {name: value for name, value in values.items() if name not in unsent}
    return Event((key,), sequence, UPSERT, values, at(sequence if ts is None else ts), **more)


def gone(sequence: int, key: int = 1) -> Event:
    return Event((key,), sequence, DELETE, {}, at(sequence))


def emptied(sequence: int) -> Event:
    return Event((), sequence, TRUNCATE, {}, at(sequence))


def told(folded: Folded) -> list[tuple]:
    """History in short: key, op, v, from and to in seconds after the epoch."""

    def seconds(moment: object) -> object:
        return None if moment is None else (moment - EPOCH).total_seconds()

    return [
        (v.key[0], v.op, v.values.get("v"), seconds(v.from_ts), seconds(v.to_ts))
        for v in folded.history()
    ]


def test_a_delete_leaves_a_version_with_the_values_before_it() -> None:
    folded = fold([gone(5), up(9), gone(12), up(20)])

    assert told(folded) == [
        (1, "D", None, 5, 9),
        (1, "I", "v9", 9, 12),
        (1, "D", "v9", 12, 20),
        (1, "I", "v20", 20, None),
    ]


def test_a_first_load_opens_with_l_and_changes_after_it_are_updates() -> None:
    folded = fold([up(0, is_load=True), up(3), up(0, 2, is_load=True), gone(4, 2), up(6, 2)])

    assert [row[:2] for row in told(folded)] == [(1, "L"), (1, "U"), (2, "L"), (2, "D"), (2, "I")]


def test_a_truncate_closes_what_is_lower_also_late_and_also_retroactively() -> None:
    events = [up(10), up(20), up(12, 2), up(30, 3), emptied(15), gone(11, 4)]

    assert told(fold(events)) == [
        (1, "I", "v10", 10, 15),
        (1, "D", "v10", 15, 20),
        (1, "I", "v20", 20, None),
        (2, "I", "v12", 12, 15),
        (2, "D", "v12", 15, None),
        (3, "I", "v30", 30, None),
        (4, "D", None, 11, None),
    ]


def test_timestamps_never_go_back_along_the_sequence() -> None:
    folded = fold([up(1, ts=50), up(2, ts=40), up(3, ts=60)])

    assert [row[3:] for row in told(folded)] == [(50, 50), (50, 60), (60, None)]
    assert folded.raised == 1


def test_columns_not_sent_keep_the_value_just_before_and_a_delete_resets_it() -> None:
    part = frozenset({"v"})
    folded = fold(
        [
            up(1),
            up(2, unsent=part),
            up(4, unsent=part),
            gone(5),
            up(6, unsent=part),
            up(3, v="late"),
        ]
    )

    assert [row[2] for row in told(folded)] == ["v1", "v1", "late", "late", "late", None]


def test_a_key_change_takes_what_the_old_key_last_had_through_several_changes() -> None:
    part = frozenset({"v"})
    events = [
        up(1),
        gone(2),
        up(2, 2, unsent=part, old_key=(1,)),
        gone(4, 2),
        up(4, 3, unsent=part, old_key=(2,)),
        up(3, 2, v="between"),
    ]

    assert fold(events).current()[(3,)].values["v"] == "between"
    assert fold(events[:-1]).current()[(3,)].values["v"] == "v1"


def test_a_swap_of_keys_at_one_sequence_ends() -> None:
    part = frozenset({"v"})
    events = [up(2, 1, unsent=part, old_key=(2,)), up(2, 2, unsent=part, old_key=(1,))]

    assert fold(events).current()[(1,)].values["v"] is None


def test_equal_sequences_collapse_by_delete_then_position_then_content() -> None:
    assert told(fold([up(1), gone(1)])) == [(1, "D", None, 1, None)]
    placed = [up(1, v="a", position=2), up(1, v="b", position=1)]
    assert fold(placed).current()[(1,)].values["v"] == "a" and not fold(placed).ties
    undecided = fold([up(1, v="a"), up(1, v="b"), up(1, v="a")])
    assert undecided.ties == {((1,), 1)}


def test_coalescing_merges_runs_shows_last_values_and_stops_at_deletes() -> None:
    folded = fold([up(1, v="a", w=1), up(2, v="a", w=2), gone(3), up(4, v="a", w=2)])

    runs = [(v.op, v.values.get("w"), v.from_ts) for v in folded.coalesced(["v"])]
    assert runs == [("I", 2, at(1)), ("D", 2, at(3)), ("I", 2, at(4))]
    assert len(folded.coalesced()) == 4


def test_null_keys_and_null_sequences_are_rejected_and_counted() -> None:
    events = [up(1), Event((None,), 2, UPSERT), Event((1,), None, UPSERT), emptied(9)]

    assert fold(events).rejected == 2
    assert not fold(events).current()
    assert set(fold(events).current(soft=True)) == {(1,)}


def test_append_only_keeps_every_row() -> None:
    assert len(append_only([up(1), up(1), up(2)])) == 3


def test_every_permutation_of_small_histories_folds_the_same() -> None:
    """Brute force: 720 orders of each of 12 histories."""
    for seed in range(12):
        make = native_history if seed % 2 else captured_history
        shape = Shape(columns=("note",), key_count=2, truncates=15, loads=50, first_key=0)
        events = make(seeded(seed), shape, 6)[:6]
        wanted = _outcome(fold(events))
        assert all(_outcome(fold(p)) == wanted for p in itertools.permutations(events))


@settings(max_examples=150, deadline=None)
@given(st.data(), native_events() | captured_events())
def test_any_order_split_and_redelivery_folds_the_same(data: st.DataObject, events: list) -> None:
    batches = data.draw(deliveries(events))

    again = fold([event for batch in batches for event in batch])

    assert _outcome(again) == _outcome(fold(events))


@settings(max_examples=150, deadline=None)
@given(native_events() | captured_events())
def test_intervals_never_overlap_nor_leave_a_hole(events: list) -> None:
    for run in fold(events).versions.values():
        for left, right in itertools.pairwise(run):
            assert left.from_ts <= left.to_ts == right.from_ts
        assert all(version.to_ts is None for version in run[-1:])
        assert all(left.sequence < right.sequence for left, right in itertools.pairwise(run))


def _outcome(folded: Folded) -> tuple:
    return dict(folded.versions), folded.raised
