"""What Kinesis answers, as the port has it: its errors, its pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError
from polynya.store.aws.kinesis import KinesisStream
from polynya.store.clock import Retry
from polynya.store.streams import IteratorLostError, StreamRecord, ThrottledError
from polynya.testing.fakes import FakeClock

ARN = "arn:aws:kinesis:eu-central-1:123456789012:stream/workload"


class Answers:
    """A client that gives prepared answers and remembers what it was asked."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self.answers, self.asked = list(answers), list[dict[str, Any]]()

    def __getattr__(self, _name: str) -> Callable[..., dict[str, Any]]:
        return self._answer

    def _answer(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def stream(client: Answers, name: str = "workload") -> KinesisStream:
    return KinesisStream(name, AwsAccess(), retry=Retry(deadline=0.0), kinesis=client)


def refusal(code: str, status: int = 400) -> ClientError:
    parts = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(parts, "GetRecords")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (refusal("ExpiredIteratorException"), IteratorLostError, "POLYNYA-AGT-040"),
        (refusal("InvalidArgumentException"), IteratorLostError, "POLYNYA-AGT-040"),
        (refusal("ProvisionedThroughputExceededException"), ThrottledError, "POLYNYA-AGT-041"),
        (refusal("LimitExceededException"), ThrottledError, "POLYNYA-AGT-041"),
        (refusal("KMSThrottlingException"), ThrottledError, "POLYNYA-AGT-041"),
        (refusal("ResourceNotFoundException"), DependencyError, "POLYNYA-AGT-042"),
        (refusal("AccessDeniedException"), DependencyError, "POLYNYA-AWS-002"),
        (refusal("InternalFailure", 500), DependencyError, "POLYNYA-AWS-003"),
        (EndpointConnectionError(endpoint_url="x"), DependencyError, "POLYNYA-AWS-003"),
    ],
)
def test_errors_have_their_meaning(error: Exception, kind: type[Exception], code: str) -> None:
    with pytest.raises(DependencyError) as caught:
        stream(Answers(error)).read("i")

    assert (type(caught.value), caught.value.code) == (kind, code)
    assert caught.value.state
    assert caught.value.fix


@pytest.mark.parametrize("action", ["put", "shards", "newest"])
def test_a_missing_right_is_named(action: str) -> None:
    asked = stream(Answers(refusal("AccessDeniedException")))
    with pytest.raises(DependencyError) as caught:
        if action == "put":
            asked.put("k", b"")
        elif action == "shards":
            asked.shards()
        else:
            asked.newest("s")

    right = {"put": "PutRecord", "shards": "ListShards", "newest": "GetShardIterator"}[action]
    assert f"kinesis:{right} on the stream workload" in str(caught.value.fix)


def test_a_put_that_is_throttled_is_tried_again() -> None:
    client = Answers(refusal("ProvisionedThroughputExceededException"), {})
    retry = Retry(deadline=5.0, clock=FakeClock())

    KinesisStream("workload", AwsAccess(), retry=retry, kinesis=client).put("k", b"1")

    assert client.asked == [{"StreamName": "workload", "PartitionKey": "k", "Data": b"1"}] * 2


def _shard(name: str, **ends: str) -> dict[str, Any]:
    return {"ShardId": name, "SequenceNumberRange": {"StartingSequenceNumber": "1", **ends}}


def test_open_shards_are_listed_page_by_page() -> None:
    client = Answers(
        {"Shards": [_shard("a"), _shard("b", EndingSequenceNumber="9")], "NextToken": "t"},
        {"Shards": [_shard("c")]},
    )

    assert stream(client).shards() == ("a", "c")
    assert client.asked == [
        {"StreamName": "workload", "ShardFilter": {"Type": "AT_LATEST"}},
        {"NextToken": "t"},
    ]


def test_a_page_has_its_records_and_where_to_go_on() -> None:
    records = [{"PartitionKey": "k", "Data": b"1", "SequenceNumber": "5"}]
    client = Answers(
        {"Records": records, "NextShardIterator": "j", "MillisBehindLatest": 1500},
        {"Records": [], "MillisBehindLatest": 0},
    )

    page, last = stream(client, ARN).read("i"), stream(client, ARN).read("j")

    assert (page.records, page.following, page.behind_seconds) == (
        (StreamRecord("k", b"1"),),
        "j",
        1.5,
    )
    assert (last.records, last.following) == ((), None)
    assert client.asked[0] == {"ShardIterator": "i", "StreamARN": ARN}
