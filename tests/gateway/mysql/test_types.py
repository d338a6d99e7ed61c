"""Each type of MariaDB as a row of the first load has it: the schema and the value."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from examples.servers.mariadb import Server
from polynya.gateway.mysql.database import MysqlDatabase
from polynya.gateway.mysql.types import encoders
from tests.gateway.mysql.cases import CASES, Case, create, insert, insert_nulls
from tests.mariadb import access_to

UTC = "SET sql_mode = '', time_zone = '+00:00'"


@pytest.fixture(scope="module")
def loaded(server: Server) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The rows of a table with all types, and the schemas of its fields."""
    server.execute("DROP DATABASE IF EXISTS kinds", "CREATE DATABASE kinds")
    server.execute(UTC, create(), insert(1), insert_nulls(2), database="kinds")
    database = MysqlDatabase(access_to(server))
    (table,) = database.tables(["kinds.kinds"], [])
    snapshot = database.begin([table]).snapshot
    chunk = snapshot.read(table, None, 100, None)
    fields = snapshot.envelope(table)["fields"]
    snapshot.close()
    database.close()
    server.execute("DROP DATABASE kinds")
    after = next(one for one in fields if one["field"] == "after")
    rows = [json.loads(line)["value"]["after"] for line in chunk.lines.splitlines()]
    return rows, {one["field"]: one for one in after["fields"]}


@pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)), ids=lambda one: str(one)[:60])
def test_a_value_is_what_the_stream_makes_of_it(loaded: Any, number: int, case: Case) -> None:
    rows, schemas = loaded

    schema = dict(schemas[f"c{number}"])

    assert rows[0][f"c{number}"] == case.value
    assert (schema["type"], schema.get("name")) == (case.kind, case.name)
    assert schema.get("parameters", {}) == dict(case.parameters)
    is_optional = "not null" not in case.ddl
    assert schema["optional"] is is_optional
    assert (rows[1][f"c{number}"] is None) is is_optional


@pytest.mark.parametrize("number", [0.1, 16777216.0, 3.4028234663852886e38, 1e-45, -2.5, 0.0])
def test_a_number_of_32_bits_is_written_in_digits_that_mean_it(number: float) -> None:
    widened = struct.unpack("f", struct.pack("f", number))[0]

    text = encoders.single(repr(widened).encode())

    assert struct.pack("f", float(text)) == struct.pack("f", number)
    assert len(text) <= len("3.4028234663852886e+38")
