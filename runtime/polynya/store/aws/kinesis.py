"""Amazon Kinesis: a record stream read by polling, and all records shard by shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.cluster import WORKLOAD_STREAM_MISSING
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.clock import Retry
from polynya.store.shards import (
    ITERATOR_EXPIRED,
    SHARD_BUSY,
    Shard,
    ShardedStream,
    ShardPage,
    ShardRecord,
)
from polynya.store.streams import ITERATOR_LOST, THROTTLED, Page, StreamRecord

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

    Only `put` retries transient errors: a reader decides on its pace itself.
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
                StreamRecord(str(one["PartitionKey"]), bytes(one["Data"]))
                for one in answer["Records"]
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
                raise THROTTLED(where=resource, why=str(error)) from error
            if code in _LOST and action == "read the records":
                raise ITERATOR_LOST(where=resource, why=str(error)) from error
            if code == _MISSING:
                raise WORKLOAD_STREAM_MISSING(where=resource, why=str(error)) from error
            raise explained(
                error, action=action, resource=resource, grant=f"{grant} on the {resource}"
            ) from error


_EXPIRED: Final = "ExpiredIteratorException"
#: What one request gives at most; Kinesis has this limit too.
_MOST_RECORDS: Final = 10_000


class KinesisShards:
    """Streams of one account and region."""

    def __init__(
        self, access: AwsAccess, *, retry: Retry | None = None, kinesis: Any | None = None
    ) -> None:
        self._kinesis: Any = kinesis or client("kinesis", access)
        self._retry = retry or Retry(deadline=20.0)

    def streams(self) -> tuple[str, ...]:
        """The names of all streams."""
        pages = self._pages("list the streams", "kinesis:ListStreams", "streams", "list_streams")
        return tuple(str(name) for page in pages for name in page["StreamNames"])

    def stream(self, name: str) -> ShardedStream | None:
        """A stream as it is now; None also while it is being made or deleted."""
        try:
            found = self._asked(
                "describe the stream",
                "kinesis:DescribeStreamSummary",
                name,
                lambda: self._kinesis.describe_stream_summary(StreamName=name),
            )["StreamDescriptionSummary"]
            if found["StreamStatus"] in {"CREATING", "DELETING"}:
                return None
            pages = self._pages(
                "list the shards", "kinesis:ListShards", name, "list_shards", StreamName=name
            )
            shards = tuple(_shard(shard) for page in pages for shard in page["Shards"])
        except _MissingError:
            return None
        return ShardedStream(
            found["StreamCreationTimestamp"],
            timedelta(hours=float(found["RetentionPeriodHours"])),
            shards,
        )

    def after(self, stream: str, shard: str, number: str) -> str:
        """An iterator for what comes after a record."""
        return self._iterator(
            stream,
            shard,
            ShardIteratorType="AFTER_SEQUENCE_NUMBER",
            StartingSequenceNumber=number,
        )

    def since(self, stream: str, shard: str, moment: datetime | None) -> str:
        """An iterator for what arrived from a moment on."""
        if moment is None:
            return self._iterator(stream, shard, ShardIteratorType="TRIM_HORIZON")
        return self._iterator(stream, shard, ShardIteratorType="AT_TIMESTAMP", Timestamp=moment)

    def read(self, stream: str, iterator: str) -> ShardPage:
        """What follows an iterator."""
        answer = self._asked(
            "read the records",
            "kinesis:GetRecords",
            stream,
            lambda: self._kinesis.get_records(ShardIterator=iterator, Limit=_MOST_RECORDS),
        )
        records = tuple(
            ShardRecord(
                str(one["SequenceNumber"]),
                str(one["PartitionKey"]),
                bytes(one["Data"]),
                one["ApproximateArrivalTimestamp"],
            )
            for one in answer["Records"]
        )
        behind = timedelta(milliseconds=int(answer.get("MillisBehindLatest") or 0))
        return ShardPage(records, answer.get("NextShardIterator") or None, behind)

    def _iterator(self, stream: str, shard: str, **start: Any) -> str:
        answer = self._asked(
            "begin to read a shard",
            "kinesis:GetShardIterator",
            stream,
            lambda: self._kinesis.get_shard_iterator(StreamName=stream, ShardId=shard, **start),
        )
        return str(answer["ShardIterator"])

    def _pages(
        self, action: str, grant: str, resource: str, call: str, **asked: Any
    ) -> Iterator[dict[str, Any]]:
        while True:
            page = self._asked(
                action,
                grant,
                resource,
                lambda asked=asked: getattr(self._kinesis, call)(**asked),  # type: ignore[misc]
            )
            yield page
            if not page.get("NextToken"):
                return
            # The token stands for the name of the stream too, and Kinesis wants it alone.
            asked = {"NextToken": page["NextToken"]}

    def _asked(self, action: str, grant: str, stream: str, ask: Callable[[], T]) -> T:
        resource = f"stream {stream}"
        try:
            return self._retry.run(ask, _passes)
        except AWS_ERRORS as error:
            code = code_of(error)
            if code == _MISSING:
                raise _MissingError from error
            if code == _EXPIRED:
                raise ITERATOR_EXPIRED(where=resource, why=str(error)) from error
            if code in _THROTTLED:
                raise SHARD_BUSY(where=resource, why=str(error)) from error
            raise explained(
                error, action=action, resource=resource, grant=f"{grant} on the {resource}"
            ) from error


class _MissingError(Exception):
    """Raised when there is no such stream or shard."""


def _passes(error: Exception) -> bool:
    """Whether to retry a call here. Stand-ins call an old iterator a server's fault."""
    return code_of(error) != _EXPIRED and (is_transient(error) or code_of(error) in _THROTTLED)


def _shard(found: dict[str, Any]) -> Shard:
    parents = (found.get("ParentShardId"), found.get("AdjacentParentShardId"))
    closed = "EndingSequenceNumber" in found["SequenceNumberRange"]
    keys = found.get("HashKeyRange")
    return Shard(
        str(found["ShardId"]),
        tuple(str(parent) for parent in parents if parent),
        closed,
        None if keys is None else (int(keys["StartingHashKey"]), int(keys["EndingHashKey"])),
    )
