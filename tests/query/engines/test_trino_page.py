"""The pages about Trino on a real server: its catalogs, its views and their queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.trino import StatementError, TrinoServer
from polynya.lake.spark.api import SparkSession
from polynya.model.loader import LoadedProject, load_project
from tests.docs.pages import ROOT, blocks
from tests.docs.sessions import Shell, run
from tests.lab.commands import fresh_session, use_everywhere
from tests.lab.served import served
from tests.lab.trino import running_trino

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PAGE = (ROOT / "docs" / "read-trino.md").read_text("utf-8")
SERVED = (ROOT / "docs" / "serve-catalog.md").read_text("utf-8")


@pytest.fixture(scope="module")
def trino() -> Iterator[TrinoServer]:
    """A server that runs; without one the test is skipped, in CI failed."""
    with running_trino() as server:
        yield server


@pytest.fixture
def shell(spark: SparkSession, tmp_path: Path) -> Iterator[Shell]:
    """Runs the sessions of the page, each command with a session of its own."""

    def session(project: LoadedProject) -> Any:
        return fresh_session(spark, project)

    yield Shell(tmp_path, session)
    use_everywhere(spark)


def test_the_page_of_trino_holds(trino: TrinoServer, shell: Shell) -> None:
    assert [block.line for block, now in run(blocks(PAGE), shell) if now != block.text] == []
    warehouse = str(shell.folder / "warehouse")
    add_catalog(trino, "polynya", PAGE, "/srv/mall/warehouse", warehouse)
    trino.add_catalog("live", "memory", {})

    printed = shell.call("polynya views shop.orders --engine trino --catalog polynya")
    for statement in filter(str.strip, printed.split(";\n")):
        trino.run(statement, catalog="live")

    queries = [block.text for block in blocks(PAGE) if block.language == "sql"]
    assert len(queries) == 4
    for query in queries:
        text, _, shown = query.rpartition("-- ")
        rows = trino.run(text).rows
        assert ", ".join(" ".join(map(str, row)) for row in rows) == shown.strip()
    with pytest.raises(StatementError, match="Access Denied"):
        trino.run("DELETE FROM polynya.shop_internal.orders_internal")

    # The same from a served catalog, as the page about it says.
    views = ("orders", "orders__changes", "orders__history", "orders__current_stored")
    wanted = {view: trino.run(f"SELECT * FROM polynya.shop.{view}") for view in views}
    trino.drop_catalog("polynya")
    with served(load_project(shell.folder)) as found:
        add_catalog(trino, "polynya", SERVED, "http://127.0.0.1:8181", found.url)
        for view, other in wanted.items():
            shown = trino.run(f"SELECT * FROM polynya.shop.{view}")
            assert shown.types == other.types
            assert sorted(map(repr, shown.rows)) == sorted(map(repr, other.rows))
            assert shown.rows
        shell.call("polynya run --once --apply always")
        query = "SELECT id, state FROM polynya.shop.orders__current_stored ORDER BY id"
        assert trino.run(query).rows == [[1, "paid"], [3, "new"], [4, "new"]]


def add_catalog(trino: TrinoServer, name: str, page: str, written: str, real: str) -> None:
    """Make the catalog whose properties a page has, with the real place for the written one."""
    [settings] = [one.text for one in blocks(page) if "connector.name=iceberg" in one.text]
    given = dict(re.findall(r"^([\w.-]+)=(.*)$", settings, re.MULTILINE))
    connector = given.pop("connector.name")
    trino.add_catalog(
        name, connector, {key: text.replace(written, real) for key, text in given.items()}
    )
