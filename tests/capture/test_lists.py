"""Lists of PostgreSQL that are not those of the database are refused; all others land."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.capture.lists import NestedLists, guarded
from polynya.capture.masks import DropMask, masked
from polynya.formats.debezium.envelope import Unsent
from polynya.model.errors import OperationError

ROW = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int32", "optional": False},
        {"field": "t", "type": "string", "optional": True},
        {"field": 'a"b', "type": "array", "items": {"type": "int32", "optional": True}},
    ],
}
SCHEMA = {"type": "struct", "fields": [{**ROW, "field": "before"}, {**ROW, "field": "after"}]}


def line(operation: str, value: Any, text: str = "x") -> bytes:
    row = {"id": 1, "t": text, 'a"b': value}
    event = {"key": {"id": 1}, "value": {"before": None, "after": row, "op": operation}}
    return json.dumps(event, separators=(",", ":")).encode()


@pytest.mark.parametrize("value", [None, [], [1, None], [None, 0], ["[L", "[x;@1"]])
@pytest.mark.parametrize("operation", ["r", "c", "u"])
def test_a_list_that_is_certain_lands_as_it_is(operation: str, value: Any) -> None:
    guard = guarded("public.t", SCHEMA, None)
    assert guard is not None

    event = line(operation, value, text='"a\\"b":[null]')

    assert guard.line(event) == event
    assert guard.lines(event + b"\n") == event + b"\n"


@pytest.mark.parametrize(
    ("operation", "value", "why"),
    [("r", "[1:2][1:2]", "several dimensions, [1:2][1:2]"),
     ("u", ["[Ljava.lang.String;@602523d", "[[Ljava.util.UUID;@0"], "several dimensions, [1:2]…")],
)  # fmt: skip
def test_a_list_of_several_dimensions_is_an_error(operation: str, value: Any, why: str) -> None:
    guard = guarded("public.t", SCHEMA, None)
    assert guard is not None

    with pytest.raises(OperationError) as caught:
        guard.lines(line(operation, value))

    assert caught.value.code == "POLYNYA-GTW-058"
    assert why in caught.value.message


def test_a_column_that_is_dropped_is_not_looked_at() -> None:
    masks = masked("public.t", SCHEMA, {'a"b': DropMask()}, key=("id",), unsent=Unsent(""))

    assert guarded("public.t", SCHEMA, masks) is masks


def test_a_table_without_lists_needs_no_guard() -> None:
    assert guarded("public.t", {"type": "struct", "fields": []}, None) is None


#: As Debezium 3.5 writes them for a column called `a"b`.
OF_NUMBERS = (
    'Unexpected value for JDBC type 4 and column a"b-element int4(10, 0) DEFAULT VALUE NULL: '
    "class=Integer[]"
)
OF_BYTES = (
    'Unexpected JDBC BINARY value for field a"b-element with schema Schema{BYTES}: '
    "class=class [[B, value=[[0], [0]]"
)


def value_of(made_at: int, value: Any, column: str = 'a"b') -> bytes:
    """The value of an event that Debezium made at a time, in nanoseconds."""
    row = {"id": 1, "ts_ns": 5, column: value, "t": '"a\\"b":[null]'}
    envelope = {"before": None, "after": row, "source": {"ts_ns": 1}, "op": "c", "ts_ns": made_at}
    return json.dumps(envelope, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("warning", [OF_NUMBERS, OF_BYTES])
def test_a_warning_marks_the_list_of_the_next_event_alone(warning: str) -> None:
    nested = NestedLists()
    before, after = value_of(1_000, [None, None]), value_of(1_200, [None, None])

    assert nested.marked(before) == before
    nested.note(1_050, warning)
    nested.note(1_060, warning)
    marked = nested.marked(value_of(1_100, [None, None]))

    assert marked == value_of(1_100, "[1:2][1:…]")
    assert nested.marked(after) == after


def test_warnings_that_come_early_wait_for_their_event() -> None:
    nested = NestedLists()
    nested.note(1_050, OF_NUMBERS)
    nested.note(1_250, OF_NUMBERS)
    events = [value_of(at, [None]) for at in (1_000, 1_100, 1_200, 1_300, 1_400)]

    marked = [nested.marked(event) != event for event in events]

    assert marked == [False, True, False, True, False]


@pytest.mark.parametrize("value", [None, [], [1, None], [None, 0], [[None]], "[null]", {"x": None}])
def test_what_is_no_list_of_null_alone_is_not_marked(value: Any) -> None:
    nested = NestedLists()
    nested.note(1_050, OF_NUMBERS)

    assert nested.marked(value_of(1_100, value)) == value_of(1_100, value)


@pytest.mark.parametrize(
    "warning",
    [
        OF_NUMBERS.replace('a"b', 'x a"b'),
        OF_NUMBERS.replace('a"b', 'a"bc'),
        OF_NUMBERS.replace("-element", ""),
        "Failed to properly convert data value for 'public.t.a\"b' of type _mood",
    ],
)
def test_warnings_of_other_columns_and_values_mark_nothing(warning: str) -> None:
    nested = NestedLists()
    nested.note(1_050, warning)

    assert nested.marked(value_of(1_100, [None])) == value_of(1_100, [None])


def test_what_is_marked_is_refused() -> None:
    guard = guarded("public.t", SCHEMA, None)
    nested = NestedLists()
    nested.note(1_050, OF_NUMBERS)
    assert guard is not None

    with pytest.raises(OperationError) as caught:
        guard.line(b'{"key":null,"value":%b}' % nested.marked(value_of(1_100, [None])))

    assert caught.value.code == "POLYNYA-GTW-058"
    assert "several dimensions, [1:1][1:…]" in caught.value.message
