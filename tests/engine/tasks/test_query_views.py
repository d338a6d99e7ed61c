"""A query that no table keeps is a view of the catalog over the live views of its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polynya.engine.runner import run_once, units
from polynya.model.config.derived import DerivedTask, TransformTask
from polynya.model.config.settings import DatasetSettings
from polynya.model.errors import PolynyaError
from polynya.model.project_derived import as_derived
from tests.lab.lab import Feed, Lab, put


def transform(lab: Lab, users: Feed, *datasets: dict[str, Any]) -> DerivedTask:
    """A transform over a feed."""
    task = TransformTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "transform",
            "name": f"{lab.schema}_views",
            "from": [users.task.name],
            "schema": lab.schema,
            "datasets": datasets,
        }
    )
    made = as_derived(task, {users.task.name: users.task}, DatasetSettings(), Path())
    assert isinstance(made, DerivedTask)
    return made


def run(lab: Lab, task: DerivedTask) -> None:
    """One run of a transform; whatever fails is raised."""
    context = lab.context("never")
    for failure in run_once(context, units(context, [task])).failures.values():
        raise failure


def view(name: str, sql: str) -> dict[str, Any]:
    return {"name": name, "sql": sql, "materialize": "view"}


@pytest.mark.slow
def test_a_view_follows_its_inputs_its_query_and_its_file(lab: Lab) -> None:
    users = lab.feed("users")
    cities = view("cities", "SELECT city, count(*) AS n FROM users GROUP BY city")
    everything = view("everything", "SELECT u.* FROM users u WHERE id > 1")
    run(lab, transform(lab, users, cities))
    assert "waiting" in lab.events[-1].text()

    users.copy(put(1, 1, city="Ulm"), put(2, 2, city="Ulm"))
    run(lab, transform(lab, users, cities, everything))
    assert lab.rows(f"SELECT * FROM {lab.schema}.cities") == [("Ulm", 2)]

    users.copy(put(2, 3, city="Bonn"), put(3, 4, city="Bonn", age=7))
    assert lab.rows(f"SELECT * FROM {lab.schema}.cities") == [("Bonn", 2), ("Ulm", 1)]
    # A new column of an input, an edited query, and one that is left out.
    cities = view("cities", "SELECT upper(city) AS city FROM users WHERE id = 3")
    run(lab, transform(lab, users, cities, everything))
    assert lab.rows(f"SELECT * FROM {lab.schema}.cities") == [("BONN",)]
    assert lab.rows(f"SELECT id, age FROM {lab.schema}.everything") == [(2, None), (3, 7)]

    run(lab, transform(lab, users, cities))
    shown = {row["viewName"] for row in lab.spark.sql(f"SHOW VIEWS IN {lab.schema}").collect()}
    assert {"users", "cities"} <= shown
    assert "everything" not in shown


@pytest.mark.slow
def test_a_view_becomes_a_table_and_a_table_no_view(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, city="Ulm"))
    sql = "SELECT id, city FROM users"
    run(lab, transform(lab, users, view("people", sql)))

    run(lab, transform(lab, users, {"name": "people", "sql": sql, "keys": ["id"]}))
    users.copy(put(2, 2, city="Bonn"))
    assert lab.rows(f"SELECT id FROM {lab.schema}.people") == [(1,)]

    with pytest.raises(PolynyaError, match="its rows are still in") as refused:
        run(lab, transform(lab, users, view("people", sql)))
    assert refused.value.code == "POLYNYA-TRF-142"
    # Another view of the task drops none of the table's.
    tables = {"name": "people", "sql": sql, "keys": ["id"]}
    run(lab, transform(lab, users, tables, view("others", sql)))
    assert len(lab.rows(f"SELECT id FROM {lab.schema}.people")) == 2


@pytest.mark.slow
def test_a_query_that_does_more_than_read_is_refused(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, city="Ulm"))

    for sql, message in (
        ("SELECT reflect('java.lang.System', 'exit', 1) AS x FROM users", "reflect"),
        ("SELECT nme FROM users", "nme"),
        ("SELECT 1 AS x FROM text.`/etc/passwd`", "reads"),
    ):
        with pytest.raises(PolynyaError, match=message):
            run(lab, transform(lab, users, view("wrong", sql)))
