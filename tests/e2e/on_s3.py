"""What only S3 can show; `test_lake_on_s3.py` runs it with a warehouse on a server of that name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from bench.bytes import counted_requests
from polynya.engine.errors import as_polynya
from polynya.engine.runner import units
from polynya.engine.unit import TimeSlice
from polynya.formats.loads import LoadLimits
from polynya.lake.apply import fast
from polynya.lake.apply.collected import Collected
from polynya.lake.copy import load_writer
from polynya.lake.iceberg.reading import stored_file
from polynya.model.loader import load_project
from polynya.observe import engine as events
from polynya.store.aws import data_objects
from tests.aws import REGION, client
from tests.lab.lab import Feed, Lab, drop, put

BY_TASKS = LoadLimits(least_bytes=1, split_bytes=2000)
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your rate</Message></Error>"


@pytest.fixture
def endpoint(shared_project: Path) -> str:
    address = load_project(shared_project).target.aws.endpoint
    assert address is not None
    return address


@pytest.fixture
def arrow_asks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    """What Arrow asks the server for; a test may let it answer 503."""
    from werkzeug.serving import WSGIRequestHandler

    monkeypatch.setattr(data_objects, "_ATTEMPTS", 2)
    data_objects._filesystem.cache_clear()
    asked, answer = Requests(), WSGIRequestHandler.run_wsgi

    def run_wsgi(handler: Any) -> None:
        if "aws-sdk-cpp" in handler.headers.get("User-Agent", "") and asked.fails(handler):
            handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
            handler.send_response(503)
            handler.send_header("Content-Length", str(len(SLOW_DOWN)))
            handler.end_headers()
            handler.wfile.write(SLOW_DOWN)
        else:
            answer(handler)

    monkeypatch.setattr(WSGIRequestHandler, "run_wsgi", run_wsgi)
    yield asked
    data_objects._filesystem.cache_clear()


class Requests:
    """Requests of Arrow: those that were made, and which of them fail."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.failing: Callable[[str], bool] = lambda _request: False

    def fails(self, handler: Any) -> bool:
        """Whether this one does, by its method and its path."""
        request = f"{handler.command} {handler.path}"
        self.made.append(request)
        return self.failing(request)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each apply, whether it took no query."""
    taken: list[bool] = []
    fold = fast.fold_in_memory

    def told(*parts: Any) -> Collected | None:
        found = fold(*parts)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(fast, "fold_in_memory", told)
    return taken


def as_in_another_process() -> None:
    """Forget what was read and written."""
    data_objects._kept = data_objects._Kept()
    stored_file.cache_clear()


NAMES = [(1, "Ann"), (2, "Ben"), (3, "Cid"), *((n, f"user {n}") for n in range(4, 21))]


def some_users(lab: Lab, count: int = 3) -> Feed:
    users = lab.feed()
    users.apply(*(put(n, n, name=name) for n, name in NAMES[:count]))
    return users


READ_ONCE = ["GET", "HEAD"]
#: So many rows that an apply does not rewrite their file for one deleted row.
MANY = 20


def test_an_apply_asks_for_what_it_does_not_know(
    lab: Lab, ways: list[bool], arrow_asks: Requests
) -> None:
    users = some_users(lab, MANY)
    arrow_asks.made.clear()

    users.apply(put(1, 21, name="Anna"), drop(2, 22))

    assert sorted(users.current("id", "name")) == [(1, "Anna"), *NAMES[2:MANY]]
    assert ways == [True, True]
    # What this process wrote it need not read.
    assert {one.split()[0] for one in arrow_asks.made} == {"PUT"}
    as_in_another_process()
    arrow_asks.made.clear()

    users.apply(put(3, 23, name="Cyd"))

    assert sorted(users.current("id", "name")) == [(1, "Anna"), (3, "Cyd"), *NAMES[3:MANY]]
    assert ways == [True, True, True]
    # The events, Current, Prior with the delete, and files of deletes: each once, whole.
    reads = [one for one in arrow_asks.made if not one.startswith("PUT")]
    paths = {one.split()[1] for one in reads}
    assert sorted(reads) == sorted(f"{method} {path}" for path in paths for method in READ_ONCE)
    assert any("-deletes" in path for path in paths)
    assert 4 <= len(paths) <= 7


@pytest.mark.parametrize(
    ("failing", "count"), [("everything", 4), ("deletes", MANY), ("rows", MANY), ("rows", 4)]
)
def test_a_store_that_stops_answering_costs_a_query(
    lab: Lab,
    ways: list[bool],
    arrow_asks: Requests,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    count: int,
) -> None:
    """From the first request on, at the files of deletes, or at the rows after the footers.

    Half of four users change, so the apply wants to rewrite their file. It cannot read that file,
    and leaves it as it is.
    """
    users = some_users(lab, count)
    users.apply(drop(count, 31))
    users.copy(put(1, 32, name="Anna"), drop(2, 33))
    as_in_another_process()
    arrow_asks.made.clear()
    arrow_asks.failing = {
        "everything": lambda request: not request.startswith("PUT"),
        "deletes": lambda request: request.startswith("GET") and "-deletes" in request,
        # Of each object the first range holds the footer.
        "rows": lambda request: request.startswith("GET") and arrow_asks.made.count(request) > 1,
    }[failing]
    if failing == "rows":
        monkeypatch.setattr(data_objects, "_SMALL_BYTES", 0)

    users.run("always")

    assert sorted(users.current("id", "name")) == [(1, "Anna"), *NAMES[2 : count - 1]]
    assert ways[-1] is False


def test_an_object_that_is_gone_is_an_error_and_no_row(
    lab: Lab, ways: list[bool], endpoint: str
) -> None:
    users = some_users(lab)
    users.copy(put(1, 4, name="Anna"))
    as_in_another_process()
    s3, snapshot = client("s3", endpoint), users.table().state.snapshot
    [current] = users.table().table.files("current", snapshot)
    key = current.path.removeprefix("s3://acme-lake/")
    kept = s3.get_object(Bucket="acme-lake", Key=key)["Body"].read()
    s3.delete_object(Bucket="acme-lake", Key=key)

    with pytest.raises(Exception) as failed:
        users.run("always")
    assert as_polynya(failed.value).code == "POLYNYA-AWS-003"
    assert users.table().state.apply.applies == 1

    s3.put_object(Bucket="acme-lake", Key=key, Body=kept)
    users.run("always")
    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben"), (3, "Cid")]


@pytest.mark.parametrize("writes", [0, 3, 5])
def test_a_write_that_s3_refuses_commits_nothing_of_its_step(
    lab: Lab, arrow_asks: Requests, writes: int
) -> None:
    """The table is taken over with two files; rows, deletes and states of the step follow."""
    users = some_users(lab)
    users.land(put(1, 4, name="Anna"))
    arrow_asks.made.clear()
    arrow_asks.failing = lambda request: (
        request.startswith("PUT") and sum(one.startswith("PUT") for one in arrow_asks.made) > writes
    )

    with pytest.raises(Exception) as failed:
        users.run("always")
    assert as_polynya(failed.value).code == "POLYNYA-AWS-003"
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert users.table().state.apply.applies == 1

    arrow_asks.failing = lambda _request: False
    users.run("always")
    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben"), (3, "Cid")]


def test_a_small_step_makes_a_few_requests(lab: Lab) -> None:
    """Java's and Arrow's; the landing zone is a folder here."""
    users = lab.feed(history=False)
    (unit,) = units(lab.context("always"), [users.task])
    made = []
    with counted_requests() as requests:
        for sequence in range(1, 7):
            users.land(*(put(key, sequence, name="x") for key in range(sequence % 3, 50, 3)))
            requests.taken()
            while unit.step(TimeSlice()).more:
                pass
            made.append(Counter(request.what for request in requests.taken()))

    # The first ones take the table over and give it columns.
    for step in made[2:]:
        assert step["PUT"] <= 12, made
        assert step["GET"] + step["HEAD"] <= 9, made
        assert step["LIST"] == 0, made
        assert step["Glue GetTable"] <= 4, made
        assert step["Glue UpdateTable"] == 1, made


def loaded(lab: Lab, *files: list[dict[str, Any]]) -> Feed:
    users = lab.feed(initial_load="load/*.json", apply_as_truncates=None)
    users.applier = {"load_limits": BY_TASKS}
    for number, records in enumerate(files):
        users.land(*records, file=f"load/{number}.json")
    users.run("never")
    return users


def objects(endpoint: str, users: Feed) -> set[str]:
    """Data files with rows in the folder of the table, live or not."""
    folder = f"tables/{users.internal.replace('.', '.db/')}/data/"
    pages = client("s3", endpoint).get_paginator("list_objects_v2")
    found = pages.paginate(Bucket="acme-lake", Prefix=folder)
    return {f"s3://acme-lake/{one['Key']}" for page in found for one in page.get("Contents", [])}


def test_tasks_write_a_load_that_another_reader_sees(
    lab: Lab, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    direct_of = load_writer.direct_of
    monkeypatch.setattr(
        "polynya.lake.copy.load.direct_of",
        lambda *parts, **how: written.append(how := direct_of(*parts, **how)) or how,
    )
    half = [[{"id": n, "name": f"u{n}"} for n in range(a, a + 500)] for a in (0, 500)]

    users = loaded(lab, *half)

    assert [event for event in lab.events if isinstance(event, events.LoadProgress)]
    assert written[0].files == data_objects.S3Files(REGION, endpoint)
    options = {"glue.endpoint": endpoint, "s3.endpoint": endpoint, "client.region": REGION}
    table = GlueCatalog("any", **options).load_table(tuple(users.internal.split(".")))
    rows = table.scan("hdr__partition = 'current'", ("id", "name")).to_arrow()
    assert sorted(rows.column("id").to_pylist()) == list(range(1000))
    bounds = [task.file.lower_bounds for task in table.scan("id < 100").plan_files()]
    assert bounds
    assert len(bounds) < len(list(table.scan("id >= 0").plan_files()))
    assert {task.file.file_path for task in table.scan().plan_files()} <= objects(endpoint, users)


def test_what_a_load_wrote_in_vain_is_removed(lab: Lab, endpoint: str) -> None:
    users = loaded(lab, [{"id": 1, "name": "a", "seq": 1}], [{"id": 1, "name": "b", "seq": 2}])

    assert [event.reason for event in lab.events if isinstance(event, events.LoadInBatches)] == [
        "a key is there twice"
    ]
    catalog = GlueCatalog(
        "any", **{"glue.endpoint": endpoint, "s3.endpoint": endpoint, "client.region": REGION}
    )
    table = catalog.load_table(tuple(users.internal.split(".")))
    live = {task.file.file_path for task in table.scan().plan_files()}
    states = {path for path in objects(endpoint, users) - live if _is_state(endpoint, path)}
    assert objects(endpoint, users) == live | states


def _is_state(endpoint: str, path: str) -> bool:
    """Whether a file holds a state and no row: those that a later commit replaced stay."""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    body = client("s3", endpoint).get_object(Bucket=bucket, Key=key)["Body"].read()
    return b"hdr__key_hash" not in body
