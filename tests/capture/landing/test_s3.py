"""Landing into S3, whose answers get lost: what is there decides, and nothing lands twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from polynya.capture.landing.log import CaptureLog
from polynya.capture.source import Access
from polynya.capture.wire import WorkerSettings
from polynya.capture.worker.capture import Capture
from polynya.model.config.aws import AwsAccess
from polynya.model.errors import ConflictError, DependencyError
from polynya.model.names import S3Location
from polynya.store.aws.clients import client
from polynya.store.aws.s3 import S3ObjectStore
from polynya.store.clock import Retry
from polynya.testing.fakes import FakeClock
from tests.aws import REGION, aws_server
from tests.capture.deadly_store import folded, landed_values
from tests.capture.stand_in import StandIn, StandInEngines

BUCKET = "acme-landing"
CUT = ConnectionClosedError(endpoint_url="https://acme-landing.s3.amazonaws.com")
ERROR_500 = ClientError(
    {"Error": {"Code": "InternalError"}, "ResponseMetadata": {"HTTPStatusCode": 500}}, "PutObject"
)


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    with aws_server(BUCKET) as endpoint:
        yield client("s3", AwsAccess(region=REGION, endpoint=endpoint))


@dataclass
class FailingPuts:
    """A client of which one put fails, and those after it if it is `lasting`.

    Attributes:
        at: the so-manieth put.
        error: how it fails.
        lost: it is written all the same, only its answer is lost.
    """

    s3: Any
    at: int
    error: Exception
    lost: bool
    lasting: bool = False
    puts: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.s3, name)

    def put_object(self, **given: Any) -> Any:
        self.puts += 1
        if self.puts == self.at or (self.lasting and self.puts > self.at):
            if self.lost and self.puts == self.at:
                self.s3.put_object(**given)
            raise self.error
        return self.s3.put_object(**given)


def a_store(s3: Any, folder: str) -> S3ObjectStore:
    retry = Retry(deadline=2, clock=FakeClock())
    return S3ObjectStore(S3Location(BUCKET, folder), AwsAccess(), s3=s3, retry=retry)


def capture(database: StandIn, store: S3ObjectStore) -> None:
    """Take what there is, and end."""
    access = Access("postgresql", "127.0.0.1", 1, "shop", "me", "secret")
    settings = WorkerSettings(
        "shop", "once", access, "/nowhere", "shop", ("*",), parallel=2, chunk_rows=4,
        roll_seconds=0.0,
    )  # fmt: skip
    second = count()
    Capture(
        settings, database, CaptureLog(store, "shop"), StandInEngines(), lambda *_, **__: None,
        now=lambda: datetime(2026, 1, 1, second=next(second) % 60, tzinfo=UTC),
        monotonic=lambda: 0.0, writer=uuid4().hex,
    ).run()  # fmt: skip


def a_database() -> StandIn:
    rows = {f"public.t{n}": {key: f"first {key}" for key in range(10)} for n in range(2)}
    database, written = StandIn(rows), count()

    def write() -> None:
        if (n := next(written)) < 5:
            database.commit(("u", "public.t0", n, f"u{n}"), ("c", "public.t1", 100 + n, "new"))

    database.between = write
    return database


@pytest.mark.parametrize("lost", [False, True])
def test_a_table_without_key_lands_once_in_an_object_of_its_own(s3: Any, *, lost: bool) -> None:
    database, folder = StandIn({"public.t": dict.fromkeys(range(10), "x")}), uuid4().hex
    database.keyless = {"public.t"}

    capture(database, a_store(FailingPuts(s3, 3, CUT, lost), folder))

    values = landed_values(a_store(s3, folder), "shop")
    assert sorted(one["after"]["id"] for one in values) == [*range(10)]


def assert_landed_once(s3: Any, folder: str, database: StandIn) -> None:
    values = landed_values(a_store(s3, folder), "shop")
    assert folded(values) == database.rows
    streamed = [
        (value["transaction"]["id"], value["transaction"]["total_order"])
        for value in values
        if value.get("transaction")
    ]
    loaded = [
        (value["source"]["table"], value["after"]["id"]) for value in values if value["op"] == "r"
    ]
    assert len(streamed) == len(set(streamed))
    assert len(loaded) == len(set(loaded))


@pytest.mark.parametrize("error", [CUT, ERROR_500], ids=["cut", "500"])
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_put_that_fails_for_a_moment_lands_once_whether_it_was_written_or_not(
    s3: Any, at: int, error: Exception, *, lost: bool
) -> None:
    database, folder = a_database(), uuid4().hex

    capture(database, a_store(FailingPuts(s3, at, error, lost), folder))
    capture(database, a_store(s3, folder))

    assert_landed_once(s3, folder, database)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("at", [2, 3, 5])
def test_after_a_landing_zone_that_went_away_what_is_there_decides(
    s3: Any, at: int, *, lost: bool
) -> None:
    database, folder = a_database(), uuid4().hex
    failing = FailingPuts(s3, at, ERROR_500, lost, lasting=True)
    with pytest.raises(DependencyError):
        capture(database, a_store(failing, folder))

    capture(database, a_store(s3, folder))
    capture(database, a_store(s3, folder))

    assert_landed_once(s3, folder, database)


def test_another_captures_batch_is_not_taken_for_our_own_after_a_lost_answer(s3: Any) -> None:
    """Both begin at the same moment with the same settings: only their names differ."""
    database, folder = a_database(), uuid4().hex

    class Overtaken(FailingPuts):
        def put_object(self, **given: Any) -> Any:
            if self.puts == 0:
                capture(StandIn({"public.t0": {}}), a_store(s3, folder))
            return super().put_object(**given)

    with pytest.raises(ConflictError):
        capture(database, a_store(Overtaken(s3, 1, CUT, lost=False), folder))
