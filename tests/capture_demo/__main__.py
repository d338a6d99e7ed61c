"""What `make demo-postgres` runs: a database becomes live tables.

A workload changes rows and tables from the start. Its database is loaded and captured by `polynya
run`, while the capture process and the server are killed twice each. Exit code 1 when
`polynya compare` finds a difference in the end.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from examples.servers import mariadb, postgresql
from tests.capture_demo import project
from tests.capture_demo.bank import Bank
from tests.capture_demo.mariadb import tables as in_mariadb
from tests.capture_demo.postgresql import tables as in_postgresql
from tests.capture_demo.story import Story
from tests.capture_demo.workload import Workload
from tests.cluster_demo.agents import Failed
from tests.cluster_demo.folder import clean
from tests.oracle.packs.driver import ROOT
from tests.streams_demo.program import PATIENCE, Program

FOLDER = ROOT / "build" / "capture-demo"
BANKS = {"postgresql": in_postgresql.BANK, "mariadb": in_mariadb.BANK}
_MARK = ".capture-demo"
#: That many rows are landed, copied and applied in a second by a machine that has much else to do.
_ROWS_A_SECOND = 500


def _print(text: str) -> None:
    print(text, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.capture_demo", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where it works; made anew")
    parser.add_argument("--database", choices=tuple(BANKS), default="postgresql")
    parser.add_argument("--kills", type=int, choices=(1, 2), default=2, help="of each")
    parser.add_argument("--rows", type=int, default=1_000_000, help="accounts, 1,000 or more")
    parser.add_argument("--seed", default="1", help="of the rows and of the workload")
    options = parser.parse_args(arguments)
    if options.rows < 1000:
        parser.error("--rows is 1,000 or more")
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _interrupted)
    try:
        return tell(
            options.folder.resolve(), BANKS[options.database], rows=options.rows,
            kills=options.kills, seed=options.seed,
        )  # fmt: skip
    except (Failed, mariadb.UnavailableError, postgresql.UnavailableError) as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; all that it started is ended", file=sys.stderr)
        return 130


def tell(
    folder: Path,
    bank: Bank,
    *,
    rows: int,
    kills: int = 2,
    seed: str = "1",
    out: Callable[[str], None] = _print,
) -> int:
    """Tell the story in a folder; 0 when the tables are those of the database.

    `kills`: of the capture, and as many of the server.
    """
    began = time.monotonic()

    def say(text: str) -> None:
        out(f"{time.monotonic() - began:6.1f} s  {text}")

    clean(folder, _MARK)
    with ExitStack() as stack:
        say(f"{bank.name} starts on this machine")
        server = stack.enter_context(bank.server())
        limits = bank.create(server, rows, seed)
        say(f"{limits.all:,} rows are in its tables")
        project.write(folder, bank, server, chunk=min(max(rows // 20, 100), 50_000))
        os.environ[project.PASSWORD] = server.password
        stack.callback(os.environ.pop, project.PASSWORD, None)
        workload = Workload(bank, server, limits, seed=seed, pause=0.02)
        stack.callback(workload.stop)
        program = Program(folder, patience=PATIENCE + rows / _ROWS_A_SECOND)
        stack.callback(program.end)
        story = Story(folder, bank, server, program, workload, say)
        story.begin()
        story.kill_capture()
        if kills > 1:
            story.kill_server()
        story.wait_for_load()
        story.kill_server()
        if kills > 1:
            story.kill_capture()
        found = story.finish()
    return _conclude(story, found, say)


def _conclude(story: Story, found: list[dict[str, Any]], say: Callable[[str], None]) -> int:
    say(f"{len(story.faults)} faults: {'; '.join(story.faults)}")
    for one in found:
        if one["type"] == "table.compared":
            say(
                f"   {one['table']:<18} {one['source_rows']:>10,} rows in the source,"
                f" {one['current_rows']:>10,} in Current, {len(one['differences'])} differences,"
                f" {len(one['undecided'])} undecided"
            )
        elif one["type"] == "table.not_compared":
            say(f"   {one['table']:<18} not compared: {one['why']}")
    bad = [one["table"] for one in found if one.get("differences") or one.get("failed")]
    say(f"NOT as in the source: {', '.join(bad)}" if bad else "0 differences")
    return int(bool(bad))


def _interrupted(*_given: object) -> None:
    """End at Ctrl-C, or when asked to. A second one does not disturb the clearing up."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
