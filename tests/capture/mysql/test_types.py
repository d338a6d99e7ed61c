"""Each type of MariaDB and MySQL as a row of the first load has it: the schema and the value."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import pytest

from examples.servers.mariadb import Server
from polynya.capture.mysql import types
from polynya.capture.mysql.database import MysqlDatabase
from polynya.formats.debezium.types import fields_of
from polynya.model.errors import OperationError
from tests.capture.mysql.capturing import PAGE
from tests.capture.mysql.cases import ROWS, cases_of, create, insert, insert_nulls
from tests.mariadb import access_to

UTC = "SET sql_mode = '', time_zone = '+00:00'"


@pytest.fixture(scope="module")
def loaded(server: Server) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The rows of a table with all types, and the schemas of its fields."""
    server.execute("DROP DATABASE IF EXISTS kinds", "CREATE DATABASE kinds")
    server.execute(
        UTC, create(server.kind), insert(server.kind, 1), insert_nulls(server.kind, 2),
        database="kinds",
    )  # fmt: skip
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


@pytest.mark.also_mysql
@pytest.mark.parametrize("row", ROWS)
def test_a_value_is_what_the_stream_makes_of_it(server: Server, loaded: Any, row: str) -> None:
    rows, schemas = loaded

    for number, case in cases_of(server.kind).items():
        if case not in ROWS[row]:
            continue
        schema = dict(schemas[f"c{number}"])
        assert rows[0][f"c{number}"] == case.value, case
        assert (schema["type"], schema.get("name")) == (case.kind, case.name), case
        assert schema.get("parameters", {}) == dict(case.parameters), case
        is_optional = "not null" not in case.ddl
        assert schema["optional"] is is_optional, case
        assert (rows[1][f"c{number}"] is None) is case.may_be_null, case


def page() -> dict[str, str]:
    """The rows of the table of types on the page: the type, and what columns it becomes."""
    text = PAGE.read_text("utf-8")
    lines = [one for one in text.partition("## Types")[2].splitlines() if one.startswith("| ")]
    cells = [[cell.strip() for cell in one.strip("|").split("|")] for one in lines[1:]]
    return {one[0]: one[2] for one in cells}


@pytest.mark.parametrize("row", page())
def test_a_row_of_the_page_names_the_columns_that_its_types_become(
    server: Server, loaded: Any, row: str
) -> None:
    fields = fields_of({"fields": list(loaded[1].values())})
    its = {n: case for n, case in cases_of(server.kind).items() if case in ROWS[row]}

    kinds = {str(fields[f"c{number}"][0]) for number in its}

    assert {re.split("[(<]", one)[0] for one in kinds} == set(page()[row].split(", "))


def test_each_case_is_of_a_row_of_the_page() -> None:
    assert page().keys() == ROWS.keys()


@pytest.mark.parametrize(
    "ddl", ["TEXT COMPRESSED", *(f"VARCHAR(9) CHARACTER SET {one}" for one in
                                 ("cp932", "geostd8", "hp8", "keybcs2"))]
)  # fmt: skip
def test_a_column_that_would_arrive_wrongly_is_refused(server: Server, ddl: str) -> None:
    server.execute("DROP DATABASE IF EXISTS kinds", "CREATE DATABASE kinds",
                   f"CREATE TABLE kinds.wrong (id INT PRIMARY KEY, v {ddl})")  # fmt: skip
    database = MysqlDatabase(access_to(server))

    with pytest.raises(OperationError, match=r"kinds\.wrong\.v") as caught:
        database.begin(database.tables(["kinds.%"], []))

    database.close()
    server.execute("DROP DATABASE kinds")
    assert caught.value.code == "POLYNYA-GTW-048"


@pytest.mark.parametrize("number", [0.1, 16777216.0, 3.4028234663852886e38, 1e-45, -2.5, 0.0])
def test_a_number_of_32_bits_is_written_in_digits_that_mean_it(number: float) -> None:
    widened = struct.unpack("f", struct.pack("f", number))[0]

    text = types.single(repr(widened).encode())

    assert struct.pack("f", float(text)) == struct.pack("f", number)
    assert len(text) <= len("3.4028234663852886e+38")
