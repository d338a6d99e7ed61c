"""The page of Trino on a real server: its catalog, the views that it has made, and its queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.trino import StatementError, TrinoServer, UnavailableError, trino_server
from polynya.lake.spark.api import SparkSession
from polynya.model.loader import LoadedProject
from tests.absent import absent
from tests.docs.pages import ROOT, blocks
from tests.docs.sessions import Shell, run
from tests.lab.commands import fresh_session, use_everywhere

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PAGE = (ROOT / "docs" / "read-trino.md").read_text("utf-8")


@pytest.fixture
def trino() -> Iterator[TrinoServer]:
    """A server that runs; without one the test is skipped, in CI failed."""
    try:
        with trino_server() as server:
            yield server
    except UnavailableError as error:
        absent(str(error))


@pytest.fixture
def shell(spark: SparkSession, tmp_path: Path) -> Iterator[Shell]:
    """Runs the sessions of the page, each command with a session of its own."""

    def session(project: LoadedProject) -> Any:
        return fresh_session(spark, project)

    yield Shell(tmp_path, session)
    use_everywhere(spark)


def test_the_page_of_trino_holds(trino: TrinoServer, shell: Shell) -> None:
    assert [block.line for block, now in run(blocks(PAGE), shell) if now != block.text] == []
    [settings] = [block.text for block in blocks(PAGE) if block.language == "properties"]
    given = dict(re.findall(r"^([\w.-]+)=(.*)$", settings, re.MULTILINE))
    connector = given.pop("connector.name")
    warehouse = str(shell.folder / "warehouse")
    trino.add_catalog(
        "polynya",
        connector,
        {name: text.replace("/srv/mall/warehouse", warehouse) for name, text in given.items()},
    )
    trino.add_catalog("live", "memory", {})

    printed = shell.call("polynya views shop.orders --engine trino --catalog polynya")
    for statement in filter(str.strip, printed.split(";\n")):
        trino.run(statement, catalog="live")

    queries = [block.text for block in blocks(PAGE) if block.language == "sql"]
    assert len(queries) == 2
    for query in queries:
        text, _, shown = query.rpartition("-- ")
        rows = trino.run(text).rows
        assert ", ".join(f"{key} {state}" for key, state in rows) == shown.strip()
    with pytest.raises(StatementError, match="Access Denied"):
        trino.run("DELETE FROM polynya.shop_internal.orders_internal")
