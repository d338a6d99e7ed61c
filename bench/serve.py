"""The API with 5,000 datasets and 200 clients: time per answer, and memory of the server.

The overview is filled without tables, so that requests alone are measured. The clients run in a
process of their own, and each asks for a page, a sorted page, a dataset, the project and the tasks
in turn, a second after each answer.
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
from dataclasses import replace
from pathlib import Path
from statistics import quantiles

import httpx
import uvicorn

from polynya.lake.read.inspect import DatasetStatus
from polynya.server.app import app_of
from polynya.server.health import HealthPart, HealthWord
from polynya.server.overview import DatasetOverview, Overview, OverviewKeeper
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock

DATASETS, TASKS, CLIENTS, SECONDS = 5_000, 50, 200, 60.0
_PATHS = (
    "/api/v1/datasets?limit=50",
    "/api/v1/datasets?limit=50&sort=pending&health=warning",
    "/api/v1/datasets/shop.t{n}",
    "/api/v1/project",
    "/api/v1/tasks",
)
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
    """Serve and ask for a minute; print milliseconds as the clients see them, and MB."""
    with tempfile.TemporaryDirectory() as name:
        listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        context = multiprocessing.get_context("fork")
        server = context.Process(target=_serve, args=(Path(name), listening), daemon=True)
        server.start()
        listening.close()
        try:
            asyncio.run(_ask(url, 5.0))
            before = _resident(server.pid)
            times = asyncio.run(_ask(url, SECONDS))
            after = _resident(server.pid)
        finally:
            server.terminate()
            server.join()
    for path, found in times.items():
        print(f"{path}: {_line(found)}")
    print(f"all: {_line(list(itertools.chain(*times.values())))}")
    print(f"memory {before:.0f} MB after 5 s, {after:.0f} MB at the end")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def _serve(folder: Path, listening: socket.socket) -> None:
    tasks = [f"task{number}" for number in range(TASKS)]
    (folder / "polynya.yml").write_text(
        "apiVersion: polynya/v1\nkind: project\nname: bench\n"
        "targets:\n  local: {landing: ./landing, warehouse: ./warehouse}\n"
    )
    (folder / "tasks").mkdir()
    for task in tasks:
        (folder / "tasks" / f"{task}.yml").write_text(
            f"apiVersion: polynya/v1\nkind: storage\nname: {task}\nschema: {task}\n"
            "landing: {path: in, format: json}\n"
            "datasets:\n  - {name: t, keys: [id], sequence_by: [at]}\n"
        )
    state = ServerState(folder, None, SystemClock())
    state.__dict__["overview"] = _FilledOverview(state, tasks)
    config = uvicorn.Config(app_of(state), log_config=None, access_log=False, timeout_keep_alive=15)
    uvicorn.Server(config).run([listening])


class _FilledOverview(OverviewKeeper):
    """An overview that was looked at once."""

    def __init__(self, state: ServerState, tasks: list[str]) -> None:
        super().__init__(state.project, state.clock)
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
        self._newest = Overview(state.clock.now(), state.project(), found)


async def _ask(url: str, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of each answer, by path."""
    times: dict[str, list[float]] = defaultdict(list)
    limits = httpx.Limits(max_connections=CLIENTS)
    transport = httpx.AsyncHTTPTransport(limits=limits, retries=20)
    async with httpx.AsyncClient(base_url=url, transport=transport, timeout=60) as client:
        while True:
            try:
                await client.get(_PATHS[3])
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.1)
        ends = time.monotonic() + seconds

        async def ask(number: int) -> None:
            await asyncio.sleep(number / CLIENTS)
            for turn in itertools.count(number):
                if time.monotonic() >= ends:
                    return
                path = _PATHS[turn % len(_PATHS)]
                began = time.perf_counter()
                answer = await client.get(path.format(n=turn % DATASETS))
                answer.raise_for_status()
                times[path].append((time.perf_counter() - began) * 1000)
                await asyncio.sleep(1)

        await asyncio.gather(*(ask(number) for number in range(CLIENTS)))
    return times


def _line(found: list[float]) -> str:
    cuts = quantiles(found, n=100)
    return (
        f"{len(found)} answers, p50 {cuts[49]:.0f} ms, p95 {cuts[94]:.0f} ms, p99 {cuts[98]:.0f} ms"
    )


def _resident(process: int | None) -> float:
    """The memory of a process in MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
