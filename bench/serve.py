"""API and console with 5,000 datasets and 200 clients: time of answers, memory of the server.

The overview is filled without tables, so that requests alone are measured; every five seconds it is
a new one, as after a look at the tables. The clients run in a process of their own, and each asks
for a page, a sorted page, a dataset, the project and the tasks in turn, a second after each answer.
The time of the server is that of its header `Server-Timing`, and its processor time that of its
process. `POLYNYA_BENCH_MINUTES` sets how long the clients ask: 1 by default.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import socket
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import httpx
import uvicorn
from typing_extensions import override

from polynya.lake.read.inspect import DatasetStatus
from polynya.server.access.control import AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.health import HealthPart, HealthWord
from polynya.server.http_protocol import protocol_settings
from polynya.server.overview import DatasetOverview, Overview, OverviewKeeper
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock

DATASETS, TASKS, CLIENTS = 5_000, 50, 200
SECONDS = 60 * float(os.environ.get("POLYNYA_BENCH_MINUTES", "1"))
PATHS = (
    "/api/v1/datasets?limit=50",
    "/api/v1/datasets?limit=50&sort=pending&health=warning",
    "/api/v1/datasets/shop.t{n}",
    "/api/v1/project",
    "/api/v1/tasks",
)
#: What 200 browsers show; each asks for a page, or a part of one, every five seconds.
PAGES = (
    "/console",
    "/console/datasets?sort=pending&health=warning",
    "/console/datasets/shop.t{n}",
    "/console/tasks",
    "/console/tasks/task{t}",
)
_PAUSES: dict[tuple[str, ...], float] = {PATHS: 1.0, PAGES: 5.0}
_STATUS = DatasetStatus(
    dataset="shop.t0",
    suspended=None,
    suspended_where=None,
    copied_to="000",
    copied_at="2026-11-29T08:00:00+00:00",
    applied_to="000",
    applied_at="2026-11-29T08:00:00+00:00",
    last_apply_reason="10 rows",
    last_apply_seconds=1.0,
    applies=1,
    pending_rows=0,
    pending_bytes=0,
    pending_files=0,
    pending_age_seconds=None,
    current_rows=1_000,
    retained_rows=0,
    retained_bytes=0,
    retained_since=None,
    freshness_seconds=1.0,
    rows_in=1_000,
    rows_out=1_000,
    rows_filtered=0,
    rows_quarantined=0,
    counters={},
    conflicts={},
    epoch=1,
    owner="bench",
)


def main() -> None:
    """Serve and ask; print milliseconds of the server and as the clients see them, and MB."""
    with tempfile.TemporaryDirectory() as name:
        listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        context = multiprocessing.get_context("fork")
        server = context.Process(target=_serve, args=(Path(name), listening), daemon=True)
        server.start()
        listening.close()
        try:
            for title, paths in (("the API", PATHS), ("pages of the console", PAGES)):
                _measure(title, url, paths, server.pid)
        finally:
            server.terminate()
            server.join()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def _measure(title: str, url: str, paths: tuple[str, ...], process: int | None) -> None:
    ask(url, paths, 5.0)
    memory, used = [resident(process)], processor_seconds(process)
    answers: dict[str, list[Took]] = defaultdict(list)
    for seconds in _parts(SECONDS):
        for path, took in ask(url, paths, seconds).items():
            answers[path] += took
        memory.append(resident(process))
    used = processor_seconds(process) - used
    print(f"{title}, {CLIENTS} clients, a request every {_PAUSES[paths]:g} s of each")
    for path, found in answers.items():
        print(f"  {path}: {_line(found)}")
    every = list(itertools.chain(*answers.values()))
    print(f"  all: {_line(every)}")
    print(f"  {used * 1000 / len(every):.2f} ms of processor time for an answer")
    print(f"  memory after 5 s and each minute: {', '.join(f'{one:.0f}' for one in memory)} MB")


class Took(NamedTuple):
    """Milliseconds of an answer."""

    server: float
    client: float


def _parts(seconds: float) -> Iterator[float]:
    """Minutes, and what is left."""
    while seconds > 0:
        yield min(60.0, seconds)
        seconds -= 60


def _serve(folder: Path, listening: socket.socket) -> None:
    (folder / "polynya.yml").write_text(
        "apiVersion: polynya/v1\nkind: project\nname: bench\n"
        "targets:\n  local: {landing: ./landing, warehouse: ./warehouse}\n"
    )
    (folder / "tasks").mkdir()
    serve_in(folder, listening)


def serve_in(folder: Path, listening: socket.socket, looks: bool = False) -> None:  # noqa: FBT001, FBT002 - the target of a process
    """Serve a project until the process ends, with the datasets of the bench added to its own.

    With `looks` the server looks at the tables of the project, too, as it does at others.
    """
    tasks = [f"task{number}" for number in range(TASKS)]
    for task in tasks:
        (folder / "tasks" / f"{task}.yml").write_text(
            f"apiVersion: polynya/v1\nkind: storage\nname: {task}\nschema: {task}\n"
            "landing: {path: in, format: json}\n"
            "datasets:\n  - {name: t, keys: [id], sequence_by: [at]}\n"
        )
    state = ServerState(folder, None, SystemClock())
    state.__dict__["overview"] = _FilledOverview(state, tasks, looks=looks)
    app = app_of(state)
    guard(app, AccessSettings())
    state.overview.start()
    uvicorn.Server(uvicorn.Config(app, log_config=None, **protocol_settings())).run([listening])


class _FilledOverview(OverviewKeeper):
    """An overview whose looks find the same each time, and the tables of the project."""

    def __init__(self, state: ServerState, tasks: list[str], *, looks: bool) -> None:
        super().__init__(state.project, state.clock)
        #: Looks at the tables of the project; a request sees them together with the others.
        self._own = OverviewKeeper(state.project, state.clock) if looks else None
        late = HealthPart("apply", HealthWord.WARNING, "copies wait for the apply: 10 files")
        names = [f"shop.t{number}" for number in range(DATASETS)]
        found = {
            name: DatasetOverview(
                name,
                tasks[number % TASKS],
                HealthWord.HEALTHY if number % 5 else HealthWord.WARNING,
                () if number % 5 else (late,),
                replace(_STATUS, dataset=name, pending_rows=number),
                {},
                {f"c{column}": "string" for column in range(20)},
                ("c0",),
            )
            for number, name in enumerate(names)
        }
        self._project, self._found, self._at = state.project(), found, state.clock

    @override
    def look(self) -> None:
        own: Mapping[str, DatasetOverview] = {}
        if self._own is not None:
            self._own.look()
            own = self._own.newest().datasets
        self._newest = Overview(self._at.now(), self._project, {**self._found, **own})


def ask(
    url: str,
    paths: tuple[str, ...],
    seconds: float,
    *,
    clients: int = CLIENTS,
    pause: float | None = None,
) -> dict[str, list[Took]]:
    """How long each answer took, by path; a client pauses for `pause` seconds after an answer."""
    waits = _PAUSES[paths] if pause is None else pause
    return asyncio.run(_ask(url, paths, seconds, clients, waits))


async def _ask(
    url: str, paths: tuple[str, ...], seconds: float, clients: int, pause: float
) -> dict[str, list[Took]]:
    times: dict[str, list[Took]] = defaultdict(list)
    limits = httpx.Limits(max_connections=clients)
    transport = httpx.AsyncHTTPTransport(limits=limits, retries=20)
    async with httpx.AsyncClient(base_url=url, transport=transport, timeout=60) as client:
        while True:
            try:
                await client.get(paths[3])
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.1)
        ends = time.monotonic() + seconds

        async def one(number: int) -> None:
            await asyncio.sleep(number / clients * pause)
            for turn in itertools.count(number):
                if time.monotonic() >= ends:
                    return
                path = paths[turn % len(paths)]
                began = time.perf_counter()
                answer = await client.get(path.format(n=turn % DATASETS, t=turn % TASKS))
                answer.raise_for_status()
                _, _, server = answer.headers["server-timing"].partition("dur=")
                times[path].append(Took(float(server), (time.perf_counter() - began) * 1000))
                await asyncio.sleep(pause)

        await asyncio.gather(*(one(number) for number in range(clients)))
    return times


def _line(found: list[Took]) -> str:
    parts = []
    for name, times in zip(Took._fields, zip(*found, strict=True), strict=True):
        cuts = quantiles(times, n=100)
        parts.append(f"{name} p50 {cuts[49]:.1f}, p95 {cuts[94]:.1f}, p99 {cuts[98]:.1f} ms")
    return f"{len(found)} answers, {'; '.join(parts)}"


def resident(process: int | None) -> float:
    """The memory of a process in MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def processor_seconds(process: int | None) -> float:
    """The processor time of a process, of both kinds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
