"""Calls of Polynya's functions in expressions: which are taken, what they mean, how they nest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from polynya.model.errors import ConfigError
from polynya.model.types import DOUBLE, DataType, parse_type
from polynya.transform.expressions import (
    choice_of,
    expression_columns,
    expression_over,
    validate_expression,
)
from polynya.transform.functions.core import ALLOWED_FUNCTIONS, ExpressionContext
from polynya.transform.functions.table import FUNCTIONS

COLUMNS = {"a": "int", "t": "string", "items": "array<int>", "s": "struct<x:int>"}


def over(text: str, *, asked: list[str] | None = None) -> str:
    def kinds(fragments: Sequence[str]) -> list[DataType]:
        if asked is not None:
            asked.extend(fragments)
        return [DOUBLE for _ in fragments]

    place = ExpressionContext(kinds, lambda _: True, "'row'")
    columns = {name: parse_type(kind) for name, kind in COLUMNS.items()}
    return expression_over(text, columns, place=place)


def code_of(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        validate_expression(text)
    assert caught.value.fix is not None
    return caught.value.code.removeprefix("POLYNYA-")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("between(a, 1, 2)", "BETWEEN(`a`, 1, 2)"),
        ("a between 1 and 2", "`a` BETWEEN 1 AND 2"),
        ("a between (1) and (2)", "`a` BETWEEN (1) AND (2)"),
        ("x or between(a, 1, 2)", "`x` OR BETWEEN(`a`, 1, 2)"),
        ("and(a, or(b, c))", "AND(`a`, OR(`b`, `c`))"),
        ("a and (b or c)", "`a` AND (`b` OR `c`)"),
        ("not(a)", "NOT (`a`)"),
        ("polynya.not(a)", "`polynya`.not(`a`)"),
        ("Polynya.Substring(a, 0)", "`Polynya`.Substring(`a`, 0)"),
        ("polynya.x = 1", "`polynya`.`x` = 1"),
    ],
)
def test_a_call_comes_out_of_the_check_as_itself(text: str, expected: str) -> None:
    assert validate_expression(text) == expected
    assert validate_expression(expected) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("to_uper(a)", "EXP-004"),
        ("polynya.left(a, 1)", "EXP-004"),
        ("other.trim(a)", "EXP-004"),
        ("polynya.polynya.trim(a)", "EXP-004"),
        ("polynya.substring(a)", "FUN-001"),
        ("to_upper(a, b)", "FUN-001"),
        ("and()", "FUN-001"),
        ("exists(a, x -> x > 1)", "FUN-001"),
        ("split(a, b)", "FUN-002"),
        ("regex(a, lower('x'))", "FUN-002"),
        ("is_duplicate(a, 5)", "FUN-003"),
        ("Top_Private_Domain(a)", "FUN-003"),
    ],
)
def test_a_wrong_call_says_what_to_write(text: str, code: str) -> None:
    if code == "EXP-004":
        with pytest.raises(ConfigError) as caught:
            validate_expression(text)
        assert caught.value.code == "POLYNYA-EXP-004"
    else:
        assert code_of(text) == code


def test_a_name_that_is_nearly_right_is_proposed() -> None:
    with pytest.raises(ConfigError) as caught:
        validate_expression("to_uper(a)")

    assert caught.value.fix == "did you mean `to_upper`?"


def test_what_sparks_functions_mean_stays() -> None:
    """A configuration that was valid before has the same SQL, whatever Polynya calls alike."""
    for name in ALLOWED_FUNCTIONS:
        assert over(f"{name}(a, 1)") == f"{name.upper()}(`a`, 1)"


def test_names_of_spark_that_were_refused_before_are_polynyas() -> None:
    assert "split" not in ALLOWED_FUNCTIONS
    assert over("split(t, ',')").startswith("(filter(split(`t`, '\\\\,')")


def test_calls_nest_in_each_other_and_in_sparks() -> None:
    sql = over("upper(polynya.trim(concat(t, to_string(add(a, 1))))) = 'X'")

    assert sql.startswith("UPPER((btrim(")
    assert "try_add(" in sql
    assert "polynya" not in sql.lower()


def test_types_are_asked_for_only_where_they_are_not_known() -> None:
    asked: list[str] = []

    over("add(a, 1) > 0 and exists(items) and add(a + 1, polynya.abs(length(t))) > 1", asked=asked)

    assert asked == ["LENGTH(`t`)", "`a` + 1"]


def test_the_text_does_not_grow_with_each_level() -> None:
    text = "t"
    for _ in range(12):
        text = f"polynya.substring({text}, 1, -2)"

    assert len(over(text)) < 60_000


def test_columns_that_are_missing_are_null() -> None:
    assert over("exists(gone)") == "((NULL IS NOT NULL))"
    assert over("to_upper(gone.too)") == "(upper(CAST(NULL AS string)))"


def test_the_columns_of_a_call_are_known() -> None:
    assert expression_columns("polynya.substring(a.b, 1) = to_upper(c)") == {"a", "c"}


def test_a_call_is_never_a_choice_that_arrow_makes() -> None:
    assert choice_of("equal_to(op, 'D')") is None


def test_every_name_of_the_reference_is_in_the_table_and_has_examples() -> None:
    assert len(FUNCTIONS) == 108
    for one in FUNCTIONS.values():
        assert one.about, one.name
        assert bool(one.examples) == (one.build is not None), one.name
        for example in one.examples:
            assert f"{one.written}(" in example.call, example
            validate_expression(example.call)
