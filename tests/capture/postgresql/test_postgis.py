"""Geometry of PostGIS leaves the stream as it left the load, and is what Debezium gives."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from polynya.formats.debezium.types import typed
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.capture.postgresql.test_types import columns_of
from tests.postgresql import postgis_server

pytestmark = pytest.mark.slow

TABLE = (
    "CREATE TABLE shapes (id int PRIMARY KEY, g geometry, q geometry(Point, 4326), e geography, "
    "n geometry NOT NULL, f geography NOT NULL, many geometry[])"
)
#: Values of a geometry, and the number of their reference system.
SHAPES: tuple[tuple[str, int | None], ...] = (
    ("POINT(1.5 -2)", None),
    ("SRID=4326;POINT(1.5 -2)", 4326),
    ("POINT Z (1 2 3)", None),
    ("SRID=3857;POLYGON((0 0,1 0,1 1,0 0),(0.1 0.1,0.2 0.1,0.2 0.2,0.1 0.1))", 3857),
    ("POINT EMPTY", None),
    ("SRID=4326;MULTIPOINT ZM (1 2 3 4,5 6 7 8)", 4326),
    ("CIRCULARSTRING(0 0,1 1,1 0)", None),
)
NULLS = "INSERT INTO shapes (id, n, f) VALUES ({}, 'POINT(0 0)', 'POINT(0 0)')"
LATER = 100


def rows(first: int) -> list[str]:
    """Statements that insert each shape, from a number on, and a row of NULLs."""
    given = [
        f"INSERT INTO shapes VALUES ({first + number}, '{shape}', 'SRID=4326;POINT(3 4)', "
        f"'POINT(5 6)', '{shape}', 'POINT(7 8)', ARRAY['{shape}'::geometry])"
        for number, (shape, _) in enumerate(SHAPES)
    ]
    return [*given, NULLS.format(first + len(SHAPES))]


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with postgis_server() as server:
        server.run("CREATE DATABASE maps")
        made = Shop(server, "maps")
        # Not in the schema of the tables.
        made.run("CREATE SCHEMA gis", "CREATE EXTENSION postgis SCHEMA gis")
        made.run("ALTER DATABASE maps SET search_path = public, gis")
        yield made
        made.close()


@pytest.fixture(scope="module")
def capture(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> CaptureProcess:
    landing = tmp_path_factory.mktemp("postgis") / "landing"
    landing.mkdir()
    shop.run(TABLE, *rows(0))
    capture = CaptureProcess(landing, shop.access())
    capture.start()
    capture.wait_for("streaming")
    capture.wait_for("loaded")
    shop.run(*rows(LATER))
    capture.wait_for_line("shapes", id=LATER + len(SHAPES))
    capture.end()
    return capture


def landed(capture: CaptureProcess) -> dict[int, dict[str, Any]]:
    """The columns of each row but its number."""
    found = {line["key"]["id"]: line["value"]["after"] for line in capture.landed()}
    return {n: {name: row[name] for name in row if name != "id"} for n, row in found.items()}


def test_a_geometry_is_the_same_in_load_and_stream(capture: CaptureProcess) -> None:
    found = landed(capture)
    shapes = [columns_of(shape) for shape in capture.shapes("public.shapes")]

    for number in range(len(SHAPES) + 1):
        assert found[number] == found[LATER + number]
    assert len(shapes) >= 2
    assert all(one == shapes[0] for one in shapes)
    assert shapes[0]["g"]["name"] == "io.debezium.data.geometry.Geometry"
    assert shapes[0]["e"]["name"] == "io.debezium.data.geometry.Geography"
    assert "many" not in shapes[0]
    for name in "gqenf":
        typed(shapes[0][name])


def test_it_is_the_geometry_that_the_database_has(shop: Shop, capture: CaptureProcess) -> None:
    found = landed(capture)

    for number, (_, srid) in enumerate(SHAPES):
        given = found[number]["g"]
        content = base64.b64decode(given["wkb"]).hex()
        same = f"SELECT ST_AsEWKB(g) = '\\x{content}'::bytea FROM shapes WHERE id = {number}"
        assert shop.run(same) == [[True]]
        assert given["srid"] == srid
        assert found[number]["n"] == given
        assert found[number]["q"]["srid"] == found[number]["e"]["srid"] == 4326
    assert found[len(SHAPES)]["g"] is None
    assert base64.b64decode(found[0]["g"]["wkb"]) == bytes.fromhex(
        "0101000000000000000000f83f00000000000000c0"
    )
