"""A condition over a batch that lacks some of its columns: they count as NULL."""

from __future__ import annotations

import pytest

from polynya.model.errors import ConfigError
from polynya.model.types import parse_type
from polynya.transform.expressions import expression_over

COLUMNS = {
    "op": "string",
    "m": "struct<a:int,b:struct<c:void>>",
    "items": "array<struct<x:int>>",
    "nothing": "void",
    "any": "map<string,int>",
}


def over(text: str) -> str:
    return expression_over(text, {name: parse_type(kind) for name, kind in COLUMNS.items()})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("op = 'D'", "`op` = 'D'"),
        ("OP = 'D'", "NULL = 'D'"),
        ("gone", "NULL"),
        ("NOT gone", "NOT NULL"),
        ("op = 'D' OR gone.why = 1", "`op` = 'D' OR NULL = 1"),
        ("m.a = 1 AND m.b.c = 2 AND m.z = 3", "`m`.`a` = 1 AND NULL = 2 AND NULL = 3"),
        ("items.x[0] = 1 OR items.y[0] = 1", "`items`.`x`[0] = 1 OR NULL = 1"),
        ("nothing IS NULL AND nothing.x IS NULL", "`nothing` IS NULL AND NULL IS NULL"),
        ("any.key = 1", "`any`.`key` = 1"),
        ("gone[0]['k'].z = 1", "NULL = 1"),
    ],
)
def test_what_is_missing_is_null(text: str, expected: str) -> None:
    assert over(text) == expected


def test_it_is_checked_like_any_other() -> None:
    with pytest.raises(ConfigError):
        over("reflect('java.lang.System', 'exit', 1)")
