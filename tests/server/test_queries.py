"""Queries of the API: their limits end a statement that runs, forms of answers, plans. No JVM."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet

from polynya.model.errors import OperationError
from polynya.model.types import parse_type
from polynya.query.embedded import STATEMENT_LIMITS, answer_here
from polynya.query.statement_stop import StatementStop, current_stop
from polynya.server.access.control import AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.running_queries import MOST_OF_PERSON, QueryLimits
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import write_project
from tests.server.listening import listening

CRM = """apiVersion: polynya/v1
kind: registered
name: crm
tables:
  - {name: numbers, parquet: numbers, keys: [n]}
"""
#: Minutes on any machine: each row of 6,000 with each and each.
ENDLESS = (
    "SELECT count(*) AS c FROM crm.numbers a JOIN crm.numbers b ON a.same = b.same "
    "JOIN crm.numbers c ON b.same = c.same WHERE a.n > b.n AND b.n > c.n"
)
ROWS = 6_000
ARROW, CSV = "application/vnd.apache.arrow.stream", "text/csv"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> ServerState:
    folder = write_project(tmp_path_factory.mktemp("queries"), crm=CRM)
    (folder / "numbers").mkdir()
    numbers = pa.table(
        {"n": pa.array(range(ROWS), pa.int64()), "same": [1] * ROWS, "name": ['é, "x"'] * ROWS}
    )
    parquet.write_table(numbers, folder / "numbers" / "1.parquet")
    return ServerState(folder, None, SystemClock())


@pytest.fixture(scope="module")
def client(state: ServerState) -> Iterator[TestClient]:
    with TestClient(app_of(state), raise_server_exceptions=False) as client:
        yield client


def asked(client: TestClient, sql: str, accept: str = "*/*", **more: Any) -> Any:
    return client.post("/api/v1/queries", json={"sql": sql, **more}, headers={"Accept": accept})


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def ends_soon(began: float) -> bool:
    return time.monotonic() - began < 20


def running(state: ServerState) -> bool:
    """Wait until a query runs."""
    deadline = time.monotonic() + 30
    while not state.queries.of("local") and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(state.queries.of("local"))


def test_a_statement_of_minutes_ends_at_its_time(client: TestClient) -> None:
    began = time.monotonic()

    answer = asked(client, ENDLESS, seconds=0.5)

    assert code(answer) == (422, "POLYNYA-SRV-100")
    assert ends_soon(began)
    # Its database is not given to the next statement half stopped.
    assert asked(client, "SELECT max(n) AS m FROM crm.numbers").json()["rows"] == [{"m": ROWS - 1}]


def test_a_statement_of_minutes_is_cancelled_by_its_id(
    client: TestClient, state: ServerState
) -> None:
    answers: list[Any] = []
    began = time.monotonic()
    asking = threading.Thread(
        target=lambda: answers.append(asked(client, ENDLESS, id="my-query-1", seconds=300))
    )
    asking.start()
    assert running(state)

    (shown,) = client.get("/api/v1/queries").json()["items"]
    twice = asked(client, "SELECT 1 AS a", id="my-query-1")
    cancelled = client.delete("/api/v1/queries/my-query-1")
    asking.join(60)

    assert (shown["id"], shown["sql"]) == ("my-query-1", ENDLESS)
    assert code(twice) == (409, "POLYNYA-SRV-104")
    assert cancelled.status_code == 204
    assert code(answers[0]) == (422, "POLYNYA-SRV-102")
    assert ends_soon(began)
    assert code(client.delete("/api/v1/queries/my-query-1")) == (404, "POLYNYA-SRV-001")


def test_a_client_that_closes_its_connection_cancels(state: ServerState) -> None:
    app = app_of(state)
    guard(app, AccessSettings())

    async def ask(port: int) -> None:
        async with httpx.AsyncClient(base_url=f"http://localhost:{port}") as remote:
            sent = asyncio.ensure_future(
                remote.post("/api/v1/queries", json={"sql": ENDLESS, "seconds": 300}, timeout=300)
            )
            assert await asyncio.to_thread(running, state)
            sent.cancel()

    with listening(app) as port:
        began = time.monotonic()
        asyncio.run(ask(port))
        while state.queries.of("local") and ends_soon(began):
            time.sleep(0.01)

        assert state.queries.of("local") == []


def test_an_answer_that_takes_too_much_memory_is_ended(client: TestClient) -> None:
    wide = "SELECT a.n, a.name, b.n AS m FROM crm.numbers a JOIN crm.numbers b ON a.same = b.same"

    answer = asked(client, wide, ARROW, limit=1_000_000, megabytes=1)

    assert code(answer) == (422, "POLYNYA-SRV-101")


def test_an_answer_comes_as_json_as_arrow_and_as_csv(client: TestClient) -> None:
    sql = "SELECT n, name FROM crm.numbers WHERE n < 3 ORDER BY n"

    as_json = asked(client, sql, limit=2).json()
    arrow = asked(client, sql, f"text/html, {ARROW};q=0.9", limit=2)
    text = asked(client, sql, CSV)

    assert as_json["more"] is True
    rows = pa.ipc.open_stream(arrow.content).read_all()
    assert rows.to_pylist() == as_json["rows"] == [{"n": n, "name": 'é, "x"'} for n in (0, 1)]
    assert arrow.headers["polynya-more"] == "true"
    assert text.headers["polynya-more"] == "false"
    assert text.text.splitlines() == ['"n","name"', *(f'{n},"é, ""x"""' for n in (0, 1, 2))]
    assert code(asked(client, sql, "text/html")) == (422, "POLYNYA-SRV-002")
    assert code(asked(client, sql, f"{CSV};q=0")) == (422, "POLYNYA-SRV-002")


def test_each_person_has_few_queries_at_a_time(state: ServerState) -> None:
    limits = QueryLimits(60, 1)
    with (
        state.queries.running("ann", "SELECT 1", limits, is_shared=True),
        state.queries.running("ann", "SELECT 1", limits, is_shared=True),
        state.queries.running("max", "SELECT 1", limits, is_shared=True),
    ):
        assert MOST_OF_PERSON == 2
        with (
            pytest.raises(OperationError) as refused,
            state.queries.running("ann", "SELECT 1", limits, is_shared=True),
        ):
            pass
        with pytest.raises(Exception, match="no running query"):
            state.queries.cancel(state.queries.of("ann")[0].id, "max")
    assert refused.value.code == "POLYNYA-SRV-103"
    assert state.queries.of("ann") == []


def test_a_plan_says_which_engine_answers_and_what_is_read(client: TestClient) -> None:
    def plan(sql: str) -> Any:
        return client.post("/api/v1/queries/explain", json={"sql": sql}).json()

    assert plan("SELECT a.n FROM crm.numbers a JOIN crm.numbers b ON a.n = b.n") == {
        "engine": "embedded",
        "reason": None,
        "views": {"crm.numbers": ["n"]},
    }
    left = plan("SELECT java_method('java.lang.Math', 'abs', n) AS x FROM crm.numbers")
    assert (left["engine"], left["views"]) == ("spark", {})
    assert left["reason"]
    assert plan("DROP TABLE crm.numbers")["code"].startswith("POLYNYA-QRY-")


def test_a_stop_ends_the_reading_of_a_view_too() -> None:
    """A stop that comes while rows are read, before any database is asked."""
    stop = StatementStop()

    class Slow:
        name, keys, columns = "s.v", (), {"n": parse_type("bigint")}

        def rows(self, columns: Any, limits: Any) -> pa.RecordBatchReader:
            stop.stop(OperationError("POLYNYA-SRV-102", "stopped"))
            current_stop().check()
            raise AssertionError("it goes on")

    with pytest.raises(OperationError, match="stopped"), stop.running():
        answer_here("SELECT n FROM s.v", lambda _: Slow(), limit=None, limits=STATEMENT_LIMITS)
    assert current_stop() is not stop
