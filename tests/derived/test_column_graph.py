"""The columns of a project as a graph: tables, rules, transforms, mirrors; as text and events."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from polynya.cli.lineage import lineage_lines
from polynya.derived.column_graph import (
    ColumnFacts,
    ColumnGraph,
    GraphColumn,
    GraphDataset,
    mirrored_dataset,
    storage_datasets,
)
from polynya.derived.drawing import drawn_svg
from polynya.derived.lineage import LineageKind, origin_of
from polynya.derived.openlineage import job_events
from polynya.engine.commands.lineage import project_graph
from polynya.model.config.task import resolved
from polynya.model.loader import load_project
from polynya.model.types import BIGINT, STRING
from tests.projects import write_project

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: in, format: json}
datasets:
  - name: orders
    path: orders/*
    keys: [id]
    sequence_by: [seq]
    except_columns: [seq]
    where: "status <> 'test'"
    columns: {id: int, user_id: int, amount: int}
  - name: users
    path: users/*
    keys: [id]
    sequence_by: [seq]
    columns:
      - {name: id, expression: user.id}
      - {name: mail, expression: "lower(contact)"}
      - {name: grade, expression: "CASE WHEN points > 10 THEN level END"}
  - name: lines
    path: orders/*
    mode: append_only
    columns:
      - {name: id, expression: id}
      - {name: sku, expression: "lines[].sku"}
rules:
  - {when: {dataset: users, column: mail}, mask: redact}
"""
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop]
datasets:
  - name: spending
    keys: [user_id]
    sql: |
      SELECT o.user_id, u.grade, sum(o.amount) AS total
      FROM orders o JOIN users u ON u.id = o.user_id GROUP BY o.user_id, u.grade
  - name: lost
    keys: [id]
    sql: SELECT nothing AS id FROM orders
"""
TOP = """\
apiVersion: polynya/v1
kind: transform
name: top
from: [sales]
datasets:
  - name: best
    keys: [grade]
    flow:
      - {filter: {input: spending, condition: "total > 10"}}
      - {select: [grade]}
"""


@pytest.fixture
def graph(tmp_path: Path) -> ColumnGraph:
    """The graph of a project that has not run."""
    write_project(tmp_path, shop=SHOP, sales=SALES, top=TOP)
    return project_graph(load_project(tmp_path), None)


def inputs(graph: ColumnGraph, name: str, column: str | None) -> dict[str, str]:
    """The inputs of a column, or of the rows, with their kinds."""
    dataset = graph.datasets[name]
    found = dataset.find(column) if column is not None else None
    origins = dataset.rows if found is None else found.origins
    return {f"{one}.{two}": "+".join(sorted(k)) for (one, two), k in origins.inputs.items()}


def test_columns_of_a_table_come_from_its_source_through_its_mapping(graph: ColumnGraph) -> None:
    assert inputs(graph, "shop.orders", "amount") == {"in/orders/*.amount": "IDENTITY"}
    assert inputs(graph, "shop.users", "id") == {"in/users/*.user": "TRANSFORMATION"}
    assert inputs(graph, "shop.users", "grade") == {
        "in/users/*.level": "TRANSFORMATION",
        "in/users/*.points": "CONDITIONAL",
    }
    assert inputs(graph, "shop.lines", "sku") == {"in/orders/*.lines": "TRANSFORMATION"}


def test_conditions_keys_and_order_decide_the_rows_of_a_table(graph: ColumnGraph) -> None:
    assert inputs(graph, "shop.orders", None) == {
        "in/orders/*.status": "FILTER",
        "in/orders/*.id": "GROUP_BY",
        "in/orders/*.seq": "SORT",
    }
    assert inputs(graph, "shop.lines", None) == {"in/orders/*.lines": "JOIN"}


def test_a_mask_is_named_with_its_place(graph: ColumnGraph) -> None:
    mail = graph.datasets["shop.users"].find("mail")

    assert mail is not None
    assert mail.masked_by == "tasks/shop.yml:29:5"


def test_a_table_that_exists_has_the_columns_that_it_stores(tmp_path: Path) -> None:
    write_project(tmp_path, shop=SHOP)
    task = load_project(tmp_path).tasks[0]
    facts = ColumnFacts(
        resolved(task, task.datasets[0]),
        {"id": "int", "note": "string", "gone": "int", "hdr__deleted": "boolean"},
        {"id": BIGINT, "note": STRING},
    )

    source, table = storage_datasets(facts, "in/orders/*")

    assert [one.name for one in table.columns] == ["id", "note", "gone", "hdr__deleted"]
    assert table.known == "stored"
    assert [one.name for one in source.columns if one.type] == ["id", "note"]
    gone, deleted = table.columns[2:]
    assert gone.origins.unknown == ("no column of the source gives it now",)
    assert not deleted.origins.inputs
    assert not deleted.origins.unknown


def test_a_key_that_a_rule_renames_is_unknown_before_the_first_record(tmp_path: Path) -> None:
    shop = (
        SHOP.partition("rules:")[0]
        .replace("keys: [id]", "keys: [c_id]", 1)
        .replace("columns: {id: int, user_id: int, amount: int}", "columns: {amount: int}")
    )
    rules = "rules: [{prefix: c_}, {when: {column: nothing}, mask: redact}]\n"
    write_project(tmp_path, shop=shop.partition("  - name: users")[0] + rules)

    graph = project_graph(load_project(tmp_path), None)

    key = graph.datasets["shop.orders"].find("c_id")
    assert key is not None
    assert key.origins.unknown
    assert graph.datasets["shop.orders"].rows.unknown
    assert inputs(graph, "shop.orders", "c_amount") == {"in/orders/*.amount": "IDENTITY"}
    assert graph.datasets["in/orders/*"].find("nothing") is None


def test_a_transform_reads_sql_and_flows_through_other_transforms(graph: ColumnGraph) -> None:
    assert inputs(graph, "sales.spending", "total") == {"shop.orders.amount": "AGGREGATION"}
    assert inputs(graph, "top.best", "grade") == {"sales.spending.grade": "IDENTITY"}
    assert inputs(graph, "top.best", None) == {"sales.spending.total": "FILTER"}


def test_a_query_over_columns_that_are_not_known_yet_says_so(graph: ColumnGraph) -> None:
    lost = graph.datasets["sales.lost"]

    assert lost.rows.unknown == ("the columns of `shop.orders` are not known yet",)
    assert lost.known == "not yet"
    assert lost.reads == ("shop.orders",)


def test_a_query_of_many_conditions_is_told_or_unknown(tmp_path: Path) -> None:
    condition = " AND ".join(["amount > 1"] * 700)
    sales = f"{SALES.partition('  - name: lost')[0]}  - name: deep\n    keys: [id]\n"
    sales += f"    sql: SELECT id FROM orders WHERE {condition}\n"
    write_project(tmp_path, shop=SHOP, sales=sales)

    deep = project_graph(load_project(tmp_path), None).datasets["sales.deep"]

    assert deep.rows.unknown or "shop.orders.amount" in {
        f"{one}.{two}" for one, two in deep.rows.inputs
    }


def test_a_table_with_a_wrong_expression_is_unknown_and_stops_no_other(tmp_path: Path) -> None:
    wrong = SHOP.replace("lower(contact)", "lower(contact").replace("status <>", "status <> <>")
    write_project(tmp_path, shop=wrong)

    graph = project_graph(load_project(tmp_path), None)

    assert graph.datasets["shop.users"].rows.unknown
    assert graph.datasets["shop.orders"].rows.unknown
    assert inputs(graph, "shop.lines", "sku")


def test_upstream_has_what_makes_a_column_and_what_decides_its_rows(graph: ColumnGraph) -> None:
    found = graph.upstream([("top.best", "grade")])

    columns = {f"{d.name}.{c.name}" for d in found.datasets.values() for c in d.columns}
    assert columns == {
        "top.best.grade", "sales.spending.grade", "sales.spending.total",
        "shop.orders.amount", "shop.orders.user_id",
        "shop.users.id", "shop.users.grade",
        "in/orders/*.amount", "in/orders/*.user_id", "in/orders/*.id", "in/orders/*.seq",
        "in/orders/*.status", "in/users/*.user", "in/users/*.level", "in/users/*.points",
        "in/users/*.seq",
    }  # fmt: skip


def test_downstream_of_what_decides_rows_are_all_columns(graph: ColumnGraph) -> None:
    of_amount = graph.downstream([("in/orders/*", "amount")])
    of_status = graph.downstream([("in/orders/*", "status")])

    assert [c.name for c in of_amount.datasets["sales.spending"].columns] == ["total"]
    assert [c.name for c in of_status.datasets["sales.spending"].columns] == [
        "user_id", "grade", "total",
    ]  # fmt: skip


def test_text_is_a_tree_of_what_makes_a_column(graph: ColumnGraph) -> None:
    start = ("sales.spending", "total")

    lines = list(lineage_lines(graph.upstream([start]), [start], impact=False))

    assert lines[:3] == [
        "sales.spending.total  (not made yet)",
        "└── shop.orders.amount  (not made yet)  aggregation",
        "    └── in/orders/*.amount  identity",
    ]
    assert "├── in/orders/*.status  filter" in lines


def test_text_of_the_impact_is_a_tree_of_what_uses_a_column(graph: ColumnGraph) -> None:
    start = ("shop.orders", "amount")

    lines = list(lineage_lines(graph.downstream([start]), [start], impact=True))

    assert lines == [
        "shop.orders.amount  (not made yet)",
        "└── sales.spending.total  (not made yet)  aggregation",
        "    └── rows of top.best  filter",
    ]


HOSTILE = "a\"'<b>&\n\x1b[31m`.x"


def hostile() -> ColumnGraph:
    """A graph whose names try to be more than names."""
    source = GraphDataset(HOSTILE, "source", "t", (GraphColumn(HOSTILE, None),))
    column = GraphColumn("c", "int", origin_of(HOSTILE, HOSTILE), masked_by=HOSTILE)
    table = GraphDataset("s.t", "table", "t", (column,), reads=(HOSTILE,))
    mirror = mirrored_dataset("m", HOSTILE, table)
    return ColumnGraph({one.name: one for one in (source, table, mirror)})


def test_names_from_outside_are_only_text_in_every_form() -> None:
    graph = hostile()

    lines = list(lineage_lines(graph, [("s.t", "c")], impact=False))
    svg = drawn_svg(graph.drawn(), HOSTILE)
    events = list(job_events(graph, "n", datetime(2026, 1, 1, tzinfo=UTC)))

    assert all(line.isprintable() for line in lines)
    assert len(lines) == 2
    shapes = {one.tag.rpartition("}")[2] for one in ET.fromstring(svg).iter()}
    assert shapes <= {"svg", "title", "rect", "path", "text"}
    assert "\x1b" not in svg
    assert json.loads(json.dumps(graph.facts()))[0]["name"] == HOSTILE
    assert "\n" not in json.dumps(events[0])


_FACET = {
    "type": "object",
    "required": ["_producer", "_schemaURL", "fields"],
    "properties": {"_producer": {"type": "string", "format": "uri"}},
}
_FIELDS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["namespace", "name", "field", "transformations"],
        "additionalProperties": False,
        "properties": {
            **{name: {"type": "string"} for name in ("namespace", "name", "field")},
            "transformations": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["type", "subtype"],
                    "additionalProperties": False,
                    "properties": {
                        "type": {"enum": ["DIRECT", "INDIRECT"]},
                        "subtype": {"enum": [kind.value for kind in LineageKind]},
                        "masking": {"type": "boolean"},
                    },
                },
            },
        },
    },
}


def _dataset(**facets: object) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["namespace", "name", "facets"],
        "additionalProperties": False,
        "properties": {
            "namespace": {"type": "string"},
            "name": {"type": "string"},
            "facets": {
                "type": "object",
                "required": list(facets),
                "properties": facets,
                "additionalProperties": False,
            },
        },
    }


#: What version 2-0-2 of the specification asks of a `JobEvent`, and no field that it does not name.
JOB_EVENT = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "job"],
    "additionalProperties": False,
    "properties": {
        "eventTime": {"type": "string", "format": "date-time"},
        "producer": {"type": "string", "format": "uri"},
        "schemaURL": {"type": "string", "format": "uri"},
        "job": {"type": "object", "required": ["namespace", "name"]},
        "inputs": {"type": "array", "items": _dataset(schema=_FACET)},
        "outputs": {
            "type": "array",
            "items": _dataset(
                schema=_FACET,
                columnLineage={
                    **_FACET,
                    "properties": {
                        "fields": {
                            "type": "object",
                            "additionalProperties": {
                                "type": "object",
                                "required": ["inputFields"],
                                "properties": {"inputFields": _FIELDS},
                            },
                        },
                        "dataset": _FIELDS,
                    },
                },
            ),
        },
    },
}


def test_events_of_openlineage_are_as_the_specification_says(graph: ColumnGraph) -> None:
    validator = jsonschema.Draft202012Validator(
        JOB_EVENT, format_checker=jsonschema.FormatChecker()
    )

    events = list(job_events(graph, "polynya://shop/local", datetime(2026, 1, 1, tzinfo=UTC)))

    for event in (*events, *job_events(hostile(), "n", datetime(2026, 1, 1, tzinfo=UTC))):
        validator.validate(event)
    spending = next(one for one in events if one["outputs"][0]["name"] == "sales.spending")
    facet = spending["outputs"][0]["facets"]["columnLineage"]
    assert facet["fields"]["total"]["inputFields"] == [
        {
            "namespace": "polynya://shop/local", "name": "shop.orders", "field": "amount",
            "transformations": [{"type": "DIRECT", "subtype": "AGGREGATION"}],
        }
    ]  # fmt: skip
    assert {one["field"] for one in facet["dataset"]} == {"grade", "id", "user_id"}
    users = next(one for one in events if one["outputs"][0]["name"] == "shop.users")
    mail = users["outputs"][0]["facets"]["columnLineage"]["fields"]["mail"]["inputFields"]
    assert mail[0]["transformations"] == [
        {"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": True}
    ]


def test_a_column_of_unknown_origin_is_in_the_schema_only(graph: ColumnGraph) -> None:
    events = job_events(graph, "n", datetime(2026, 1, 1, tzinfo=UTC))
    lost = next(one for one in events if one["outputs"][0]["name"] == "sales.lost")

    facets = lost["outputs"][0]["facets"]
    assert facets["schema"]["fields"] == [{"name": "id"}]
    assert facets["columnLineage"]["fields"] == {}


CRM = """\
apiVersion: polynya/v1
kind: storage
name: crm
schema: crm
landing: {path: crm, format: json}
datasets:
  - name: people
    path: people/*
    keys: [id]
    sequence_by: [seq]
    timestamp: at
    history: true
    columns: {id: int, name: string, city: string}
  - name: tracked
    path: tracked/*
    keys: [id]
    sequence_by: [seq]
    history: true
    coalesce_unchanged: true
    track_history_columns: [city]
    columns: {id: int, name: string, city: string}
"""
VERSIONS = """\
apiVersion: polynya/v1
kind: transform
name: versions
from: [crm]
datasets:
  - name: moves
    keys: [id, since]
    history: true
    sql: SELECT id, upper(city) AS city, hdr__from_timestamp AS since FROM people__history
  - name: kept
    keys: [id]
    sql: SELECT id, max(name) AS name FROM tracked__history GROUP BY id
"""
STAR = """\
apiVersion: polynya/v1
kind: data_mart
name: star
from: [crm]
dimensions:
  - {name: person, type: 2, table: people, keys: [id], columns: [city]}
"""


def test_versions_come_from_the_columns_of_their_table_and_its_time(tmp_path: Path) -> None:
    write_project(tmp_path, crm=CRM, versions=VERSIONS, star=STAR)
    graph = project_graph(load_project(tmp_path), None)

    assert graph.datasets["versions.moves"].reads == ("crm.people",)
    assert inputs(graph, "versions.moves", "city") == {"crm.people.city": "TRANSFORMATION"}
    assert inputs(graph, "versions.moves", "since") == {"crm/people/*.at": "TRANSFORMATION"}
    assert inputs(graph, "versions.kept", None) == {
        "crm.tracked.city": "FILTER",
        "crm.tracked.id": "GROUP_BY",
    }
    person = graph.datasets["star.person"]
    assert [column.origins.unknown for column in person.columns] == [()] * len(person.columns)
    assert person.rows.unknown == ()
    assert "crm.people.city" in inputs(graph, "star.person", "city")
    assert "crm/people/*.at" in inputs(graph, "star.person", "valid_from")
    reached = graph.downstream([("crm.people", "city")])
    assert set(reached.datasets) == {"crm.people", "versions.moves", "star.person"}
