"""Each type leaves a load as Debezium writes it: schema and value, one row of a table for each.

What is expected was recorded from Debezium 3.5 with the settings of `properties.py`;
`test_stream_types.py` records it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.postgresql import PostgresServer
from polynya.gateway.source import SourceTable
from tests.gateway.postgresql.shop import Shop

RECORDED = json.loads((Path(__file__).parent / "debezium_types.json").read_text())
TYPES = {one["type"]: one for one in RECORDED["types"]}
COLUMNS = {name: f"c{number}" for number, name in enumerate(TYPES)}


def create() -> list[str]:
    """What makes a table with a column for each type."""
    columns = ", ".join(f"{COLUMNS[name]} {name}" for name in TYPES)
    return [*RECORDED["setup"], f"CREATE TABLE kinds (id int PRIMARY KEY, {columns})"]


def insert(first: int = 0) -> str:
    """What fills it: the values of each type from a row on, and NULL in all that remains."""
    rows = []
    for number in range(1 + max(len(one["values"]) for one in TYPES.values())):
        given = [one["values"][number : number + 1] for one in TYPES.values()]
        values = ", ".join(value[0][0] if value else "NULL" for value in given)
        rows.append(f"({first + number}, {values})")
    return f"INSERT INTO kinds VALUES {', '.join(rows)}"


def expected(name: str) -> list[Any]:
    """The values of a type as they leave the database, those that are not NULL."""
    return [value for _, value in TYPES[name]["values"] if value is not None]


@pytest.fixture(scope="module")
def loaded(server: PostgresServer) -> Iterator[tuple[SourceTable, list[dict[str, Any]]]]:
    """The table, and its rows."""
    server.run("CREATE DATABASE types TEMPLATE template0")
    shop = Shop(server, "types")
    shop.run(*create(), insert())
    (table,), view = shop.begin("public.kinds")
    lines = view.read(table, None, 1000, None).lines.splitlines()
    yield table, [json.loads(one)["value"]["after"] for one in lines]
    shop.close()
    server.run("SELECT pg_drop_replication_slot('polynya_types')")
    server.run("DROP DATABASE types WITH (FORCE)")


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
UNTRIED = {"xml", "geometry and geography of PostGIS", "vectors of pgvector", "and their arrays"}
PAGE = Path(__file__).parents[3] / "docs" / "capture-postgresql.md"


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
                part in UNTRIED
                or MANY.get(part) in tried
                or {word, f"{word}[]" if is_array else word} & plain
                or (is_array and MANY.get(part, "") + "[]" in tried)
            ), part


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_written_as_the_stream_writes_it(
    name: str, loaded: tuple[SourceTable, list[dict[str, Any]]]
) -> None:
    recorded, column = TYPES[name], COLUMNS[name]
    table, rows = loaded
    schemas = {one.name: one.connect for one in table.columns}

    if recorded["schema"] is None:
        assert column not in schemas
        assert column not in rows[0]
        return
    assert schemas[column] == {**recorded["schema"], "optional": True, "field": column}
    assert [row[column] for row in rows if row[column] is not None] == expected(name)
