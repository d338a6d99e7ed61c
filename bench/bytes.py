"""Where the bytes and the requests of one small step go: each file that it writes, by its kind.

Warehouse, catalog and landing zone are on a server in this process that stands in for S3 and Glue,
so each request is counted, and nothing depends on the load of the machine. Prints the files of the
last step, the means of the counted steps, and the requests of an idle hour.

`python -m bench bytes` has 10,000 rows and 100 events a step; `POLYNYA_BENCH_ROWS`,
`POLYNYA_BENCH_EVENTS` and `POLYNYA_BENCH_HISTORY=1` set others, `POLYNYA_BENCH_ROUNDS` the steps.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq

from bench.floors.records import land_changes, land_load
from bench.floors.tasks import task
from polynya.engine.context import EngineContext, ProcessMemory
from polynya.engine.runner import run_once, units
from polynya.engine.scheduler import TaskGroup, UnitQueue
from polynya.engine.session import start_spark
from polynya.engine.unit import Unit
from polynya.model.config.task import StorageTask
from polynya.model.loader import load_project
from polynya.model.names import S3Location
from polynya.store.aws.s3 import S3ObjectStore
from polynya.testing.fakes import FakeClock

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "10000"))
EVENTS = int(os.environ.get("POLYNYA_BENCH_EVENTS", "100"))
HISTORY = os.environ.get("POLYNYA_BENCH_HISTORY") == "1"
ROUNDS = int(os.environ.get("POLYNYA_BENCH_ROUNDS", "24"))
#: Most that a step of 100 events on 10,000 rows leaves in the warehouse.
FLOOR_BYTES: Final = 60_000
#: The first steps take the table over, and merge no manifests yet.
COUNTED: Final = 8
LANDING, LAKE = "acme-landing", "acme-lake"
_NAME: Final = "orders"
_BEFORE_IDLE: Final = 6 * 3600.0
_GLUE: Final = re.compile(r"AWSGlue\.(\w+)")


@dataclass(frozen=True, slots=True)
class Request:
    """One request: what was asked for, the object, and the bytes that were sent.

    `what` is `PUT`, `GET`, `HEAD`, `LIST`, `DELETE`, or an action of Glue.
    """

    what: str
    path: str
    size_bytes: int = 0


@dataclass(slots=True)
class Requests:
    """The requests that the server answered."""

    seen: list[Request] = field(default_factory=list)

    def taken(self) -> list[Request]:
        """Those since the last call."""
        seen, self.seen = self.seen, []
        return seen


@contextmanager
def counted_requests() -> Iterator[Requests]:
    """Count what servers of this process answer."""
    from werkzeug.serving import WSGIRequestHandler

    requests, real = Requests(), WSGIRequestHandler.log_request

    def log_request(handler: Any, code: Any = "-", size: Any = "-") -> None:
        real(handler, code, size)
        path, _, query = handler.path.partition("?")
        headers, what = handler.headers, str(handler.command)
        action = _GLUE.search(headers.get("X-Amz-Target", ""))
        if action is not None:
            what = f"Glue {action.group(1)}"
        elif "list-type=2" in query or (what == "GET" and path.strip("/").count("/") == 0):
            what = "LIST"
        elif what == "POST" and "delete" in query:
            what = "DELETE"
        size = headers.get("X-Amz-Decoded-Content-Length") or headers.get("Content-Length") or 0
        requests.seen.append(Request(what, path.strip("/"), int(size)))

    WSGIRequestHandler.log_request = log_request  # type: ignore[method-assign,assignment]
    try:
        yield requests
    finally:
        WSGIRequestHandler.log_request = real  # type: ignore[method-assign]


def kind_of(path: str, content: bytes) -> str:
    """What a file of a table is."""
    name = path.rpartition("/")[2]
    if name.endswith(".metadata.json"):
        return "metadata of the table"
    if name.startswith("snap-"):
        return "manifest list"
    if name.endswith(".avro"):
        of = fastavro.reader(io.BytesIO(content)).metadata.get("content")
        return "manifest of deletes" if of == "deletes" else "manifest of data"
    if name.endswith(".stats"):
        return "statistics"
    rows = pq.ParquetFile(io.BytesIO(content))
    names = set(rows.schema_arrow.names)
    if "pos" in names:
        return "position deletes"
    first = rows.read(columns=["hdr__partition"]).column(0)[0].as_py()
    return {"asset_state": "state", "changes": "events", "current": "rows of Current"}.get(
        str(first), f"rows of {first}"
    )


@dataclass(slots=True)
class Lake:
    """A project on a server that stands in for AWS, its engine, and one dataset."""

    endpoint: str
    requests: Requests
    context: EngineContext
    work: Sequence[Unit]
    landed: int = 0

    def land(self, folder: str, files: Sequence[Path]) -> None:
        """Put files into the landing zone of the dataset."""
        for file in files:
            self.context.landing.put(f"{_NAME}/{folder}/{file.name}", file.read_bytes())

    def step(self) -> list[Request]:
        """Copy and apply what has landed; the requests of that."""
        self.requests.taken()
        for failure in run_once(self.context, self.work).failures.values():
            raise failure
        return self.requests.taken()

    def written(self, requests: Sequence[Request]) -> list[tuple[str, int, bool]]:
        """Each file of the warehouse that requests have written: kind, bytes, whether it stays.

        Of a file that the step itself has removed again, the kind is not looked at.
        """
        import boto3

        s3, found = boto3.client("s3", endpoint_url=self.endpoint), []
        for one in requests:
            bucket, _, key = one.path.partition("/")
            if one.what != "PUT" or bucket != LAKE:
                continue
            try:
                content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            except s3.exceptions.NoSuchKey:
                found.append(("removed by the step itself", one.size_bytes, False))
            else:
                found.append((kind_of(key, content), len(content), True))
        self.requests.taken()
        return found

    def idle_hour(self) -> Counter[str]:
        """Requests of an hour in which nothing lands, of a run that continues."""
        clock = FakeClock(self.context.clock.now() + timedelta(minutes=5))
        context = replace(self.context, clock=clock, memory=ProcessMemory())
        queue, group = UnitQueue(), TaskGroup(context, goes_on=True, report=lambda *_: None)
        queue.add(group, units(context, [_task()]), clock.monotonic())
        # Before it is idle, a run opens the table, and maintenance finds what there is to do.
        self._work(queue, clock, _BEFORE_IDLE)
        self.requests.taken()
        self._work(queue, clock, 3600)
        return Counter(one.what for one in self.requests.taken())

    def _work(self, queue: UnitQueue, clock: FakeClock, seconds: float) -> None:
        end = clock.monotonic() + seconds
        while (now := clock.monotonic()) < end:
            taken = queue.take(now)
            if taken is None:
                wait = min(queue.seconds_to_next(now), end - now)
                clock.advance(timedelta(seconds=max(wait, 0.01)))
                continue
            entry, time_slice = taken
            result = entry.unit.step(time_slice)
            if result.error is not None:
                raise result.error
            queue.put_back(entry, result, now)


def _task() -> StorageTask:
    return StorageTask.model_validate(task(_NAME, "parquet", history=HISTORY))


@contextmanager
def lake_in(folder: Path) -> Iterator[Lake]:
    """A lake in servers of this process, with the session of `polynya run`."""
    # Benchmarks run from a checkout, so this one may use what the tests use.
    from tests.aws import REGION, aws_server
    from tests.projects import aws_project, write_project

    with aws_server(LANDING, LAKE, "acme-config") as endpoint, counted_requests() as requests:
        os.environ["AWS_DEFAULT_REGION"] = REGION
        project = load_project(write_project(folder, project=aws_project(endpoint)))
        spark = start_spark(project, long_lived=True)
        try:
            place = project.target.landing
            assert isinstance(place, S3Location)
            context = EngineContext(
                spark=spark,
                landing=S3ObjectStore(place, project.target.aws),
                apply_mode="always",
                target=project.target,
                access=project.target.aws,
            )
            yield Lake(endpoint, requests, context, units(context, [_task()]))
        finally:
            spark.stop()


def measured(folder: Path) -> dict[str, Any]:
    """Load a table, change it step by step, and print what each of the last steps wrote."""
    with lake_in(folder / "project") as lake:
        lake.land("load", land_load(folder / "files", "parquet", rows=ROWS, files=1))
        lake.step()
        written, asked = [], []
        for version in range(1, ROUNDS + 1):
            changes = land_changes(
                folder / "changes", "parquet", rows=ROWS, count=EVENTS, version=version
            )
            lake.land("changes", [changes])
            requests = lake.step()
            if version > ROUNDS - COUNTED:
                written.append(lake.written(requests))
                asked.append(requests)
            changes.unlink()
        _print_files(written[-1])
        means = _means(written)
        _print_means("bytes", means)
        operations = _operations(asked)
        _print_means("requests", operations)
        idle = lake.idle_hour()
        _print_means("requests of an idle hour", idle)
    total = sum(means.values())
    print(
        f"{EVENTS:,} events on {ROWS:,} rows{', history' if HISTORY else ''}: {total / 1000:,.1f} "
        f"kB a step in {sum(map(len, written)) / COUNTED:.1f} files, "
        f"{sum(operations.values()):.1f} requests (means of {COUNTED}); "
        f"{sum(idle.values())} requests in an idle hour"
    )
    stays = sum(size for step in written for _, size, stays in step if stays) / COUNTED
    verdict = "reached" if stays <= FLOOR_BYTES else "**not reached**"
    print(
        f"floor: {FLOOR_BYTES / 1000:.0f} kB that stay, goal 20; {stays / 1000:.1f} kB: {verdict}"
    )
    return {"bytes": means, "requests": operations, "idle": idle, "stays": stays}


def _means(steps: Sequence[Sequence[tuple[str, int, bool]]]) -> dict[str, float]:
    sizes: Counter[str] = Counter()
    for step in steps:
        for kind, size, _ in step:
            sizes[kind] += size
    return {kind: size / len(steps) for kind, size in sizes.most_common()}


def _operations(steps: Sequence[Sequence[Request]]) -> dict[str, float]:
    seen: Counter[str] = Counter()
    for step in steps:
        for one in step:
            seen[one.what if one.what.startswith("Glue") else f"{one.what} {_place(one)}"] += 1
    return {what: count / len(steps) for what, count in seen.most_common()}


def _place(request: Request) -> str:
    """What kind of object a request is about."""
    bucket, name = request.path.partition("/")[0], request.path.rpartition("/")[2]
    if bucket == LANDING:
        return "landed file" if request.what == "GET" else "landing zone"
    if name.startswith("snap-"):
        return "manifest list"
    endings = {".metadata.json": "metadata of the table", ".avro": "manifest", ".parquet": "file"}
    return next((kind for ending, kind in endings.items() if name.endswith(ending)), "others")


def _print_files(files: Sequence[tuple[str, int, bool]]) -> None:
    print("\nthe files of the last step:\n\n| file | bytes |\n|---|---|")
    for kind, size, _ in files:
        print(f"| {kind} | {size:,} |")
    print(f"| **all** | **{sum(size for _, size, _ in files):,}** |")


def _print_means(what: str, means: Mapping[str, float]) -> None:
    print(f"\n| {what}, mean | a step |\n|---|---|".replace("mean | a step", "mean | count"))
    for name, value in means.items():
        print(f"| {name} | {value:,.1f} |")
    print(f"| **all** | **{sum(means.values()):,.1f}** |\n", flush=True)


def main() -> None:
    """Measure, and print; `POLYNYA_BENCH_JSON` names a file for the figures."""
    with tempfile.TemporaryDirectory() as folder:
        figures = measured(Path(folder))
    if path := os.environ.get("POLYNYA_BENCH_JSON"):
        Path(path).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
