"""Open the object store, source store or record stream that a text names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.stream_sources import SOURCE_FOLDER_MISSING
from polynya.model.names import Location, parse_location
from polynya.store.clock import Clock, Retry
from polynya.store.object_store import LocalObjectStore, ObjectStore
from polynya.store.streams import ObjectStream, RecordStream

#: A late heartbeat is useless: the next one follows within ten seconds.
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
        # It is made with the first record: a folder that cannot be made must not prevent the start.
        return LocalObjectStore(place)
    from polynya.store.aws.s3 import S3ObjectStore

    return S3ObjectStore(place, access, retry=Retry(deadline=_RETRY_SECONDS))


class SourceStore(ObjectStore, Protocol):
    """An object store whose parts can be listed."""

    def folders(self, start: str) -> Iterator[str]:
        """Paths of folders that begin with `start`, up to and with the next `/`, in order."""
        ...


class LocalSourceStore(LocalObjectStore):
    """A local folder that others write. Linked folders are not entered."""

    def folders(self, start: str) -> Iterator[str]:
        """The folders that begin with `start`."""
        folder, _, _ = start.rpartition("/")
        for path in self._entries(f"{folder}/" if folder else ""):
            if path.endswith("/") and path.startswith(start):
                yield path

    def _entries(self, folder: str, after: str = "") -> Sequence[str]:
        if not self.root.is_dir():
            raise SOURCE_FOLDER_MISSING(where=str(self.root))
        return super()._entries(folder, after)


def source_at(place: Location, access: AwsAccess) -> SourceStore:
    """A local folder, which may be missing, or a place in a bucket."""
    if isinstance(place, Path):
        return LocalSourceStore(place)
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.s3 import S3SourceStore

    return S3SourceStore(place, access)


def store_at(
    place: Location, access: AwsAccess, *, retry_seconds: float | None = None
) -> ObjectStore:
    """A local folder, which is made if need be, or a place in a bucket.

    `retry_seconds`: for how long a request to a bucket is repeated; default: a minute.
    """
    if isinstance(place, Path):
        place.mkdir(parents=True, exist_ok=True)
        return LocalObjectStore(place)
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.s3 import S3ObjectStore

    retry = None if retry_seconds is None else Retry(deadline=retry_seconds)
    return S3ObjectStore(place, access, retry=retry)
