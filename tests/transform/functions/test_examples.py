"""Every example of the table of functions, computed by Spark in one query for each family."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from polynya.lake.copy.mapped_values import place_of
from polynya.lake.spark.api import SparkSession
from polynya.transform.expressions import expression_over
from polynya.transform.functions.table import FUNCTIONS

FAMILIES = sorted({one.family for one in FUNCTIONS.values()})


def given_by(spark: SparkSession, calls: Sequence[str]) -> list[Any]:
    """What calls give, as JSON says it."""
    rows = spark.range(1)
    place = place_of(rows, row="CAST(id AS STRING)")
    columns = [
        f"to_json(named_struct('v', {expression_over(call, {}, place=place)}), "
        f"map('ignoreNullFields', 'false')) AS e{index}"
        for index, call in enumerate(calls)
    ]
    (found,) = rows.selectExpr(*columns).collect()
    return [json.loads(text)["v"] for text in found]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_examples_of_a_family_give_what_they_say(spark: SparkSession, family: str) -> None:
    examples = [
        example for one in FUNCTIONS.values() if one.family == family for example in one.examples
    ]
    calls = [one.call for one in examples]

    given = dict(zip(calls, given_by(spark, calls), strict=True))

    assert {one.call: json.loads(one.gives) for one in examples} == given


#: Their names differ, and what they do does not.
SAME = {frozenset({"wkt_spatial_contains", "wkt_spatial_intersect"})}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_examples_of_a_function_tell_it_from_its_neighbours(
    spark: SparkSession, family: str
) -> None:
    """A function that does what another one of its family should do has a wrong example."""
    several = [one for one in FUNCTIONS.values() if one.family == family and one.examples]
    swapped = {
        (one.name, other.name): [
            (
                example.call.replace(f"{one.written}(", f"{other.written}("),
                json.loads(example.gives),
            )
            for example in one.examples
        ]
        for one in several
        for other in several
        if one != other and one.parameters == other.parameters
    }
    calls = [call for pairs in swapped.values() for call, _ in pairs]
    given = dict(zip(calls, given_by(spark, calls), strict=True)) if calls else {}

    alike = {
        names
        for names, pairs in swapped.items()
        if all(given[call] == gives for call, gives in pairs)
    }

    assert {names for names in alike if frozenset(names) not in SAME} == set()
