"""The function that tells nodes what landed: one record for a batch, which nodes can read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from polynya.cluster.gossip.messages import LandedHint
from polynya.cluster.gossip.records import read_record
from polynya_constructs.functions.wake import hints


class Aws:
    """The document of a cluster's leader, and a stream that keeps what is put."""

    def __init__(self, *prefixes: str, readable: bool = True) -> None:
        self.document = {"v": 1, "bucket": "landing", "prefixes": prefixes}
        self.readable = readable
        self.records: list[bytes] = []
        self.asked: dict[str, Any] = {}

    def client(self, _service: str, config: object = None) -> Aws:
        return self

    def get_object(self, **_: Any) -> dict[str, Any]:
        if not self.readable:
            raise PermissionError("AccessDenied: not authorized to perform s3:ListBucket")
        return {"Body": io.BytesIO(json.dumps(self.document).encode())}

    def put_record(self, *, Data: bytes, **asked: Any) -> None:
        self.asked = asked
        self.records.append(Data)

    def told(self) -> list[Any]:
        """The records as a node of the cluster reads them."""
        return [read_record(record, "shop") for record in self.records]


def landed(key: str, bucket: str = "landing") -> dict[str, Any]:
    """The event of S3."""
    return {"detail": {"bucket": {"name": bucket}, "object": {"key": key, "size": 700}}}


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Runs the function of a new process for batches of events; returns its last answer."""

    def forget() -> None:
        for each in (hints._kinesis, hints._s3, hints._own_landing):
            each.cache_clear()

    def runs(aws: Aws, *batches: list[dict[str, Any]]) -> str:
        forget()
        monkeypatch.setattr("boto3.client", aws.client)
        answer = ""
        for batch in batches:
            messages = [{"body": json.dumps(event)} for event in batch]
            answer = hints.handle({"Records": messages}, None)["action"]
        return answer

    monkeypatch.setenv("GROUP_NAME", "shop")
    monkeypatch.setenv("LANDING_BUCKET", "landing")
    monkeypatch.setenv("CONFIGURATION_BUCKET", "configuration")
    monkeypatch.setenv("OWN_LANDING_KEY", "coordination/shop/landing")
    monkeypatch.setenv("STREAM_ARN", "arn:aws:kinesis:eu-west-1:123456789012:stream/load")
    yield runs
    forget()


def test_nodes_read_which_of_their_prefixes_objects_landed_at(
    function: Callable[..., str],
) -> None:
    aws = Aws("orders/", "my users/", "web/")

    function(aws, [landed("orders/a"), landed("orders/b"), landed("my+users/c"), landed("else/d")])

    (hint,) = aws.told()
    assert isinstance(hint, LandedHint)
    assert hint.starts == {"orders/", "my users/"}
    assert aws.asked["StreamARN"].endswith(":stream/load")


def test_each_batch_is_a_record_of_its_own_number(function: Callable[..., str]) -> None:
    aws = Aws("orders/")

    function(aws, [landed("orders/a")], [landed("orders/b")])

    first, second = aws.told()
    assert (first.sender, second.seq - first.seq) == (second.sender, 1)


@pytest.mark.parametrize(
    "event", [landed("web/a"), landed("orders/a", "tasks"), {"detail": None}, {"source": "x"}]
)
def test_nothing_is_told_of_what_is_for_nobody_here(
    event: dict[str, Any], function: Callable[..., str]
) -> None:
    aws = Aws("orders/")

    assert function(aws, [event]).startswith("none: ")
    assert aws.records == []


def test_until_a_leader_has_written_the_folders_of_all_objects_are_told(
    function: Callable[..., str],
) -> None:
    aws = Aws(readable=False)

    function(aws, [landed("orders/2026/a"), landed("b")])

    (hint,) = aws.told()
    assert hint.starts == {"orders/2026/", ""}


def test_a_hundred_thousand_objects_of_a_thousand_datasets_are_small_records(
    function: Callable[..., str],
) -> None:
    aws = Aws(*(f"orders{number}/{'é' * 200}/" for number in range(1000)))
    keys = [f"orders{number % 1000}/{'é' * 200}/{number}" for number in range(100_000)]
    events = [landed(key) for key in keys]

    function(aws, *(events[start : start + 4000] for start in range(0, len(events), 4000)))

    assert len(aws.records) == 25
    assert max(map(len, aws.records)) < 1000
    assert [hint.starts for hint in aws.told()] == [{""}] * 25


def test_a_few_long_beginnings_fill_no_record_that_nodes_refuse(
    function: Callable[..., str],
) -> None:
    aws = Aws(*(f"{number}{'x' * 1000}/" for number in range(64)))

    function(aws, [landed(f"{number}{'x' * 1000}/a") for number in range(64)])

    (hint,) = aws.told()
    assert hint.starts == {""}
