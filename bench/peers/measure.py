"""Rounds of contenders in turns: each takes in the same file, then comes the next file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.floors.records import Keys
from bench.peers import feed
from bench.peers.contenders import Contender
from bench.peers.environment import UnavailableError
from bench.peers.feed import Feed
from bench.peers.process import Process
from bench.peers.result import Result
from polynya.model.errors import DependencyError

_TABLE, _LATE = "orders", "late"


@dataclass(frozen=True, slots=True)
class Sizes:
    """A table of `rows`, of which each file changes `count`; `memory` is the heap of every JVM.

    Rounds count after `warm_up` others. So many contenders as `together` live at a time and take
    turns: each needs its memory.
    """

    rows: int = 1_000_000
    count: int = 10_000
    keys: Keys = "uniform"
    warm_up: int = 2
    rounds: int = 5
    memory: str = "2g"
    together: int = 100


#: Starts the worker of a contender: in which folder, with which heap.
Start = Callable[[Contender, Path, str], Process]


def measure(
    contenders: Sequence[Contender], sizes: Sizes, folder: Path, start: Start = Process
) -> Iterator[Result]:
    """The results, each group when it is over."""
    rounds = sizes.warm_up + sizes.rounds
    ordinary = feed.ordinary(
        folder / "files", rows=sizes.rows, count=sizes.count, rounds=rounds, keys=sizes.keys
    )
    late = feed.late(folder / "late")
    for first in range(0, len(contenders), sizes.together):
        group = contenders[first : first + sizes.together]
        with ExitStack() as running:
            sides = [Side(Result(one), folder / one.name, running, sizes) for one in group]
            for side in sides:
                side.start(start, ordinary)
            for number, file in enumerate(ordinary.events):
                # Nobody is always first.
                turn = number % len(sides)
                for side in sides[turn:] + sides[:turn]:
                    side.round(file, counts=number >= sizes.warm_up)
            for side in sides:
                side.finish(ordinary, late)
        for side in sides:
            shutil.rmtree(side.folder, ignore_errors=True)
            yield side.result


class Side:
    """One contender in a comparison. A failure is recorded, and the others continue."""

    def __init__(self, result: Result, folder: Path, running: ExitStack, sizes: Sizes) -> None:
        self.result = result
        self.folder = folder
        self._running = running
        self._sizes = sizes
        self._process: Process | None = None

    def start(self, start: Start, ordinary: Feed) -> None:
        """Start the process and load the table."""
        try:
            process = start(self.result.contender, self.folder, self._sizes.memory)
            self._process = self._running.enter_context(process)
            process.ask("load", _TABLE, ordinary.load)
        except (UnavailableError, DependencyError) as error:
            self._fail(error)

    def round(self, file: Path, *, counts: bool) -> None:
        """Take in a file."""
        process, result = self._process, self.result
        if process is None:
            return
        processor, before = process.processor_seconds(), _sizes_in(process.warehouse)
        try:
            seconds = process.ask("take", _TABLE, file)
        except UnavailableError as error:
            self._fail(error)
            return
        if counts:
            result.seconds.append(seconds)
            result.processor.append(process.processor_seconds() - processor)
            result.written.append(_written(before, _sizes_in(process.warehouse)))

    def finish(self, ordinary: Feed, late: Feed) -> None:
        """Read the table, then see whether it is right, and that of the late feed."""
        process, result = self._process, self.result
        if process is None:
            return
        try:
            result.files = process.ask("files", _TABLE)
            result.read = process.ask("read", _TABLE)
            result.peak = process.peak.bytes
            result.wrong = len(self._wrong(process, _TABLE, ordinary))
            process.ask("load", _LATE, late.load)
            for file in late.events:
                process.ask("take", _LATE, file)
            result.late = feed.by_lateness(self._wrong(process, _LATE, late))
        except UnavailableError as error:
            self._fail(error)

    def _wrong(self, process: Process, table: str, fed: Feed) -> list[int]:
        dump = self.folder / f"dump_{table}"
        process.ask("dump", table, dump)
        return feed.wrong_keys(fed, dump)

    def _fail(self, error: Exception) -> None:
        self.result.failed = " ".join(str(error).split())[:300].replace("|", "/")
        self._process = None


def _sizes_in(folder: Path) -> dict[str, int]:
    """Size of each file."""
    return {str(one): one.stat().st_size for one in folder.rglob("*") if one.is_file()}


def _written(before: dict[str, int], after: dict[str, int]) -> int:
    """Bytes of files that are new, and by which others have grown."""
    return sum(max(0, size - before.get(path, 0)) for path, size in after.items())
