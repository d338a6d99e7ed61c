"""Each type leaves a load as Debezium writes it: schema and value, one row of a table for each.

What is expected was recorded from Debezium 3.5 with the settings of `properties.py`;
`test_stream_types.py` records it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.postgresql import PostgresServer
from polynya.gateway.source import SourceTable
from tests.gateway.postgresql.shop import Shop

RECORDED = json.loads((Path(__file__).parent / "debezium_types.json").read_text())
TYPES = {one["type"]: one for one in RECORDED["types"]}


def fill(shop: Shop) -> dict[str, str]:
    """Make a table of each type with its values as rows 0, 1, …; the names of the tables."""
    session, names = shop.server.connect(database=shop.name), {}
    for statement in RECORDED["setup"]:
        session.run(statement)
    for number, (name, recorded) in enumerate(TYPES.items()):
        names[name] = f"public.t{number}"
        values = [f"({row}, {literal})" for row, (literal, _) in enumerate(recorded["values"])]
        session.run(f"CREATE TABLE t{number} (id int PRIMARY KEY, v {name})")
        session.run(f"INSERT INTO t{number} VALUES {', '.join([*values, '(99, NULL)'])}")
    session.close()
    return names


@pytest.fixture(scope="module")
def loaded(server: PostgresServer) -> Iterator[dict[str, tuple[SourceTable, dict[int, Any]]]]:
    """By type, the table and the values of its rows; a column that is left out has no values."""
    server.run("CREATE DATABASE types TEMPLATE template0")
    shop = Shop(server, "types")
    names = {table: name for name, table in fill(shop).items()}
    tables, view = shop.begin("public.*")
    found = {}
    for table in tables:
        lines = view.read(table, None, 1000, None).lines.splitlines()
        events = [json.loads(one) for one in lines]
        values = {
            one["key"]["id"]: one["value"]["after"]["v"]
            for one in events
            if "v" in one["value"]["after"]
        }
        found[names[table.name]] = (table, values)
    yield found
    shop.close()
    server.run("SELECT pg_drop_replication_slot('polynya_types')")
    server.run("DROP DATABASE types WITH (FORCE)")


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_written_as_the_stream_writes_it(
    name: str, loaded: dict[str, tuple[SourceTable, dict[int, Any]]]
) -> None:
    recorded = TYPES[name]
    table, values = loaded[name]
    schemas = {one.name: one.connect for one in table.columns}

    if recorded["schema"] is None:
        assert "v" not in schemas
        assert not values
        return
    expected = {row: value for row, (_, value) in enumerate(recorded["values"])}
    assert schemas["v"] == {**recorded["schema"], "optional": True, "field": "v"}
    assert values == {**expected, 99: None}
