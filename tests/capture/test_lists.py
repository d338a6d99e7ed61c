"""Lists of PostgreSQL that are not those of the database are refused; all others land."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.capture.lists import guarded
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
