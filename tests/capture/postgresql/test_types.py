"""Each type leaves the stream as it left the load: one capture of a real server, and its engine.

The page of types says what is tried here, and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from examples.servers.postgresql import PostgresServer
from polynya.formats.debezium.types import typed
from tests.capture.postgresql.captured import UNSENT, CaptureProcess
from tests.capture.postgresql.kinds import COLUMNS, TYPES, create, expected, insert
from tests.capture.postgresql.shop import Shop

#: Rows that were inserted while the capture ran have their number and this.
LATER = 1000
LONG = 300_000
PERSON = "'078-05-1120', 'ann@example.org', '+4912345', 'a secret note'"
HIDDEN = ("078-05-1120", "ann@example.org", "12345", "a secret note")
MASKS = {
    "public.people": {
        "ssn": "drop", "mail": {"hash": {"key": "a-key"}}, "phone": {"truncate": 3},
        "note": {"replace": "hidden"},
    }
}  # fmt: skip
#: By table, its replica identity; their `body` is stored out of line.
DOCUMENTS = {
    "by_key": "DEFAULT",
    "by_index": "USING INDEX by_index_code_key",
    "by_all": "FULL",
}
OTHERS = (
    *(
        f"CREATE TABLE {name} (id int PRIMARY KEY, code int NOT NULL UNIQUE, n int, body text)"
        for name in DOCUMENTS
    ),
    *(f"ALTER TABLE {name} ALTER body SET STORAGE EXTERNAL" for name in DOCUMENTS),
    *(f"ALTER TABLE {name} REPLICA IDENTITY {how}" for name, how in DOCUMENTS.items()),
    *(f"INSERT INTO {name} VALUES (1, 10, 0, repeat('x', {LONG}))" for name in DOCUMENTS),
    "CREATE TABLE sales (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
    "CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')",
    "CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')",
    "INSERT INTO sales VALUES (1, '2024-01-05')",
    "CREATE TABLE squares (id int PRIMARY KEY, n int, s int GENERATED ALWAYS AS (n * n) STORED)",
    "INSERT INTO squares VALUES (1, 3)",
    "CREATE TABLE people (id int PRIMARY KEY, ssn text NOT NULL, mail text, phone text, note text)",
    "ALTER TABLE people REPLICA IDENTITY FULL",
    f"INSERT INTO people VALUES (1, {PERSON}), (2, {PERSON})",
    "CREATE TABLE stock (id int PRIMARY KEY, region text, n int)",
    "ALTER TABLE stock REPLICA IDENTITY FULL",
    "INSERT INTO stock VALUES (1, 'eu', 0), (2, 'us', 0), (3, 'eu', 0), (4, 'us', 0)",
)
CHANGES = (
    *(f"UPDATE {name} SET n = 1 WHERE id = 1" for name in DOCUMENTS),
    *(f"INSERT INTO {name} VALUES (2, 20, 0, repeat('y', {LONG}))" for name in DOCUMENTS),
    *(f"DELETE FROM {name} WHERE id = 1" for name in DOCUMENTS),
    "UPDATE by_index SET code = 21 WHERE id = 2",
    "INSERT INTO sales VALUES (2, '2024-02-07')",
    "UPDATE sales SET day = '2024-02-05' WHERE id = 1",
    "INSERT INTO squares VALUES (2, 4)",
    f"INSERT INTO people VALUES (3, {PERSON})",
    "UPDATE people SET id = 4 WHERE id = 1",
    "UPDATE people SET note = 'a secret note, too' WHERE id = 2",
    "UPDATE stock SET n = 1",
    "UPDATE stock SET region = 'us' WHERE id = 1",
    "UPDATE stock SET region = 'eu' WHERE id = 2",
    "INSERT INTO stock VALUES (5, 'eu', 2), (6, 'us', 2)",
    "DELETE FROM stock WHERE id IN (3, 4)",
    "INSERT INTO by_key VALUES (3, 30, 0, '')",
)


#: What cells of the page say of many types, and one of them.
MANY = {
    "enum types": "mood", "domains": "pos_int", "ranges of built-in types": "int4range",
    "arrays of these": "integer[]", "row types": "pair", "arrays of enums and tsvector": "mood[]",
    "arrays of domains": "pos_int[]", "line to circle": "circle[]",
    "arrays of money": "money[]", "multiranges": "int4multirange",
    "ranges of other types": "floatrange", "time with time zone": "timetz",
    "timestamp with time zone": "timestamptz", "timestamp(0) to (3)": "timestamp(3)",
    "timestamp(4) to (6)": "timestamp(6)", "seg and all others": "xid8",
}  # fmt: skip
#: Types that the page itself says have not been tried here.
UNTRIED = {"xml", "arrays of geometry and geography", "vectors of pgvector and their arrays"}
#: Left out at the start: `test_table_faults.py`.
LEFT_OUT = {"arrays that are declared with several dimensions (`integer[][]`)"}
#: Those that need a server with PostGIS: `test_postgis.py`.
ELSEWHERE = {"geometry", "geography of PostGIS"}
PAGE = Path(__file__).parents[3] / "docs" / "capture-postgresql.md"


@dataclass(frozen=True)
class Captured:
    """What landed: by table the events, the schemas of its envelopes, and what it comes to."""

    events: dict[str, list[dict[str, Any]]]
    shapes: dict[str, list[Any]]
    tables: dict[str, dict[str, dict[str, Any]]]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table by their number."""
        return sorted(self.tables[table].values(), key=lambda row: row["id"])

    def operations(self, table: str) -> set[str]:
        """What its events are."""
        return {line["value"]["op"] for line in self.events[table]}


def columns_of(shape: dict[str, Any]) -> dict[str, Any]:
    """The schemas of a table's columns, from that of its envelope."""
    after = next(one for one in shape["fields"] if one["field"] == "after")
    return {one["field"]: one for one in after["fields"]}


@pytest.fixture(scope="module")
def captured(
    server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Captured]:
    folder = tmp_path_factory.mktemp("types")
    server.run("CREATE DATABASE streamed TEMPLATE template0")
    shop = Shop(server, "streamed")
    shop.run(*create(), insert(), *OTHERS)
    (folder / "landing").mkdir()
    access = shop.access(rows={"public.stock": "region = 'eu'"})
    capture = CaptureProcess(folder / "landing", access, {"parallel": 1, "masks": MASKS})
    capture.start()
    capture.wait_for("streaming")
    capture.wait_for("loaded", times=len(DOCUMENTS) + 5)
    shop.run(insert(LATER), *CHANGES)
    capture.wait_for_line("by_key", id=3)
    capture.end()
    events: dict[str, list[dict[str, Any]]] = {}
    for line in capture.landed():
        source = line["value"]["source"]
        events.setdefault(f"{source['schema']}.{source['table']}", []).append(line)
    shapes = {name: capture.shapes(name) for name in events}
    yield Captured(events, shapes, capture.tables())
    shop.close()
    server.run("SELECT pg_drop_replication_slot('polynya_streamed')")
    server.run("DROP DATABASE streamed WITH (FORCE)")


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_the_same_in_load_and_stream(name: str, captured: Captured) -> None:
    column, lines = COLUMNS[name], captured.events["public.kinds"]
    columns = [columns_of(shape).get(column) for shape in captured.shapes["public.kinds"]]
    values = {
        operation: [
            line["value"]["after"].get(column) for line in lines if line["value"]["op"] == operation
        ]
        for operation in ("r", "c")
    }

    assert len(columns) >= 2
    assert all(one == columns[0] for one in columns)
    assert values["r"] == values["c"]
    assert [one for one in values["c"] if one is not None] == expected(name)
    if columns[1] is None:
        assert TYPES[name]["schema"] is None
        return
    assert columns[1] == {**TYPES[name]["schema"], "optional": True, "field": column}
    typed(columns[1])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_long_value_that_did_not_change_is_sent_where_the_identity_has_it(
    name: str, captured: Captured
) -> None:
    key = "code" if name == "by_index" else "id"
    lines = captured.events[f"public.{name}"]
    assert {tuple(line["key"]) for line in lines} == {(key,)}
    first = [line["value"] for line in lines if line["key"][key] in (1, 10)]
    written = [line["value"] for line in lines if line["key"][key] in (2, 20)]

    whole = {"id": 1, "code": 10, "n": 0, "body": "x" * LONG}
    sent = "x" * LONG if name == "by_all" else UNSENT
    assert [one["op"] for one in first] == ["r", "u", "d"]
    assert [one["after"] for one in first] == [whole, {**whole, "n": 1, "body": sent}, None]
    assert first[2]["before"][key] == whole[key]
    assert written[0]["after"]["body"] == "y" * LONG


def test_a_key_by_another_index_changes_as_a_key_does(captured: Captured) -> None:
    lines = captured.events["public.by_index"]

    moved = [line for line in lines if line["key"]["code"] in (20, 21)]

    assert [(line["value"]["op"], line["key"]["code"]) for line in moved] == [
        ("c", 20), ("d", 20), ("c", 21),
    ]  # fmt: skip
    assert moved[2]["value"]["after"]["body"] == UNSENT


def test_rows_of_partitions_are_those_of_the_table_that_is_parted(captured: Captured) -> None:
    assert "public.sales_1" not in captured.events
    lines = captured.events["public.sales"]

    told = [(line["value"]["op"], line["key"]["id"]) for line in lines]

    assert told[0] == ("r", 1)
    assert sorted(told[1:]) == [("c", 1), ("c", 2), ("d", 1)]


def test_a_generated_column_is_in_neither(captured: Captured) -> None:
    found = {
        line["key"]["id"]: line["value"]["after"] for line in captured.events["public.squares"]
    }

    assert found == {1: {"id": 1, "n": 3}, 2: {"id": 2, "n": 4}}


def test_masks_hide_the_same_in_load_and_stream(captured: Captured) -> None:
    digest = hmac.new(b"a-key", b"ann@example.org", hashlib.sha256).hexdigest()
    hidden = {"mail": digest, "phone": "+49", "note": "hidden"}

    assert captured.rows("public.people") == [{"id": n, **hidden} for n in (2, 3, 4)]
    assert captured.operations("public.people") == {"r", "c", "d", "u"}
    landed = json.dumps([captured.events["public.people"], captured.shapes["public.people"]])
    assert [text for text in (*HIDDEN, "ssn") if text in landed] == []


def test_rows_come_and_go_as_they_meet_the_condition(captured: Captured) -> None:
    assert captured.rows("public.stock") == [
        {"id": 2, "region": "eu", "n": 1}, {"id": 5, "region": "eu", "n": 2}
    ]  # fmt: skip
    assert captured.operations("public.stock") == {"r", "c", "d", "u"}
    assert '"us"' not in json.dumps(
        [line["value"]["after"] for line in captured.events["public.stock"]]
    )


def cells() -> list[str]:
    """What the table of types on the page has in its first column."""
    lines = PAGE.read_text().partition("\n## Types\n")[2].splitlines()
    rows = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
    return rows[1:]


def test_the_page_has_the_types_that_are_tried_and_no_others() -> None:
    by_cell: dict[str, set[str]] = {}
    for name, recorded in TYPES.items():
        by_cell.setdefault(recorded["row"], set()).add(name)

    assert set(by_cell) <= set(cells())
    for cell in cells():
        tried = by_cell.get(cell, set())
        plain = {re.sub(r"\(.*?\)", "", name) for name in tried}
        for part in re.split(r"[,;] (?![a-z]\))", cell):
            word = re.sub(r"\(.*?\)", "", part)
            is_array = "arrays of" in cell
            assert (
                part in UNTRIED | ELSEWHERE | LEFT_OUT
                or MANY.get(part) in tried
                or {word, f"{word}[]" if is_array else word} & plain
                or (is_array and MANY.get(part, "") + "[]" in tried)
            ), part
