"""The server beside a run with a capture: how far 200 people slow the run, and its own times.

`python -m bench.beside --minutes 30` starts `polynya run` over tables into which files land
steadily and over a capture of PostgreSQL. It measures the run alone, then for the minutes beside
the API and console of 5,000 datasets with clients at work, then alone again. Steps take longer as
tables grow, so what is beside the clients is compared with the minutes alone next to it. `--rounds`
divides the minutes into so many parts, each with a server of its own, with minutes alone between
them. It prints a line each minute and ends by itself.

The clients are processes of the same machine, so they are a load that the server is not: they have
the lowest priority, and each asks once in `--pause` seconds, as a person with an open page does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from bench.capture.latency import Writer
from bench.capture.place import PASSWORD, STORAGE, Run, Source, source_in
from bench.serve import (
    DATASETS,
    PAGES,
    PATHS,
    Took,
    ask,
    processor_seconds,
    resident,
    serve_in,
)
from examples.servers.postgresql import postgres_server

_LAND_SECONDS, _RECORDS, _KEYS = 5.0, 200, 5_000
_MINUTE = 60.0


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="with the clients; default 5")
    parser.add_argument("--alone", type=float, help="minutes before and after; default a fifth")
    parser.add_argument("--rounds", type=int, default=1, help="parts of the minutes; default 1")
    parser.add_argument("--warm", type=float, default=90.0, help="seconds of warm-up; default 90")
    parser.add_argument("--clients", type=int, default=200, help="default 200")
    parser.add_argument("--pause", type=float, default=5.0, help="seconds of each; default 5")
    parser.add_argument("--tables", type=int, default=10, help="with landing files; default 10")
    parser.add_argument("--changes", type=int, default=40, help="a second; default 40")
    return parser.parse_args(arguments)


def steady_task(tables: int) -> str:
    """A task whose tables get a file every five seconds."""
    datasets = [
        {"name": f"t{number}", "path": f"t{number}/*", "keys": ["id"], "sequence_by": ["n"]}
        for number in range(tables)
    ]
    return json.dumps(
        {
            "apiVersion": "polynya/v1", "kind": "storage", "name": "steady", "schema": "steady",
            "landing": {"path": "steady", "format": "json"}, "batch": {"freshness": "2s"},
            "datasets": datasets,
        }
    )  # fmt: skip


def land(folder: Path, tables: int, stop: threading.Event) -> None:
    """Land a file for each table again and again."""
    began = time.monotonic()
    for number in itertools.count(1):
        if stop.is_set():
            return
        for table in range(tables):
            first = number * _RECORDS
            records = (
                {"id": (first + one) * 7919 % _KEYS, "n": first + one, "note": f"{table} {one}"}
                for one in range(_RECORDS)
            )
            file = folder / f"t{table}" / f"{number:08d}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(f".{file.name}")
            part.write_text("".join(f"{json.dumps(one)}\n" for one in records))
            part.rename(file)
        stop.wait(max(0.0, began + number * _LAND_SECONDS - time.monotonic()))


@dataclass
class Phase:
    """What was measured while the clients asked, or did not."""

    name: str
    copies: list[float] = field(default_factory=list)
    applies: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    records: int = 0
    landed: int = 0
    processor: float = 0.0
    server_processor: float = 0.0
    seconds: float = 0.0
    answers: list[Took] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def take(self, other: Phase) -> None:
        """Add a minute."""
        for name in ("copies", "applies", "waited", "answers", "memory"):
            getattr(self, name).extend(getattr(other, name))
        for name in ("records", "landed", "processor", "server_processor", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def figures(self) -> dict[str, float]:
        """What is compared: seconds and processor time for work that is the same each minute."""
        steps, records = [*self.copies, *self.applies], max(1, self.records)
        return {
            "median seconds of a copy": _quantile(self.copies, 0.5),
            "mean seconds of a step": fmean(steps) if steps else 0.0,
            "seconds of steps for 1,000 records": sum(steps) / records * 1000,
            "processor seconds for 1,000 records": self.processor / records * 1000,
            "age of a file at its commit, p95": _quantile(self.waited, 0.95),
        }

    def line(self) -> str:
        """One line for a minute, or for all of them."""
        run = (
            f"run: {self.records:,} records, {len(self.copies)} copies of "
            f"{_quantile(self.copies, 0.5):.2f} s, {len(self.applies)} applies, "
            f"{self.landed} captured, {self.processor / max(self.seconds, 1):.2f} cores"
        )
        if not self.answers:
            return run
        server = [took.server for took in self.answers]
        return (
            f"server: {len(server)} answers, p50 {_quantile(server, 0.5):.1f}, p95 "
            f"{_quantile(server, 0.95):.1f} ms, {self.memory[-1]:.0f} MB, "
            f"{self.server_processor / max(self.seconds, 1):.2f} cores; {run}"
        )


class Watch:
    """Reads what the run and the server did since the last time."""

    def __init__(self, run: Run, server: int | None = None) -> None:
        self._run, self._server = run, server
        self._counts: dict[str, int] = {}
        self._processor = self._server_processor = 0.0
        self._since = time.monotonic()
        self.take("")

    def serve(self, process: int | None) -> None:
        """Watch a server, too, from now on; None: no more."""
        self._server = process
        self._server_processor = 0.0 if process is None else processor_seconds(process)

    def take(self, name: str, answers: Sequence[Took] = ()) -> Phase:
        """What happened since the last call."""
        copies = [one for one in self._new("batch.copied") if one["rows_in"]]
        now, used = time.monotonic(), _tree_seconds(self._run.process.pid)
        found = Phase(
            name,
            [one["seconds"] for one in copies],
            [one["seconds"] for one in self._new("dataset.applied")],
            [one["waited_seconds"] for one in copies if one.get("waited_seconds") is not None],
            sum(one["rows_in"] for one in copies),
            sum(one["events"] for one in self._new("capture.landed")),
            used - self._processor,
            seconds=now - self._since,
            answers=list(answers),
        )
        self._processor, self._since = used, now
        if self._server is not None:
            server = processor_seconds(self._server)
            found.server_processor = server - self._server_processor
            self._server_processor = server
            found.memory = [resident(self._server)]
        if failed := self._new("unit.failed"):
            print(f"  the run failed: {failed[0].get('message')}", flush=True)
        return found

    def _new(self, kind: str) -> list[dict[str, Any]]:
        every = self._run.events(kind)
        start = self._counts.get(kind, 0)
        self._counts[kind] = len(every)
        return every[start:]


def _tree_seconds(root: int) -> float:
    """The processor time of a process and all that it started, also of those that have ended."""
    parents: dict[int, tuple[int, float]] = {}
    ticks = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # Own time, and that of children which were waited for.
        parents[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15])) / ticks
    own = {root}
    while more := {one for one, (parent, _) in parents.items() if parent in own} - own:
        own |= more
    return sum(parents[one][1] for one in own if one in parents)


def _quantile(values: Sequence[float], share: float) -> float:
    if len(values) < 2:
        return values[0] if values else 0.0
    return quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, int]]:
    """The server over the project of the run: its URL and its process."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    context = multiprocessing.get_context("spawn")
    # A fork of this process would have the memory and the threads of the bench.
    server = context.Process(target=serve_in, args=(folder, listening, True), daemon=True)
    server.start()
    listening.close()
    assert server.pid is not None
    try:
        yield url, server.pid
    finally:
        server.terminate()
        server.join()


def _asked(url: str, given: argparse.Namespace, seconds: float) -> list[Took]:
    """What clients in a process of the lowest priority got."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    work = (sending, url, seconds, given.clients, given.pause)
    clients = context.Process(target=_clients, args=work, daemon=True)
    clients.start()
    sending.close()
    try:
        found: list[Took] = receiving.recv()
    finally:
        clients.join()
    return found


def _clients(sending: Any, url: str, seconds: float, clients: int, pause: float) -> None:
    os.nice(19)
    # Where Linux groups processes by session, the priority counts within a group only.
    os.setsid()
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")
    answers = ask(url, (*PATHS, *PAGES), seconds, clients=clients, pause=pause)
    sending.send([one for found in answers.values() for one in found])
    sending.close()


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, print each minute, and then the comparison."""
    given = options(arguments)
    rate = given.clients / given.pause
    print(
        f"{DATASETS:,} datasets, {given.clients} clients, a request every {given.pause:g} s of "
        f"each: {rate:g} a second; {given.tables} tables get {_RECORDS} records every "
        f"{_LAND_SECONDS:g} s, the capture {given.changes} changes a second",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as name, postgres_server() as server:
        task = steady_task(given.tables)
        more = (("tasks/live.yml", STORAGE), ("tasks/steady.yml", task))
        source = source_in(server, Path(name), "shop", *more)
        # The server reads the connection, too.
        os.environ[PASSWORD] = server.password
        source.sql(
            "CREATE TABLE ticks (id bigint PRIMARY KEY, n bigint, name text, amount numeric(12, 2),"
            " at timestamptz)",
            "INSERT INTO ticks SELECT g, 0, 'name ' || g, g / 7.0, now()"
            " FROM generate_series(1, 10000) g",
        )
        stop, writer = threading.Event(), Writer(source, given.changes)
        lands = (source.folder / "landing" / "steady", given.tables, stop)
        threading.Thread(target=land, args=lands, daemon=True).start()
        threading.Thread(target=writer.work, daemon=True).start()
        try:
            _measure(source, given)
        finally:
            stop.set()
            writer.stop.set()


def _measure(source: Source, given: argparse.Namespace) -> None:
    part = given.minutes / given.rounds
    alone = given.alone if given.alone is not None else max(1.0, part / 5)
    minutes = given.minutes + (given.rounds + 1) * alone
    tasks = ("source_db", "live", "steady")
    with source.polynya("run", *tasks, seconds=given.warm + minutes * _MINUTE + 600) as run:
        run.wait(lambda: len(run.events("batch.copied")) > 2 * given.tables, "the first copies")
        time.sleep(given.warm)
        watch = Watch(run)
        phases = [_phase("alone", watch, alone)]
        for _ in range(given.rounds):
            with _served(source.folder) as (url, process):
                _asked(url, given, 10.0)
                watch.take("")
                watch.serve(process)
                phases.append(_phase("beside the clients", watch, part, url, given))
            watch.serve(None)
            watch.take("")
            phases.append(_phase("alone again", watch, alone))
    _compare(phases, max(1, math.ceil(alone)))


def _phase(
    name: str,
    watch: Watch,
    minutes: float,
    url: str | None = None,
    given: argparse.Namespace | None = None,
) -> list[Phase]:
    """The minutes of a phase."""
    found, left = [], minutes * _MINUTE
    while left > 0:
        part = min(_MINUTE, left)
        if url is None or given is None:
            time.sleep(part)
            minute = watch.take(name)
        else:
            minute = watch.take(name, _asked(url, given, part))
        left -= part
        found.append(minute)
        print(f"{time.strftime('%H:%M:%S')} {name}: {minute.line()}", flush=True)
    return found


def _together(name: str, minutes: Iterable[Phase]) -> Phase:
    whole = Phase(name)
    for minute in minutes:
        whole.take(minute)
    return whole


def _compare(phases: Sequence[list[Phase]], nearest: int) -> None:
    """Print each figure beside the clients and alone, of the `nearest` minutes to each change."""
    busy, idle = phases[1::2], phases[::2]
    every = [minute for phase in busy for minute in phase]
    print(f"\nall minutes: {_together('beside the clients', every).line()}")
    print(
        f"memory of the server, each minute: {', '.join(f'{one.memory[0]:.0f}' for one in every)}"
    )
    beside, alone = [], []
    for before, during, after in zip(idle[:-1], busy, idle[1:], strict=True):
        beside += [*during[:nearest], *during[-nearest:]]
        alone += [*before[-nearest:], *after[:nearest]]
    of_alone = _together("alone", alone).figures()
    for name, value in _together("beside the clients", beside).figures().items():
        former = of_alone[name]
        more = (value / former - 1) * 100 if former else 0.0
        print(f"{name}: {value:.3f} beside the clients, {former:.3f} alone: {more:+.1f} %")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
