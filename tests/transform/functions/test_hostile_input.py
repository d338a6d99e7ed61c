"""Every function with arguments of every type, full of odd values: never an error."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from polynya.lake.copy.mapped_values import place_of
from polynya.lake.spark.api import DataFrame, PySparkException, SparkSession
from polynya.transform.expressions import expression_over
from polynya.transform.functions.core import Function
from polynya.transform.functions.table import FUNCTIONS
from polynya.transform.parsing import parse
from tests.transform.functions.hostile import LITERALS, TYPES, hostile_rows

CALLABLE = [one for one in FUNCTIONS.values() if one.build is not None]


def call_of(one: Function, chance: random.Random) -> str:
    """A call with arguments drawn by chance, also of types that make no sense."""
    most = one.fewest + 2 if one.most is None else one.most
    arguments = []
    for index in range(chance.randint(one.fewest, most)):
        column = chance.choice([*TYPES])
        open_to_all = [column, column, "NULL", f"to_array({column})", f"({column} IS NULL)"]
        fixed = one.parameter(index).startswith("'") or chance.random() < 0.2
        arguments.append(chance.choice(LITERALS if fixed else open_to_all))
    return f"{one.written}({', '.join(arguments)})"


def calls_by_type(one: Function) -> list[str]:
    """A call for each parameter and each type that is given to it, the rest as in an example."""
    usual = max((arguments_of(example.call, one) for example in one.examples), key=len)
    calls = []
    for index in range(len(usual)):
        literal = one.parameter(index).startswith("'")
        for given in LITERALS if literal else TYPES:
            arguments = [*usual[:index], given, *usual[index + 1 :]]
            calls.append(f"{one.written}({', '.join(arguments)})")
    return calls


def arguments_of(text: str, one: Function) -> list[str]:
    """The arguments of the first call of a function in a text."""
    name = one.written.rpartition(".")[2]
    calls = [call for call in parse(text, None).find_all(exp.Anonymous) if call.name == name]
    return [argument.sql(dialect=Spark()) for argument in calls[0].expressions]


def failing(rows: DataFrame, calls: dict[str, str]) -> list[str]:
    """The calls that raise; their results are all computed, in one job where all are right."""
    shown = [f"max(length(to_json(named_struct('v', {sql}))))" for sql in calls.values()]
    try:
        rows.selectExpr(*(f"{sql} AS e{index}" for index, sql in enumerate(shown))).collect()
    except PySparkException as error:
        if len(calls) == 1:
            return [f"{next(iter(calls))}: {str(error)[:300]}"]
        pairs = list(calls.items())
        middle = len(pairs) // 2
        return failing(rows, dict(pairs[:middle])) + failing(rows, dict(pairs[middle:]))
    return []


def drawn(spark: SparkSession, seed: int, each: int) -> list[str]:
    chance = random.Random(seed)
    rows = hostile_rows(spark, 40, chance)
    place = place_of(rows, row="CAST(id AS STRING)")
    calls = [call_of(one, chance) for one in CALLABLE for _ in range(each)]
    return failing(rows, {text: expression_over(text, TYPES, place=place) for text in calls})


def test_no_input_makes_a_function_fail(spark: SparkSession) -> None:
    assert drawn(spark, seed=18, each=2) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_much_input_makes_no_function_fail(spark: SparkSession, seed: int) -> None:
    for part in range(6):
        assert drawn(spark, seed=seed * 100 + part, each=3) == []


def batched(calls: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The calls in parts of this size."""
    for begin in range(0, len(calls), size):
        yield calls[begin : begin + size]


FAMILIES = sorted({one.family for one in CALLABLE})


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_takes_every_type(spark: SparkSession, family: str) -> None:
    rows = hostile_rows(spark, 40, random.Random(18))
    place = place_of(rows, row="CAST(id AS STRING)")
    calls = [text for one in CALLABLE if one.family == family for text in calls_by_type(one)]
    for batch in batched(calls, 150):
        texts = {text: expression_over(text, TYPES, place=place) for text in batch}
        assert failing(rows, texts) == []


def test_a_call_is_made_for_each_parameter_and_type() -> None:
    calls = calls_by_type(FUNCTIONS["power"])

    assert len(calls) == len(set(calls)) == 2 * len(TYPES)
    assert {f"polynya.power({name}, 3)" for name in TYPES} <= set(calls)
    assert {f"polynya.power(2, {name})" for name in TYPES} <= set(calls)


def test_a_function_that_fails_would_be_seen(spark: SparkSession) -> None:
    rows = spark.range(1)
    calls = {"right": "id", "wrong": "element_at(array(id), 0)", "also right": "id + 1"}

    assert [text.partition(":")[0] for text in failing(rows, calls)] == ["wrong"]
