"""The demo of engines that read while a feed goes on; it sees an engine that shows other rows."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from examples.servers import mariadb
from examples.servers.maven import UnavailableError
from examples.servers.snowflake import environment
from examples.servers.trino import programs
from tests.absent import absent
from tests.consume_demo import __main__ as demo
from tests.query.engines.engines import duckdb_engine

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _servers() -> None:
    if find_spec("snowflake.connector") is None:
        absent("the extra `snowflake` is not installed")
    try:
        programs()
        environment()
    except (UnavailableError, mariadb.UnavailableError) as error:
        absent(str(error))


def test_all_engines_show_the_rows_of_spark_while_a_feed_goes_on(tmp_path: Path) -> None:
    said: list[str] = []

    assert demo.tell(tmp_path / "demo", looks=1, out=said.append) == 0, "\n".join(said)

    assert sum("the same rows" in line for line in said) == 6
    assert "0 differences" in said[-1]


def test_an_engine_that_hides_rows_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = duckdb_engine(lambda text: text.replace("'changes'", "'retained'"))
    monkeypatch.setattr(demo, "duckdb_engine", lambda: faulty)
    said: list[str] = []

    assert demo.tell(tmp_path / "demo", looks=1, out=said.append) == 1

    (line,) = (line for line in said if "DuckDB: " in line)
    assert "the same rows" not in line
