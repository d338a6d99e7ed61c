"""What Kinesis answers about shards, as the port has it: its errors, its pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError
from polynya.store.aws.kinesis import KinesisShards
from polynya.store.clock import Retry
from polynya.store.shards import BusyError, ExpiredError, Shard
from polynya.testing.fakes import FakeClock
from tests.store.test_kinesis import Answers, refusal

MADE = datetime(2026, 11, 1, tzinfo=UTC)


def shards(client: Answers, seconds: float = 0.0) -> KinesisShards:
    retry = Retry(deadline=seconds, clock=FakeClock())
    return KinesisShards(AwsAccess(), retry=retry, kinesis=client)


def summary(status: str = "ACTIVE") -> dict[str, Any]:
    values = {
        "StreamStatus": status,
        "StreamCreationTimestamp": MADE,
        "RetentionPeriodHours": 24,
    }
    return {"StreamDescriptionSummary": values}


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (refusal("ExpiredIteratorException"), ExpiredError, "POLYNYA-STR-046"),
        (refusal("ProvisionedThroughputExceededException"), BusyError, "POLYNYA-STR-047"),
        (refusal("KMSThrottlingException"), BusyError, "POLYNYA-STR-047"),
        (refusal("AccessDeniedException"), DependencyError, "POLYNYA-AWS-002"),
        (refusal("InternalFailure", 500), DependencyError, "POLYNYA-AWS-003"),
        (EndpointConnectionError(endpoint_url="x"), DependencyError, "POLYNYA-AWS-003"),
    ],
)
def test_errors_have_their_meaning(error: Exception, kind: type[Exception], code: str) -> None:
    with pytest.raises(DependencyError) as caught:
        shards(Answers(error)).read("clicks", "i")

    assert (type(caught.value), caught.value.code) == (kind, code)
    assert caught.value.state
    assert caught.value.fix


def test_a_busy_stream_is_asked_again_and_an_old_place_is_not() -> None:
    page = {"Records": [], "NextShardIterator": "j", "MillisBehindLatest": 1500}
    busy = refusal("ProvisionedThroughputExceededException")

    found = shards(Answers(busy, busy, page), seconds=60).read("clicks", "i")

    assert (found.following, found.behind) == ("j", timedelta(seconds=1.5))
    with pytest.raises(ExpiredError):
        shards(Answers(refusal("ExpiredIteratorException"), page), seconds=60).read("clicks", "i")


def test_a_stream_has_its_shards_of_all_pages_with_parents_and_ends() -> None:
    open_one = {"ShardId": "c", "ParentShardId": "a", "AdjacentParentShardId": "b"}
    client = Answers(
        summary(),
        {
            "Shards": [
                {
                    "ShardId": "a",
                    "SequenceNumberRange": {"EndingSequenceNumber": "9"},
                    "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "127"},
                },
            ],
            "NextToken": "t",
        },
        {"Shards": [{**open_one, "SequenceNumberRange": {"StartingSequenceNumber": "1"}}]},
    )

    found = shards(client).stream("clicks")

    assert found is not None
    assert (found.created, found.keeps) == (MADE, timedelta(days=1))
    assert found.shards == (Shard("a", closed=True, hashes=(0, 127)), Shard("c", ("a", "b")))
    assert client.asked[-1] == {"NextToken": "t"}


def test_a_stream_that_is_missing_or_just_being_made_is_none() -> None:
    assert shards(Answers(refusal("ResourceNotFoundException"))).stream("clicks") is None
    assert shards(Answers(summary("CREATING"))).stream("clicks") is None
    assert shards(Answers(summary("DELETING"))).stream("clicks") is None


def test_places_are_asked_for_as_kinesis_calls_them() -> None:
    client = Answers(*({"ShardIterator": "i"} for _ in range(3)))
    asked = shards(client)

    asked.after("clicks", "s", "17")
    asked.since("clicks", "s", None)
    asked.since("clicks", "s", MADE)

    kinds = [one["ShardIteratorType"] for one in client.asked]
    assert kinds == ["AFTER_SEQUENCE_NUMBER", "TRIM_HORIZON", "AT_TIMESTAMP"]
    assert client.asked[0]["StartingSequenceNumber"] == "17"
    assert client.asked[2]["Timestamp"] == MADE
