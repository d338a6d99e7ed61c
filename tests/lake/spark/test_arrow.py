"""Rows that Spark computes while it plans come without a job, and are those of a job."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.arrow import collected_rows
from tests.lab.lab import Lab, put

EVERY_TYPE = """
SELECT id, CAST(id AS SMALLINT) AS small, id * 1e300 AS wide, CAST(id AS DECIMAL(38, 9)) AS exact,
       IF(id = 2, NULL, repeat('ä', id)) AS text, encode(text, 'UTF-8') AS bytes,
       timestamp_micros(id) AS at, CAST(at AS TIMESTAMP_NTZ) AS local, CAST(at AS DATE) AS day,
       array(id, NULL) AS many, map('x', id) AS named,
       struct(id, struct(text) AS inner) AS nested, id > 1 AS flag, NULL AS nothing
FROM VALUES (1), (2), (3) AS given(id) WHERE id <= {most}
"""


def jobs(spark: SparkSession) -> int:
    """How many jobs Spark has started so far."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().dagScheduler().nextJobId())


@pytest.mark.parametrize("most", [0, 3])
def test_rows_are_those_of_a_job(spark: SparkSession, most: int) -> None:
    query = spark.sql(EVERY_TYPE.format(most=most))

    found, expected = collected_rows(query), query.toArrow()

    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.types == expected.schema.types


def test_a_small_batch_is_copied_without_a_job(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann", tags=["a"], home={"city": "Oulu"}))
    users.land(put(1, 2, name="Bea", tags=[], home={"city": None}), put(None, 3), b"no record")
    before = jobs(lab.spark)

    users.run()

    assert jobs(lab.spark) == before
    assert users.current("id", "name", "tags", "home.city") == [(1, "Bea", [], None)]
    assert len(users.rejected()) == 2


def test_a_small_first_load_is_copied_without_a_job(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json", path="changes/*.json")
    users.land(put(1, 1, name="Ann"), put(2, 1, name="Bea"), file="load/1.json")
    before = jobs(lab.spark)

    users.run()

    assert jobs(lab.spark) == before
    assert len(users.stored("current", "id")) == 2
