"""`make random-capture`: a database changes at random, is captured, and both sides are compared.

Rows of all types with random values, their keys and tables change in three sessions, while the
capture, the server and `polynya run` are killed. At the end each table must have the rows of the
source value by value, History each of their versions in order, and the quarantine nothing. DuckDB
reads the tables; the source tells what happened by triggers (`judge.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from examples.servers import mariadb, postgresql
from tests.capture_demo.story import capture_process
from tests.cluster_demo.agents import Failed
from tests.oracle.packs.driver import ROOT, command, environment
from tests.random_capture.judge import Judge
from tests.random_capture.mariadb import MARIADB
from tests.random_capture.mysql import MYSQL
from tests.random_capture.postgresql import POSTGRESQL
from tests.random_capture.source import Source
from tests.random_capture.workload import Table, Workload
from tests.streams_demo.program import Program

SOURCES = {"postgresql": POSTGRESQL, "mariadb": MARIADB, "mysql": MYSQL}
PASSWORD = "POLYNYA_MILL_PASSWORD"
_FILES = {
    "polynya.yml": """\
apiVersion: polynya/v1
kind: project
name: mill
targets:
  local: {landing: landing, warehouse: warehouse}
""",
    "connections/source.yml": """\
apiVersion: polynya/v1
kind: connection
type: KIND
host: 127.0.0.1
port: PORT
database: DATABASE
user: USER
password: {env: POLYNYA_MILL_PASSWORD}
tls: {mode: TLS_MODE}   # loopback
""",
    "tasks/source_db.yml": """\
apiVersion: polynya/v1
kind: landing
name: source_db
connection: source
tables: {include: ["INCLUDE"]}
load: {parallel: 2, chunk_rows: 100}
write: {roll: {size: 4MB, age: 1s}}
errors: {environment: {retry: forever, from: 1s, to: 5s}, table: {retry: 10, then: suspend}}
""",
    "tasks/mill.yml": """\
apiVersion: polynya/v1
kind: storage
name: mill
landing: {path: source_db, format: debezium}
schema: mill
# A column that goes and one of its type that comes were not renamed.
defaults: {history: true, schema_evolution: {rename_column: ignore}}
""",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the workload as the arguments say; 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_capture", description=__doc__)
    parser.add_argument("--database", choices=tuple(SOURCES), default="postgresql")
    parser.add_argument("--seed", default="1", help="of all that is drawn (1)")
    parser.add_argument("--minutes", type=float, default=3.0, help="of changes (3)")
    parser.add_argument("--large", type=int, default=3000, help="rows of large transactions (3000)")
    parser.add_argument("--no-kills", action="store_true", help="nothing is killed")
    parser.add_argument("--compare", action="store_true", help="`polynya compare` has to agree")
    parser.add_argument("--keep", type=Path, help="a new folder that stays")
    given = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            wrong = run(
                folder, SOURCES[given.database], seed=given.seed, minutes=given.minutes,
                large=given.large, kills=not given.no_kills, compares=given.compare,
            )  # fmt: skip
        except (Failed, mariadb.UnavailableError, postgresql.UnavailableError) as failure:
            print(failure, file=sys.stderr)
            return 1
    for line in wrong:
        print(line)
    return int(bool(wrong))


def run(
    folder: Path,
    source: Source,
    *,
    seed: str,
    minutes: float,
    large: int = 3000,
    kills: bool = True,
    compares: bool = False,
    say: Callable[[str], None] = lambda text: print(text, flush=True),
) -> list[str]:
    """Run the workload in a folder; what is wrong in the end."""
    chance = random.Random(f"{seed}/kills")
    with ExitStack() as stack:
        server = stack.enter_context(source.server())
        workload = Workload(source, server, seed=seed, large=large, pause=0.05)
        workload.prepare(rows=250)
        write_project(folder, source, server)
        os.environ[PASSWORD] = server.password
        stack.callback(os.environ.pop, PASSWORD, None)
        program = Program(folder)
        stack.callback(program.end)
        workload.start()
        stack.callback(lambda: _quietly_stopped(workload))
        program.start()
        # What is killed before it has begun would tell nothing: the minutes count from here.
        program.until("it captures", lambda: captures(program))
        killed = _strike(chance, minutes * 60, program, server, workload) if kills else {}
        if not kills:
            time.sleep(minutes * 60)
        # Each table is followed once more, so that a last change of tables is copied, too.
        workload.stop()
        session = source.connect(server)
        for table in workload.tables:
            workload.insert_one(table, session)
        # One that has just begun does not handle signals yet.
        program.until(
            "it works", lambda: any(one["type"] == "step.ended" for one in program.said())
        )
        # A moment of the database is reached while its capture runs.
        comparing = [("compare", "source_db", "--wait", "240")] if compares else []
        differs = said_of(folder, *comparing)
        program.stop()
        program.process_the_rest()
        say(f"{source.name}, seed {seed}: {dict(workload.counts)}, killed: {killed}")
        judge = Judge(source, session, _loaded(program))
        wrong = [line for table in workload.tables for line in judge.wrong(folder, table)]
        wrong += differs + _quarantined(folder)
        wrong += _idle(judge)
        wrong += [] if wrong else _planted(judge, session, folder, workload.tables)
        say(f"{judge.rows:,} rows and {judge.versions:,} versions compared, {len(wrong)} wrong")
        return wrong


def _planted(judge: Judge, session: Any, folder: Path, tables: Sequence[Table]) -> list[str]:
    """What the checks of the judge fail to see of a change that no capture follows any more.

    History of a table is not judged from when it was made again until it was loaded.
    """
    sees = {"Current": 0, "History": 0}
    for table in tables:
        session.run(f"UPDATE {table.name} SET rev = -1")
        found = judge.wrong(folder, table)
        for what in sees:
            sees[what] += any(f"{table.name}: {what}" in line for line in found)
    wanted = {"Current": len(tables), "History": 1}
    return [
        f"planted: the judge of {what} sees a change that is not in the lake in {count} tables"
        for what, count in sees.items()
        if count < wanted[what]
    ]


def captures(program: Program) -> bool:
    """Whether the last start has begun to follow changes."""
    return any(one["type"] == "capture.streaming" for one in program.said())


def _idle(judge: Judge) -> list[str]:
    """What is wrong with a run in which hardly anything was followed."""
    if judge.versions >= judge.rows + 100:
        return []
    return [f"{judge.versions} versions of {judge.rows} rows: the stream was hardly followed"]


def _quietly_stopped(workload: Workload) -> None:
    with suppress(Exception):
        workload.stop()


def write_project(folder: Path, source: Source, server: Any) -> None:
    (folder / "landing").mkdir(parents=True)
    for name, text in _FILES.items():
        for word, value in {
            "KIND": source.kind, "PORT": server.port, "DATABASE": source.database,
            "USER": server.user, "INCLUDE": source.include, "TLS_MODE": source.tls,
        }.items():  # fmt: skip
            text = text.replace(word, str(value))
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def _strike(
    chance: random.Random, seconds: float, program: Program, server: Any, workload: Workload
) -> dict[str, int]:
    """Kill what works, again and again, for so long; how often what was killed."""
    killed: dict[str, int] = defaultdict(int)
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, chance.uniform(5, 25)))
        (what,) = chance.choices(("capture", "server", "run"), (6, 2, 2))
        program.until("it captures", lambda: captures(program))
        if what == "capture":
            with suppress(Failed, ProcessLookupError):  # none, for it begins again
                os.kill(capture_process(program), signal.SIGKILL)
                killed[what] += 1
        elif what == "server":
            with workload.changing:
                server.kill()
                time.sleep(chance.uniform(0, 2))
                server.start()
                killed[what] += 1
        else:
            program.kill()
            program.start()
            killed[what] += 1
        workload.counts["strikes"] += 1
    return dict(killed)


def _loaded(program: Program) -> dict[str, list[datetime]]:
    """By table, the moments in UTC when a capture said that it was loaded."""
    found: dict[str, list[datetime]] = defaultdict(list)
    for event in program.all_said():
        if event["type"] == "capture.loaded":
            at = datetime.fromisoformat(event["at"]).astimezone(UTC).replace(tzinfo=None)
            found[event["subject"].split(".")[-1]].append(at)
    return found


def _quarantined(folder: Path) -> list[str]:
    """What is in the quarantine, and what `verify` finds."""
    return said_of(folder, ("quarantine", "list"), ("verify",))


def said_of(folder: Path, *verbs: tuple[str, ...]) -> list[str]:
    """What commands find that is wrong."""
    wrong = []
    for verb in verbs:
        done = subprocess.run(
            command(*verb, "--json", "--project", str(folder)),
            env=environment(), cwd=ROOT, text=True, capture_output=True, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found = [one for one in lines if one.get("type") == "quarantined"]
        wrong += [f"quarantine: {str(one)[:400]}" for one in found[:5]]
        wrong += [f"{verb[0]}: {str(one)[:400]}" for one in lines if one.get("differences")]
        if done.returncode != 0:
            wrong.append(f"{verb[0]}: exit {done.returncode}: {done.stdout[-800:]}{done.stderr}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
