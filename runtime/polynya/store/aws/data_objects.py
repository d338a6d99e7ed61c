"""Data files of tables in S3, through Arrow's own client.

`S3Files` holds no credentials, because it is sent to tasks in other processes: each process looks
for them where it reads or writes objects.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from functools import cache
from threading import Lock
from typing import Any, Final

import pyarrow as pa
from typing_extensions import override

from polynya.store.data_files import DataFiles, ListedFile

#: Ranges of objects that are asked for at the same time: an answer takes some 30 ms to begin.
_PARALLEL_REQUESTS: Final = 16
#: As many as Iceberg's own client makes.
_ATTEMPTS: Final = 6
_CONNECT_TIMEOUT_SECONDS: Final = 5
#: Without a byte in either direction.
_IDLE_TIMEOUT_SECONDS: Final = 20
#: An object up to this size is fetched whole, by one request, and kept.
_SMALL_BYTES: Final = 1 << 20
_KEPT_BYTES: Final = 128 << 20
_KEPT_OBJECTS: Final = 5000
#: Pauses before a bucket that refused is tried again: the first one, doubled up to the longest.
_FIRST_PAUSE_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class _Tried:
    """What came of requesting an object of a bucket.

    Attributes:
        refusal: why it failed, None when the object was there.
        at: when, in monotonic seconds.
        pause: seconds until a refused bucket is tried again.
    """

    refusal: str | None = "it was not tried yet"
    at: float = float("-inf")
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class S3Files(DataFiles):
    """Objects in S3.

    Attributes:
        region: of the buckets.
        endpoint: of a server that stands in for S3, None for S3.
        virtual_hosts: whether that server has a host name per bucket.
    """

    region: str
    endpoint: str | None = None
    virtual_hosts: bool = False

    @property
    @override
    def readers(self) -> int:
        return _PARALLEL_REQUESTS

    @property
    @override
    def far(self) -> bool:
        return True

    @override
    def holds(self, location: str) -> bool:
        """Whether a location names an object whose key Arrow leaves as it is."""
        scheme, _, path = location.partition("://")
        return scheme in {"s3", "s3a", "s3n"} and "//" not in path

    @override
    def refusal(self, location: str) -> str | None:
        """Asks once for each bucket: Arrow looks for credentials in fewer places than Java does.

        A bucket that gave nothing is tried again after growing pauses: the service that has the
        credentials of the machine may have been slow for a moment; and a try may cost half a
        minute.
        """
        path = _object(location)
        bucket, now = (self, path.partition("/")[0]), time.monotonic()
        tried = _tried.get(bucket, _Tried())
        if tried.refusal is not None and now - tried.at >= tried.pause:
            pause = min(max(2 * tried.pause, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
            tried = _tried[bucket] = _Tried(self._answer(path), now, pause)
        return tried.refusal

    def _answer(self, path: str) -> str | None:
        try:
            _filesystem(self).open_input_file(path).close()
        except OSError as error:
            # One that found no credentials may keep asking the metadata service in the wrong way.
            _filesystem.cache_clear()
            return f"Arrow does not reach s3://{path}: {error}"
        return None

    @override
    @contextmanager
    def open(self, location: str) -> Iterator[Any]:
        """Open an object; one that was read or written before costs no request."""
        path = _object(location)
        kept = _kept.get((self, path))
        if kept is None:
            file = _filesystem(self).open_input_file(path)
            small = file.size() <= _SMALL_BYTES
            kept = file.read_buffer() if small else file
            _kept.put((self, path), kept, len(kept) if small else 0)
        # One handle serves many threads: it is read by position, and readers do not close it.
        yield pa.BufferReader(kept) if isinstance(kept, pa.Buffer) else kept

    @override
    def put(self, location: str, data: bytes) -> None:
        """Write a small object in one request."""
        with self.create(location) as file:
            file.write(data)
        if len(data) <= _SMALL_BYTES:
            _kept.put((self, _object(location)), pa.py_buffer(data), len(data))

    @override
    def create(self, location: str) -> Any:
        """Return a stream that sends parts of a large object while it is written."""
        return _filesystem(self).open_output_stream(_object(location), compression=None)

    @override
    def list(self, folder: str) -> Iterator[ListedFile]:
        # Start-up time: the AWS SDK of Arrow.
        from pyarrow.fs import FileSelector, FileType

        scheme, _, path = folder.rstrip("/").partition("://")
        below = FileSelector(path, allow_not_found=True, recursive=True)
        for one in _filesystem(self).get_file_info(below):
            if one.type == FileType.File:
                changed = one.mtime.astimezone(UTC)
                yield ListedFile(f"{scheme}://{one.path}", one.size, changed)


def _object(location: str) -> str:
    return location.partition("://")[2]


@cache
def _filesystem(settings: S3Files) -> Any:
    # Start-up time: the AWS SDK of Arrow.
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    pa.set_io_thread_count(max(pa.io_thread_count(), _PARALLEL_REQUESTS))
    return S3FileSystem(
        region=settings.region,
        endpoint_override=settings.endpoint,
        force_virtual_addressing=settings.virtual_hosts,
        connect_timeout=_CONNECT_TIMEOUT_SECONDS,
        request_timeout=_IDLE_TIMEOUT_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        # One request for a small object instead of the three of a multipart upload.
        allow_delayed_open=True,
    )


@dataclass(slots=True)
class _Kept:
    """Small objects, and handles of large ones: those that were used last."""

    _found: OrderedDict[tuple[S3Files, str], tuple[Any, int]] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: tuple[S3Files, str]) -> Any | None:
        with self._lock:
            found = self._found.get(key)
            if found is None:
                return None
            self._found.move_to_end(key)
            return found[0]

    def put(self, key: tuple[S3Files, str], value: Any, size: int) -> None:
        with self._lock:
            _, before = self._found.pop(key, (None, 0))
            self._found[key] = value, size
            self._bytes += size - before
            while self._bytes > _KEPT_BYTES or len(self._found) > _KEPT_OBJECTS:
                _, (_, gone) = self._found.popitem(last=False)
                self._bytes -= gone


_kept = _Kept()
#: What this process learned from each bucket.
_tried: dict[tuple[S3Files, str], _Tried] = {}
