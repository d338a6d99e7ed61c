"""The record stream that a text names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from polynya.model.config.aws import AwsAccess
from polynya.model.contract.location import Location, parse_location
from polynya.store.clock import Clock
from polynya.store.object_store import LocalObjectStore, ObjectStore
from polynya.store.object_stream import ObjectStream
from polynya.store.record_stream import RecordStream
from polynya.store.retry import Retry

#: What is told late is of no use: heartbeats follow each other every ten seconds.
_RETRY_SECONDS: Final = 5.0


def stream_at(name: str, access: AwsAccess, clock: Clock) -> RecordStream:
    """A Kinesis stream by name or ARN; where there is a slash, a folder or `s3://BUCKET/PREFIX`.

    Nothing is asked yet.

    Raises:
        ConfigError: no such place can be (POLYNYA-CFG-009, 011, 018).
    """
    if "/" in name and not name.startswith("arn:"):
        place = parse_location(name, Path.cwd(), "--stream")
        return ObjectStream(_store(place, access), clock)
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.kinesis import KinesisStream

    return KinesisStream(name, access)


def _store(place: Location, access: AwsAccess) -> ObjectStore:
    if isinstance(place, Path):
        # It is made with the first record: a folder that cannot be is no reason not to start.
        return LocalObjectStore(place)
    from polynya.store.aws.s3 import S3ObjectStore

    return S3ObjectStore(place, access, retry=Retry(deadline=_RETRY_SECONDS))
