"""Functions that choose between values. Values of different types are brought to a common one."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.transform.functions.base import Place, Value, function
from polynya.transform.functions.coerce import alike, boolean


def _coalesce(values: Sequence[Value], _: Place) -> Value:
    same = alike(values)
    return Value(f"coalesce({', '.join(one.sql for one in same)})", same[0].kind)


def _if_else(values: Sequence[Value], _: Place) -> Value:
    yes, no = alike(values[1:])
    return Value(f"IF({boolean(values[0]).sql}, {yes.sql}, {no.sql})", yes.kind)


def _null_if(values: Sequence[Value], _: Place) -> Value:
    (value,) = alike(values[1:])
    return Value(f"IF({boolean(values[0]).sql}, NULL, {value.sql})", value.kind)


FUNCTIONS = (
    function(
        "coalesce", "value+", _coalesce,
        "The first value that is not NULL.",
        "polynya.coalesce(NULL, 'foo', NULL, 'bar') -> \"foo\"",
        "polynya.coalesce(NULL, 1, 'x') -> \"1\"",
    ),
    function(
        "if_else", "condition yes no", _if_else,
        "The second value where the condition is true, else the third. NULL counts as false.",
        "if_else(true, 'foo', 'bar') -> \"foo\"",
        "if_else(NULL, 'foo', 'bar') -> \"bar\"",
    ),
    function(
        "null_if", "condition value", _null_if,
        "NULL where the condition is true, else the value. NULL counts as false.",
        "null_if(true, 'foo') -> null",
        "null_if(NULL, 'foo') -> \"foo\"",
    ),
)  # fmt: skip
