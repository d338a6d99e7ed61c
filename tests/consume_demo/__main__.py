"""What `make demo-consume` runs: engines read live tables at one commit while a feed goes on.

`polynya run` copies and applies a real capture of PostgreSQL that lands a part at a time. Meanwhile
Spark, Trino, DuckDB, `polynya query`, `polynya.open`, Polars and a stand-in for Snowflake read all
views as of the same commit, several times. Exit code 1 when an engine shows other rows or types
than Spark, but for the known differences.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

import polynya
from examples.servers.trino import trino_server
from polynya.engine.session import start_spark
from polynya.lake.spark.api import SparkSession
from polynya.model.error_catalogue.operation import READ_NEEDS_SPARK
from polynya.model.error_catalogue.warehouse import NO_TABLES_YET
from polynya.model.errors import OperationError
from polynya.model.loader import load_project
from tests.cluster_demo.agents import Failed
from tests.cluster_demo.folder import clean
from tests.consume_demo.project import Feed, at_one_moment, write
from tests.oracle.packs.driver import ROOT
from tests.query.engines.compare import compared
from tests.query.engines.engines import (
    EMBEDDED,
    POLARS,
    PYTHON,
    Engine,
    View,
    duckdb_engine,
    spark_engine,
    trino_engine,
    views_of,
)
from tests.query.engines.snowflake import snowflake_engine
from tests.streams_demo.program import Program

FOLDER: Final = ROOT / "build" / "consume-demo"
_MARK: Final = ".consume-demo"
#: What all engines have read once, beside changes of the source that wait for an apply.
_PENDING_ROWS: Final = 20


def _print(text: str) -> None:
    print(text, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.consume_demo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where it works; made anew")
    parser.add_argument("--looks", type=int, default=3, help="how often all engines read")
    options = parser.parse_args(arguments)
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _interrupted)
    try:
        return tell(options.folder.resolve(), looks=options.looks)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; all that it started is ended", file=sys.stderr)
        return 130


def tell(folder: Path, *, looks: int, out: Callable[[str], None] = _print) -> int:
    """Tell the story in a folder; 0 when all engines showed the same rows each time."""
    began = time.monotonic()

    def say(text: str) -> None:
        out(f"{time.monotonic() - began:6.1f} s  {text}")

    clean(folder, _MARK)
    live = folder / "live"
    live.mkdir()
    write(live)
    with ExitStack() as stack:
        feed, program = Feed(live, records=150, seconds=1.0), Program(live)
        stack.callback(program.end)
        program.start()
        feed.start()
        stack.callback(feed.end)
        say("a capture lands, 150 records a second; `polynya run` copies and applies it")
        server = stack.enter_context(trino_server())
        say("a Trino server runs on this machine")
        program.until("tables with pending changes", lambda: _pending(live) >= _PENDING_ROWS)
        spark = start_spark(load_project(at_one_moment(live, folder / "first")))
        stack.callback(spark.stop)
        standin = snowflake_engine(folder / "snowflake")
        engines = [trino_engine(server), duckdb_engine(), EMBEDDED, PYTHON, POLARS, standin]
        found = []
        for number in range(looks):
            program.until("pending changes", lambda: _pending(live) >= _PENDING_ROWS)
            moment = at_one_moment(live, folder / f"look-{number + 1}")
            found.append(_look(moment, spark, engines, say))
        say(f"{feed.files} files have landed meanwhile")
        feed.end()
        program.stop()
    differences = sum(len(look.differences) for look in found)
    say(f"{differences} differences in {sum(look.rows for look in found):,} rows of Spark's views")
    return int(bool(differences))


@dataclass(frozen=True)
class Look:
    """One reading by all engines: rows that Spark showed, and what others showed differently."""

    rows: int
    differences: list[str]


def _look(
    project: Path, spark: SparkSession, engines: Sequence[Engine], say: Callable[[str], None]
) -> Look:
    wanted = _by_spark(project, spark)
    rows = sum(table.num_rows for table in wanted.values())
    pending = _pending(project)
    say(f"one commit of each table: {len(wanted)} views, {rows:,} rows, {pending:,} pending")
    differences = []
    for engine in engines:
        began = time.monotonic()
        result = compared(engine, project, wanted)
        differences += result.different
        left = f", leaves {', '.join(sorted(result.refused))} to Spark" if result.refused else ""
        shown = "the same rows" if not result.different else f"{len(result.different)} differences"
        say(f"   {engine.name}: {shown} in {time.monotonic() - began:.1f} s{left}")
        for one in result.different:
            say(f"      {one}")
    return Look(rows, differences)


def _by_spark(project: Path, spark: SparkSession) -> dict[View, pa.Table]:
    wanted = {}
    with spark_engine(spark).open(project) as read:
        for view in views_of(project):
            table = read(view)
            assert table is not None, "Spark refuses no view"
            wanted[view] = table
    return wanted


#: What a reader meets while the first run makes tables and their views.
_NOT_YET: Final = frozenset({NO_TABLES_YET.code, READ_NEEDS_SPARK.code})


def _pending(project: Path) -> int:
    """Pending changes of all tables; 0 before they have views."""
    lake = polynya.open(project)
    try:
        names = {view.dataset for view in views_of(project)}
        return sum(lake.table(name).current().watermark.pending_rows for name in names)
    except OperationError as error:
        if error.code not in _NOT_YET:
            raise
        return 0


def _interrupted(*_given: object) -> None:
    """End at Ctrl-C, or when asked to. A second one does not disturb the clearing up."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
