"""Columns of MariaDB that a statement fills in all rows of a table: no event says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.servers.mariadb import Server
from tests.capture.mysql.capturing import finish, lines, same

pytestmark = [pytest.mark.slow, pytest.mark.also_mysql]
#: Afterwards there are as many columns that fill as there were.
CHANGES = {
    "another for one that was dropped": [
        "ALTER TABLE t DROP COLUMN a", "ALTER TABLE t ADD COLUMN c INT DEFAULT 7",
    ],
    "of a table that was made again": [
        "DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)",
        "ALTER TABLE t ADD COLUMN c VARCHAR(9) NOT NULL DEFAULT 'x'",
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_rows_that_were_there_have_the_value(own: Server, tmp_path: Path, kind: str) -> None:
    landing = tmp_path / "landing"
    own.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 1)",
        "INSERT INTO t (id) VALUES (1), (2)",
        database="shop",
    )
    finish(own, landing)
    emptied = sum(one["value"].get("op") == "t" for one in lines(landing))

    own.execute(*CHANGES[kind], "INSERT INTO t (id) VALUES (3)", database="shop")
    finish(own, landing)

    same(own, landing, "shop.t")
    assert sum(one["value"].get("op") == "t" for one in lines(landing)) == emptied
