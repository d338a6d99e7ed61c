"""The rows that a preview shows are those of the contract."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from polynya.engine.commands.preview_fold import STORED, PreviewEvent, current
from tests.oracle.fold import DELETE, TRUNCATE, _acceptable, fold
from tests.oracle.fold import Event as Told
from tests.oracle.strategies import captured_events, native_events

_LETTERS = {DELETE: "D", TRUNCATE: "T"}


def ranks(values: list[Any]) -> dict[Any, str]:
    return {value: f"{rank:04d}" for rank, value in enumerate(sorted(set(values)))}


def as_events(told: list[Told]) -> list[PreviewEvent]:
    """Events of the oracle as those of a preview; columns that are not sent are there as NULL."""
    places = ranks([one.sequence for one in told])
    positions = ranks([one.position for one in told if one.position is not None])
    names = {name for one in told for name in {*one.values, *one.unsent}}
    return [
        PreviewEvent(
            key=repr(one.key),
            place=places[one.sequence],
            operation=_LETTERS.get(one.op, "U"),
            values={name: one.values.get(name) for name in names},
            position=positions.get(one.position),
            unsent=one.unsent,
            old_key=None if one.old_key is None or not one.unsent else repr(one.old_key),
        )
        for one in told
    ]


@given(st.one_of(native_events(), captured_events()))
def test_the_rows_are_those_of_the_reference_fold(drawn: list[Told]) -> None:
    told = [one for one in drawn if _acceptable(one)]
    expected = fold(told)
    assume(not expected.ties)

    found = current(as_events(told), is_new=True)

    alive = {key: state.values for key, state in found.states.items() if state.alive}
    rows = {repr(key): version.values for key, version in expected.current().items()}
    assert alive.keys() == rows.keys()
    for key, values in rows.items():
        assert {name: alive[key].get(name) for name in values} == values


def test_what_only_the_table_knows_is_not_made_up() -> None:
    part = PreviewEvent("1", "01", "U", {"a": 1, "b": None}, unsent=frozenset({"b"}))

    assert current([part], is_new=False).states["1"].values == {"a": 1, "b": STORED}
    assert current([part], is_new=True).states["1"].values == {"a": 1, "b": None}


def test_two_events_at_one_place_are_counted_where_they_differ() -> None:
    one, other = PreviewEvent("1", "01", "U", {"a": 1}), PreviewEvent("1", "01", "U", {"a": 2})

    assert current([one, one], is_new=True).ties == 0
    assert current([one, other], is_new=True).ties == 1


def test_a_record_deletes_the_elements_that_it_lacks_and_no_newer_ones() -> None:
    def event(place: str, line: str | None) -> PreviewEvent:
        values = {"line": line}
        operation = "D" if line is None else "U"
        return PreviewEvent(
            f"1 {line}", place, operation, values, record="1", is_record=line is None
        )

    events = [event("01", "a"), event("01", "b"), event("01", None)]
    events += [event("02", "b"), event("02", None), event("03", "c"), event("03", None)]

    found = current(events, is_new=True)

    assert {key for key, state in found.states.items() if state.alive} == {"1 c"}
    assert current(events[:5], is_new=True).states["1 b"].alive
