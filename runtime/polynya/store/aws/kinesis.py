"""A record stream in Amazon Kinesis, read by polling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.record_stream import Page, Record, iterator_lost, throttled
from polynya.store.retry import Retry

T = TypeVar("T")

_LOST: Final = frozenset({"ExpiredIteratorException", "InvalidArgumentException"})
_THROTTLED: Final = frozenset(
    {
        "KMSThrottlingException",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
    }
)
_MISSING: Final = "ResourceNotFoundException"


class KinesisStream:
    """A Kinesis data stream, by name or ARN. Usable from many threads.

    Only `put` tries again what may pass: who reads decides on the pace himself.
    """

    def __init__(
        self,
        name: str,
        access: AwsAccess,
        *,
        retry: Retry | None = None,
        kinesis: Any | None = None,
    ) -> None:
        self._name = name
        self._named = {"StreamARN" if name.startswith("arn:") else "StreamName": name}
        self._retry = retry or Retry(deadline=5.0)
        self._kinesis: Any = kinesis or client("kinesis", access)

    def put(self, key: str, data: bytes) -> None:
        """Add a record of at most 1 MiB."""
        self._asked(
            "put the record",
            "kinesis:PutRecord",
            lambda: self._retry.run(
                lambda: self._kinesis.put_record(**self._named, PartitionKey=key, Data=data),
                lambda error: is_transient(error) or code_of(error) in _THROTTLED,
            ),
        )

    def shards(self) -> tuple[str, ...]:
        """Names of the open shards."""
        found: list[str] = []
        asked: dict[str, Any] = {**self._named, "ShardFilter": {"Type": "AT_LATEST"}}
        while True:
            page = self._asked(
                "list the shards",
                "kinesis:ListShards",
                lambda asked=asked: self._kinesis.list_shards(**asked),  # type: ignore[misc]
            )
            # Stand-ins ignore the filter; what is closed has an end.
            found += [
                str(one["ShardId"])
                for one in page["Shards"]
                if "EndingSequenceNumber" not in one["SequenceNumberRange"]
            ]
            if not page.get("NextToken"):
                return tuple(found)
            # The token stands for the name of the stream too, and Kinesis wants it alone.
            asked = {"NextToken": page["NextToken"]}

    def newest(self, shard: str) -> str:
        """An iterator at LATEST; it is of use for five minutes."""
        answer = self._asked(
            "begin to read a shard",
            "kinesis:GetShardIterator",
            lambda: self._kinesis.get_shard_iterator(
                **self._named, ShardId=shard, ShardIteratorType="LATEST"
            ),
        )
        return str(answer["ShardIterator"])

    def read(self, iterator: str) -> Page:
        """What follows an iterator."""
        by_arn = {key: name for key, name in self._named.items() if key == "StreamARN"}
        answer = self._asked(
            "read the records",
            "kinesis:GetRecords",
            lambda: self._kinesis.get_records(ShardIterator=iterator, **by_arn),
        )
        return Page(
            tuple(
                Record(str(one["PartitionKey"]), bytes(one["Data"])) for one in answer["Records"]
            ),
            answer.get("NextShardIterator") or None,
            answer.get("MillisBehindLatest", 0) / 1000,
        )

    def _asked(self, action: str, grant: str, ask: Callable[[], T]) -> T:
        resource = f"stream {self._name}"
        try:
            return ask()
        except AWS_ERRORS as error:
            code = code_of(error)
            if code in _THROTTLED:
                raise throttled(resource, str(error)) from error
            if code in _LOST and action == "read the records":
                raise iterator_lost(resource, str(error)) from error
            if code == _MISSING:
                raise _no_stream(resource, str(error)) from error
            raise explained(
                error, action=action, resource=resource, grant=f"{grant} on the {resource}"
            ) from error


def _no_stream(resource: str, said: str) -> DependencyError:
    return DependencyError(
        "POLYNYA-AGT-042",
        "there is no such workload stream in this region",
        where=resource,
        why=said,
        state="nodes do not hear each other; no data and no ownership depends on it",
        fix="check `--stream` and the region; the node looks for the stream and goes on by itself",
    )
