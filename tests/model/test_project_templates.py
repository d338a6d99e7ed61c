"""Templates: one transform or mart for several regions, whose values never become SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot

from polynya.model.config.derived import DerivedTask
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from tests.projects import write_project

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop_{region}
schema: shop_{region}
landing: {{path: shop_{region}, format: json}}
datasets:
  - {{name: orders, path: orders/*, keys: [id], sequence_by: [seq], history: true}}
"""
TEMPLATE = """\
apiVersion: polynya/v1
kind: template
name: regional
parameters:
  shop: {type: name}
  title: {type: text}
  least: {type: decimal, default: 0}
  since: {type: date, default: "2026-01-01"}
  kept: {type: boolean, default: false}
task:
  kind: transform
  from: ["${shop}"]
  datasets:
    - name: orders_of_${shop}
      sql: |
        SELECT id, :title AS region, ':title' AS untouched
        FROM ${shop}.orders
        WHERE amount > :least AND day >= :since -- not :title
      keys: [id]
      history: ${kept}
"""
INSTANCE = """\
apiVersion: polynya/v1
kind: instance
name: sales_eu
uses: regional
with: {shop: shop_eu, title: EU}
"""


def project_of(folder: Path, *, template: str = TEMPLATE, instance: str = INSTANCE) -> Path:
    return write_project(
        folder, shop_eu=SHOP.format(region="eu"), regional=template, sales_eu=instance
    )


def task_of(project: LoadedProject, name: str = "sales_eu") -> DerivedTask:
    (task,) = (task for task in project.tasks if task.name == name)
    assert isinstance(task, DerivedTask)
    return task


def errors_of(folder: Path) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        load_project(folder)
    return [f"{error.where} {error.code} {error.message}" for error in caught.value.errors]


def test_each_instance_is_a_task_of_its_own(tmp_path: Path) -> None:
    us = (
        INSTANCE.replace("_eu", "_us").replace("EU", "US").replace("}", ", least: 2.5, kept: true}")
    )
    project_of(tmp_path)
    write_project(tmp_path, shop_us=SHOP.format(region="us"), sales_us=us)

    project = load_project(tmp_path)

    assert [task.name for task in project.tasks] == ["shop_eu", "shop_us", "sales_eu", "sales_us"]
    query = task_of(project, "sales_us").queries["orders_of_shop_us"]
    assert query.text == (
        "SELECT id, 'US' AS region, ':title' AS untouched\n"
        "FROM shop_us.orders\n"
        "WHERE amount > 2.5 AND day >= DATE '2026-01-01' -- not :title\n"
    )
    kept = {task.name: task.datasets[0].history for task in project.tasks[2:]}
    assert kept == {"sales_eu": False, "sales_us": True}
    assert project.files["sales_us"] == "tasks/sales_us.yml"
    assert project.templates == dict.fromkeys(["sales_eu", "sales_us"], "tasks/regional.yml")


def test_a_query_may_stand_in_a_file(tmp_path: Path) -> None:
    lines = TEMPLATE.splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if "sql: |" in line)
    template = "".join([*lines[:start], "      sql: sql/orders.sql\n", *lines[start + 4 :]])
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql/orders.sql").write_text("SELECT id, :title AS t FROM ${shop}.orders\n")

    project = load_project(project_of(tmp_path, template=template))

    (query,) = task_of(project).queries.values()
    assert query.text == "SELECT id, 'EU' AS t FROM shop_eu.orders\n"


def test_a_mart_has_a_template_too(tmp_path: Path) -> None:
    template = """\
apiVersion: polynya/v1
kind: template
name: regional
parameters: {shop: {type: name}, title: {type: text}, first: {type: date, default: "2026-01-01"}}
task:
  kind: data_mart
  from: ["${shop}"]
  dimensions:
    - {name: calendar, type: date, first: "${first}", last: 2026-12-31}
  facts:
    - {name: orders, table: "${shop}.orders", keys: [id], measures: {amount: amount},
       where: "region = :title"}
"""

    project = load_project(project_of(tmp_path, template=template))

    queries = task_of(project).queries
    assert "WHERE region = 'EU'" in queries["orders"].text
    assert "2026-01-01" in queries["calendar"].text


@pytest.mark.parametrize(
    "title",
    [
        "' OR '1'='1",
        "\\' OR 1=1 --",
        "x'; DROP TABLE t; --",
        "*/ x /*",
        ":shop ${shop}",
        "a\nb",
        "`",
        '"',
    ],
)
def test_no_value_becomes_sql(tmp_path: Path, title: str) -> None:
    instance = INSTANCE.replace("title: EU", f"title: {json.dumps(title)}")

    (query,) = task_of(load_project(project_of(tmp_path, instance=instance))).queries.values()

    select = sqlglot.parse_one(query.text, dialect="spark")
    written: Any = select.expressions[1].this
    assert written.is_string and written.this == title
    assert len(select.expressions) == 3
    assert [table.sql() for table in select.find_all(sqlglot.exp.Table)] == ["shop_eu.orders"]


def test_numbers_are_those_that_were_given(tmp_path: Path) -> None:
    template = TEMPLATE.replace("WHERE amount > :least", "WHERE 1 -:least = 3.25 AND 1 > 0")
    instance = INSTANCE.replace("}", ', least: "-2.25"}')

    project = load_project(project_of(tmp_path, template=template, instance=instance))

    (query,) = task_of(project).queries.values()
    condition = query.text.split("WHERE ")[1].split(" AND")[0]
    assert duckdb.sql(f"SELECT {condition}").fetchall() == [(True,)]


@pytest.mark.parametrize(
    ("given", "at", "said", "declared"),
    [
        ("{shop: shop_eu}", "5:1", "132 with: `title` has no value", "6:3"),
        ("{shop: 'a.b; DROP', title: EU}", "5:8", "132 with.shop: `shop` is of type `name`", "5:3"),
        (
            "{least: 1e-7, shop: s, title: EU}",
            "5:8",
            "132 with.least: `least` is of type `decimal`",
            "7:3",
        ),
        (
            "{since: '2026-02-30', shop: s, title: EU}",
            "5:8",
            "132 with.since: `since` is of type `date`",
            "8:3",
        ),
    ],
)
def test_a_wrong_value_names_both_places(
    tmp_path: Path, given: str, at: str, said: str, declared: str
) -> None:
    instance = INSTANCE.replace("{shop: shop_eu, title: EU}", given)

    wanted = f"tasks/sales_eu.yml:{at} POLYNYA-TRF-{said} (tasks/regional.yml:{declared})"
    assert errors_of(project_of(tmp_path, instance=instance)) == [wanted]


def test_an_unknown_parameter_is_named(tmp_path: Path) -> None:
    instance = INSTANCE.replace("title: EU", "title: EU, tite: EU")

    said = "POLYNYA-TRF-131 with.tite: the template `regional` has no parameter `tite`"
    assert errors_of(project_of(tmp_path, instance=instance)) == [f"tasks/sales_eu.yml:5:34 {said}"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("keys: [id]", "keyz: [id]", ":19:7 POLYNYA-CFG-007"),
        ('from: ["${shop}"]', "from: [nobody]", ":12:10 POLYNYA-TRF-070"),
        (":least", ":most", ":15:7 POLYNYA-TRF-131"),
        (":least", "${least}", ":15:7 POLYNYA-TRF-133"),
        ("':title' AS", "'it :title AS", ":15:7 POLYNYA-TRF-133"),
        ("':title' AS", "/* /* */ */ :title AS", ":15:7 POLYNYA-TRF-133"),
        ("history: ${kept}", "delete_mode: ${title}", ":20:7 POLYNYA-TRF-133"),
    ],
)
def test_an_error_of_the_template_names_instance_and_line(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    assert before in TEMPLATE
    template = TEMPLATE.replace(before, after, 1)
    folder = project_of(tmp_path, template=template)
    found = errors_of(folder)

    wanted = f"tasks/sales_eu.yml, template tasks/regional.yml{said}"
    assert any(error.startswith(wanted) for error in found), found


def test_a_template_that_is_missing_wrong_or_there_twice_is_said(tmp_path: Path) -> None:
    instance = INSTANCE.replace("uses: regional", "uses: regionl")
    folder = project_of(tmp_path, instance=instance)

    assert errors_of(folder) == [
        "tasks/sales_eu.yml:4:1 POLYNYA-TRF-130 uses: no template is called `regionl`"
    ]

    write_project(folder, sales_eu=INSTANCE, again=TEMPLATE)
    said = "a template called `regional` stands in tasks/again.yml"
    assert errors_of(folder) == [f"tasks/regional.yml:3:1 POLYNYA-TRF-134 name: {said}"]

    (folder / "tasks/again.yml").unlink()
    write_project(folder, regional=TEMPLATE.replace("default: 0", "default: none"))
    assert errors_of(folder)[0].startswith("tasks/regional.yml:7:26 POLYNYA-TRF-132")


def test_a_template_that_nobody_uses_is_no_task(tmp_path: Path) -> None:
    folder = project_of(tmp_path)
    (folder / "tasks/sales_eu.yml").unlink()

    assert [task.name for task in load_project(folder).tasks] == ["shop_eu"]
