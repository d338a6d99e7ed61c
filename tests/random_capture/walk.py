"""Each type of a database in a table of its own: rows that are loaded, and rows that change later.

Source, History and Current are compared by value (`judge.py`), and `polynya compare` has to find
both sides alike. A column for each table, so that what differs is known by its type.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.random_capture.__main__ import (
    PASSWORD,
    captures,
    said_of,
    write_project,
)
from tests.random_capture.judge import Judge
from tests.random_capture.source import Column, Source
from tests.random_capture.workload import Table, Workload
from tests.streams_demo.program import Program


def walk(
    folder: Path,
    source: Source,
    *,
    seed: str,
    rows: int = 30,
    say: Callable[[str], None] = lambda text: print(text, flush=True),
) -> list[str]:
    """Walk the types in a folder; what is wrong in the end, with the type."""
    chance = random.Random(f"{seed}/walk")
    with ExitStack() as stack:
        server = stack.enter_context(source.server())
        workload = Workload(source, server, seed=seed, large=0, pause=0)
        workload.tables = list(_tables(source))
        workload.prepare(rows)
        write_project(folder, source, server)
        os.environ[PASSWORD] = server.password
        stack.callback(os.environ.pop, PASSWORD, None)
        program = Program(folder)
        stack.callback(program.end)
        program.start()
        program.until("it captures", lambda: captures(program))
        session = source.connect(server)
        for table in workload.tables:
            for _ in range(rows):
                workload.change_one(table, session, chance)
        differs = said_of(folder, ("compare", "source_db", "--wait", "240"))
        program.stop()
        program.process_the_rest()
        judge = Judge(source, session, {})
        wrong = [line for table in workload.tables for line in judge.wrong(folder, table)]
        wrong += differs + said_of(folder, ("quarantine", "list"), ("verify",))
        say(f"{len(workload.tables)} types, {judge.rows:,} rows, {judge.versions:,} versions")
        kinds = {table.name: table.columns[0].type.ddl for table in workload.tables}
        return [_with_type(line, kinds) for line in wrong]


def _tables(source: Source) -> Iterator[Table]:
    keys = next(keys for keys in source.keys if Table("", keys).takes_large)
    for number, kind in enumerate(source.types):
        yield Table(f"k{number}", keys, [Column(f"c{number}", kind)])


def _with_type(line: str, kinds: dict[str, str]) -> str:
    named = [kind for name, kind in kinds.items() if f"{name}:" in line or f".{name}'" in line]
    return f"{named}: {line}" if named else line
