"""Every example of the table of functions, computed by Spark in one query for each family."""

from __future__ import annotations

import json

import pytest

from polynya.lake.copy.place import place_of
from polynya.lake.spark.api import SparkSession
from polynya.transform.expressions import expression_over
from polynya.transform.functions.table import FUNCTIONS

FAMILIES = sorted({one.family for one in FUNCTIONS.values()})


@pytest.mark.parametrize("family", FAMILIES)
def test_the_examples_of_a_family_give_what_they_say(spark: SparkSession, family: str) -> None:
    rows = spark.range(1)
    place = place_of(rows, row="CAST(id AS STRING)")
    examples = [
        example for one in FUNCTIONS.values() if one.family == family for example in one.examples
    ]
    columns = [
        f"to_json(named_struct('v', {expression_over(example.call, {}, place=place)}), "
        f"map('ignoreNullFields', 'false')) AS e{index}"
        for index, example in enumerate(examples)
    ]

    (found,) = rows.selectExpr(*columns).collect()

    given = {one.call: json.loads(text)["v"] for one, text in zip(examples, found, strict=True)}
    assert {one.call: json.loads(one.gives) for one in examples} == given
