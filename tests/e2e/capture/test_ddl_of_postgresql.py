"""DDL of a captured PostgreSQL: its tables follow, by the policies of the storage task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.oracle.packs.read_back import internal_table, read_pyiceberg
from tests.postgresql import postgres_server
from tests.projects import write_project

pytestmark = pytest.mark.slow

STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: debezium}
defaults:
  schema_evolution: {rename_column: propagate, drop_column: propagate}
"""
TABLES = (
    "CREATE TABLE items (id int PRIMARY KEY, name text, n int, old date)",
    "INSERT INTO items VALUES (1, 'one', 1, '2024-01-01'), (2, 'two', 2, NULL)",
    "CREATE TABLE cleared (id int PRIMARY KEY, v text)",
    "INSERT INTO cleared VALUES (1, 'gone'), (2, 'gone')",
    "CREATE TABLE swapped (id int PRIMARY KEY, v text)",
    "INSERT INTO swapped VALUES (1, 'of the first')",
    "CREATE TABLE named (id int PRIMARY KEY, v text)",
    "INSERT INTO named VALUES (1, 'a')",
    "CREATE TABLE dropped (id int PRIMARY KEY)",
    "INSERT INTO dropped VALUES (1)",
)


@dataclass
class Lake:
    """A database, its capture and the tables that are made of it."""

    project: Path
    shop: Shop
    capture: CaptureProcess

    def follow(self, *statements: str) -> None:
        """Run statements while nothing captures; then capture, and make tables of it."""
        self.shop.run(*statements)
        self.capture.finish()
        assert main(["run", "--once", "--apply", "always", "--project", str(self.project)]) == 0

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        namespace, table = internal_table("shop", name)
        where = "hdr__partition = 'current'"
        found = read_pyiceberg(self.project, namespace, table, columns=columns, where=where)
        return sorted(tuple(row[one] for one in columns) for row in found)

    def source(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        found = self.shop.run(f"SELECT {', '.join(columns)} FROM {name} ORDER BY 1")
        return [tuple(row) for row in found]

    def assert_same(self, name: str, *columns: str) -> None:
        assert self.rows(name, *columns) == self.source(name, *columns)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    project = write_project(tmp_path_factory.mktemp("ddl") / "project", shop=STORAGE)
    (project / "landing").mkdir()
    with postgres_server() as server:
        shop = Shop(server, "postgres")
        found = Lake(project, shop, CaptureProcess(project / "landing", shop.access()))
        found.follow(*TABLES)
        found.assert_same("items", "id", "name", "n", "old")
        yield found
        shop.close()


def test_a_new_column_with_a_default_has_it_in_the_rows_that_were_there(lake: Lake) -> None:
    lake.follow(
        "INSERT INTO items VALUES (3, 'three', 3, NULL)",
        "ALTER TABLE items ADD COLUMN state text DEFAULT 'new'",
        "INSERT INTO items VALUES (4, 'four', 4, NULL, 'own'), (5, 'five', 5, NULL, NULL)",
        "ALTER TABLE items ADD COLUMN mark uuid DEFAULT gen_random_uuid()",
    )

    assert [row[1] for row in lake.source("items", "id", "state")] == [*["new"] * 3, "own", None]
    lake.assert_same("items", "id", "name", "n", "old", "state")
    marks = [(row[0], str(row[1])) for row in lake.source("items", "id", "mark")]
    assert lake.rows("items", "id", "mark") == marks


def test_a_wider_type_is_widened_and_a_truncate_empties(lake: Lake) -> None:
    lake.follow(
        "ALTER TABLE items ALTER n TYPE bigint",
        "UPDATE items SET n = 1::bigint << 40 WHERE id = 1",
        "TRUNCATE cleared",
        "INSERT INTO cleared VALUES (2, 'after')",
    )

    lake.assert_same("items", "id", "n")
    lake.assert_same("cleared", "id", "v")


def test_a_table_that_took_the_name_of_another_has_its_own_rows_only(lake: Lake) -> None:
    lake.follow(
        "CREATE TABLE other (id int PRIMARY KEY, v text)",
        "INSERT INTO other VALUES (7, 'of the second')",
        "ALTER TABLE swapped RENAME TO swapped_old",
        "ALTER TABLE other RENAME TO swapped",
        "UPDATE swapped SET v = 'changed' WHERE id = 7",
    )

    lake.assert_same("swapped", "id", "v")
    lake.follow("INSERT INTO swapped VALUES (8, 'streamed')")
    lake.assert_same("swapped", "id", "v")


def test_a_table_with_a_new_name_is_a_new_table_and_a_dropped_one_keeps_its_rows(
    lake: Lake,
) -> None:
    lake.follow(
        "ALTER TABLE named RENAME TO renamed",
        "INSERT INTO renamed VALUES (2, 'b')",
        "DROP TABLE dropped",
    )

    lake.assert_same("renamed", "id", "v")
    assert lake.rows("named", "id", "v") == [(1, "a")]
    assert lake.rows("dropped", "id") == [(1,)]


def test_columns_are_renamed_and_dropped_as_the_policies_say(lake: Lake) -> None:
    lake.follow(
        "ALTER TABLE items RENAME name TO title",
        "INSERT INTO items (id, title) VALUES (6, 'six')",
    )
    lake.assert_same("items", "id", "title", "n", "state")

    lake.follow(
        "ALTER TABLE items DROP COLUMN old",
        "INSERT INTO items (id, title) VALUES (7, 'seven')",
    )
    lake.assert_same("items", "id", "title", "n", "state")
    with pytest.raises(ValueError, match="old"):
        lake.rows("items", "id", "old")
