"""The process of one contender: `python -m bench.peers.worker MODULE:OPEN FOLDER MEMORY JARS…`.

It reads one request a line, as JSON, and answers each with a line. What Spark prints goes to
standard error. It imports nothing of the project by itself: it may run with another PySpark.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peers.tables.table import Table


class Worker:
    """Answers requests about tables, which it opens by their name; it counts this many `reads`.

    Those before them do not: a JVM that has scanned nothing yet is slow, and some contenders apply
    changes without a scan.
    """

    def __init__(self, opened: Callable[[str], Table], *, reads: int = 3, warm_up: int = 6) -> None:
        self._opened = opened
        self._reads = reads
        self._warm_up = warm_up
        self._tables: dict[str, Table] = {}

    def answer(self, do: str, table: str, path: str = "") -> Any:
        """Do what a request says."""
        if table not in self._tables:
            self._tables[table] = self._opened(table)
        return getattr(self, do)(self._tables[table], Path(path))

    def load(self, table: Table, folder: Path) -> None:
        """Make the table of a folder of files."""
        table.load(folder)

    def take(self, table: Table, file: Path) -> float:
        """The seconds from a landed file to rows that are visible and applied."""
        began = time.perf_counter()
        table.take(file)
        return time.perf_counter() - began

    def read(self, table: Table, _: Path) -> list[float]:
        """The seconds of full reads, all columns, after those that do not count."""
        seconds = []
        for _number in range(self._warm_up + self._reads):
            began = time.perf_counter()
            # Every row with every column, and nothing done with it.
            table.rows()._jdf.queryExecution().toRdd().count()
            seconds.append(time.perf_counter() - began)
        return seconds[self._warm_up :]

    def dump(self, table: Table, folder: Path) -> None:
        """Write the live rows to Parquet files."""
        table.rows().write.parquet(str(folder))

    def files(self, table: Table, _: Path) -> int:
        """How many files a full read needs."""
        return table.files()


def main(what: str, folder: str, memory: str, *jars: str) -> None:
    """Answer until the input ends."""
    # Spark, and the JVM that it starts, print to standard output.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    module, opens = what.split(":")
    opened = getattr(importlib.import_module(f"bench.peers.tables.{module}"), opens)
    worker = Worker(opened(Path(folder), list(jars), memory))
    print(json.dumps({"ok": None}), file=answers)
    for line in sys.stdin:
        try:
            answer = {"ok": worker.answer(**json.loads(line))}
        except Exception as error:  # noqa: BLE001 - it is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
