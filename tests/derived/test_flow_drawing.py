"""A flow as text, as JSON and as a picture."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from polynya.derived.drawing import flow_facts, flow_svg, flow_text
from polynya.derived.flow import CompiledFlow
from tests.derived.flow_tables import Table, flow_of

TEXT = """\
flow:
  - {select: {input: actor, columns: [id, name], as: actors}}
  - {union: {inputs: [actors, customer], source: origin}}
  - {filter: "name <> '<b>'"}
"""
TABLES = {
    "shop.actor": Table({"id": "int", "name": "string", "x": "int"}, keys=("id",)),
    "shop.customer": Table({"id": "bigint", "name": "string"}, keys=("id",)),
}


def flow() -> CompiledFlow:
    return flow_of(TEXT, TABLES)


def test_text_shows_what_each_step_reads_and_its_columns() -> None:
    assert (
        flow_text(flow())
        == """\
shop.actor     table
    id int, name string, x int
shop.customer  table
    id bigint, name string
actors         select  ← shop.actor
    id int, name string
union_2        union   ← actors, shop.customer
    origin string, id bigint, name string
filter_3       filter  ← union_2
    origin string, id bigint, name string"""
    )


def test_facts_are_json() -> None:
    facts = json.loads(json.dumps(flow_facts(flow())))

    assert [step["name"] for step in facts["steps"]] == ["actors", "union_2", "filter_3"]
    assert facts["steps"][1]["keys"] == [["id", "origin"]]
    assert facts["inputs"][0]["keys"] == ["id"]


def test_the_picture_is_whole_and_its_boxes_do_not_overlap() -> None:
    # Our own text, not one from outside.
    root = ET.fromstring(flow_svg(flow(), "shop.people"))

    name = "{http://www.w3.org/2000/svg}"
    texts = [node.text for node in root.iter(f"{name}text")]
    boxes = [
        tuple(int(node.attrib[key]) for key in ("x", "y", "width", "height"))
        for node in root.iter(f"{name}rect")
        if "x" in node.attrib
    ]
    assert {"shop.actor", "actors", "union_2", "filter_3"} <= set(texts)
    assert len(boxes) == 5
    assert len(list(root.iter(f"{name}path"))) == 4
    for number, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[:number]:
            beside = x + width <= other_x or other_x + other_width <= x
            above = y + height <= other_y or other_y + other_height <= y
            assert beside or above


def test_names_from_outside_are_only_text() -> None:
    tables = {"t": Table({'<script>"&\x1b[31m': "int", "b": "int"}, keys=("b",))}
    compiled = flow_of("flow:\n  - {select: {input: t, columns: [b]}}\n", tables)

    picture = flow_svg(compiled, '"><script>')

    assert "<script>" not in picture
    assert "\x1b" not in picture + flow_text(compiled)
