"""The object store in an S3 bucket: ranged reads, and listings by prefix.

S3 accepts any key, but not every key is a valid path. A listing shows a key such as `a//b` as it
is, and opening it is refused by name, so that nobody misses it.

`S3SourceStore` reads a place that others write. Whoever may list only below a prefix gets
"forbidden" from S3 for a missing object, because a request for one object has no prefix. So an
object that is forbidden and not listed counts as missing.
"""

from __future__ import annotations

import io
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeAlias, TypeVar, cast

from botocore.exceptions import ClientError

from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.machine import OBJECT_REPLACED
from polynya.model.errors import DependencyError
from polynya.model.names import S3Location
from polynya.store.aws.clients import (
    AWS_ERRORS,
    client,
    code_of,
    explained,
    is_denied,
    is_transient,
    status_of,
)
from polynya.store.clock import Retry
from polynya.store.object_store import Content, ObjectInfo, checked_path

#: One request of this size costs about as much time as ten of a tenth; most landed files are
#: smaller, and cost one request.
BLOCK_BYTES: Final = 8 << 20
#: A Parquet file is read at its end, then in its middle.
_KEPT_BLOCKS: Final = 3


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of an object, the size of all of it, and a tag of its version."""

    data: bytes
    total: int
    tag: str


#: (first byte, byte after the last, tag of the version or None) → the block
Fetch: TypeAlias = Callable[[int, int, "str | None"], Block]


class BlockReader(io.RawIOBase):
    """Reads an object block by block. Opening it reads the first block.

    Not for several threads. All blocks are of the version of the first one, or `fetch` raises.
    """

    def __init__(self, fetch: Fetch, block_bytes: int = BLOCK_BYTES) -> None:
        self._fetch = fetch
        self._block_bytes = block_bytes
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        first = fetch(0, block_bytes, None)
        self._blocks[0] = first.data
        self._total, self._tag = first.total, first.tag
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Position in bytes."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; costs nothing until the next read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._total}[whence]
        if base + offset < 0:
            raise ValueError(f"negative position {base + offset}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the block of the position reaches; 0 at the end."""
        if self._position >= self._total:
            return 0
        number, inside = divmod(self._position, self._block_bytes)
        view = memoryview(buffer).cast("B")
        piece = self._block(number)[inside : inside + len(view)]
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            start = number * self._block_bytes
            end = min(start + self._block_bytes, self._total)
            self._blocks[number] = self._fetch(start, end, self._tag).data
            if len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]


T = TypeVar("T")

_BUFFER_BYTES: Final = 1 << 20
_MISSING: Final = frozenset({"404", "NoSuchKey", "NotFound"})


class S3ObjectStore:
    """An object store below a prefix of a bucket. Usable from many threads."""

    def __init__(
        self,
        location: S3Location,
        access: AwsAccess,
        *,
        retry: Retry | None = None,
        s3: Any | None = None,
    ) -> None:
        self.location = location
        self._access = access
        self._retry = retry or Retry()
        self._s3: Any = s3 or client("s3", access)
        self._encryption = (
            {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": access.kms_key}
            if access.kms_key
            else {}
        )

    def __reduce__(self) -> tuple[type[S3ObjectStore], tuple[S3Location, AwsAccess]]:
        """Tasks in other processes open clients of their own."""
        return S3ObjectStore, (self.location, self._access)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix`, in path order (S3 lists keys by their bytes)."""
        root = self._root()
        folder = root + (f"{checked_path(prefix)}/" if prefix else "")
        for page in self._pages(folder, prefix):
            yield from _listed(page, root)

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`; a request for each thousand of them."""
        root = self._root()
        asked = {"StartAfter": root + after} if after else {}
        for page in self._pages(root + start, start, **asked):
            yield from _listed(page, root)

    def size(self, path: str) -> int:
        """Size in bytes."""
        found = self._of(path, "read the size", lambda of: self._s3.head_object(**of))
        return int(found["ContentLength"])

    def open(self, path: str) -> BinaryIO:
        """A seekable reader that fetches blocks; all of them are of one version of the object."""
        reader = BlockReader(lambda start, end, tag: self._block(path, start, end, tag))
        return cast("BinaryIO", io.BufferedReader(reader, _BUFFER_BYTES))

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self._of(
            path, "read the object", lambda of: bytes(self._s3.get_object(**of)["Body"].read())
        )

    def read(self, path: str, limit: int) -> Content:
        """The first `limit` bytes; the rest of a larger object is not fetched."""

        def attempt(of: dict[str, str]) -> Content:
            answer = self._s3.get_object(**of)
            with closing(answer["Body"]) as body:
                return Content(bytes(body.read(limit)), _version(answer))

        return self._of(path, "read the object", attempt)

    def put(self, path: str, data: bytes) -> None:
        """Write the object, whole or not at all; replaces."""
        self._of(path, "write the object", lambda of: self._put(of, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the object unless it exists. True when this call created it."""
        return self._put_if(path, data, IfNoneMatch="*")

    def put_file_if_absent(self, path: str, file: BinaryIO) -> bool:
        """Likewise, of a file. False also when it was this call and its answer was lost."""
        return self._put_if(path, file, IfNoneMatch="*")

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        """Write the object if it has this version; what is in its place else stays."""
        return self._put_if(path, data, IfMatch=_etag(version))

    def delete(self, path: str) -> None:
        """Remove the object."""
        self._of(path, "delete the object", lambda of: self._s3.delete_object(**of))

    def delete_if_unchanged(self, path: str, version: str) -> bool:
        """Remove the object if it has this version."""

        def attempt(of: dict[str, str]) -> bool:
            try:
                self._s3.delete_object(**of, IfMatch=_etag(version))
            except ClientError as error:
                # Gone already, be it by an attempt whose answer was lost.
                if code_of(error) in _MISSING or status_of(error) == 404:
                    return True
                if not _failed_condition(error):
                    raise
                return False
            return True

        return self._of(path, "delete the object", attempt)

    def _put_if(self, path: str, data: bytes | BinaryIO, **condition: str) -> bool:
        """Write under a condition. True when this call wrote.

        An attempt whose answer was lost may have written: an object that then holds exactly `data`
        counts as ours. Writers that compete put a name of their own into it.
        """
        attempts = 0

        def attempt(of: dict[str, str]) -> bool:
            nonlocal attempts
            attempts += 1
            try:
                self._put(of, data, **condition)
            except ClientError as error:
                # An object that was to be replaced and is gone is answered with 404.
                if code_of(error) == "NoSuchKey" and "IfMatch" in condition:
                    return False
                if not _failed_condition(error):
                    raise
                return attempts > 1 and isinstance(data, bytes) and self.get(path) == data
            return True

        return self._of(path, "write the object", attempt)

    def _root(self) -> str:
        """How all keys of the store begin."""
        return f"{self.location.prefix}/" if self.location.prefix else ""

    def _pages(self, start: str, shown_as: str, **asked: str) -> Iterator[dict[str, Any]]:
        """The pages of a listing of keys that begin with `start`, one request each."""
        following: dict[str, str] = {}
        while True:
            page = self._page(start, shown_as, {**asked, **following})
            yield page
            if not page.get("IsTruncated"):
                return
            following = {"ContinuationToken": page["NextContinuationToken"]}

    def _page(self, start: str, shown_as: str, asked: Mapping[str, str]) -> dict[str, Any]:
        def attempt() -> dict[str, Any]:
            page: dict[str, Any] = self._s3.list_objects_v2(
                Bucket=self.location.bucket, Prefix=start, **asked
            )
            return page

        return self._call(attempt, "list the objects", shown_as)

    def _put(self, of: dict[str, str], data: bytes | BinaryIO, **condition: str) -> None:
        if not isinstance(data, bytes):
            data.seek(0)
        self._s3.put_object(**of, Body=data, **self._encryption, **condition)

    def _block(self, path: str, start: int, end: int, tag: str | None) -> Block:
        """The bytes `start` to `end` (exclusive) of the version `tag`, else of the newest one."""
        same = {"IfMatch": tag} if tag else {}

        def fetch(of: dict[str, str]) -> Block:
            try:
                answer = self._s3.get_object(**of, Range=f"bytes={start}-{end - 1}", **same)
            except ClientError as error:
                if tag is not None and (status_of(error) == 412 or code_of(error) in _MISSING):
                    raise OBJECT_REPLACED(where=self._where(path)) from error
                if status_of(error) == 416:
                    # No byte of an empty object can be asked for.
                    return Block(b"", start, str(self._s3.head_object(**of)["ETag"]))
                raise
            total = int(answer["ContentRange"].rpartition("/")[2])
            return Block(answer["Body"].read(), total, str(answer["ETag"]))

        return self._of(path, "read the object", fetch)

    def _of(self, path: str, action: str, attempt: Callable[[dict[str, str]], T]) -> T:
        of = {"Bucket": self.location.bucket, "Key": self._key(path)}
        return self._call(lambda: attempt(of), action, path)

    def _call(self, attempt: Callable[[], T], action: str, path: str) -> T:
        try:
            return self._retry.run(attempt, is_transient)
        except AWS_ERRORS as error:
            raise self._meaning(error, action, path) from error

    def _meaning(self, error: Exception, action: str, path: str) -> Exception:
        where = self._where(path)
        if code_of(error) in _MISSING:
            return FileNotFoundError(where)
        bucket = f"arn:aws:s3:::{self.location.bucket}"
        grants = {
            "list the objects": f"s3:ListBucket on {bucket}",
            "write the object": f"s3:PutObject on {self.location.arn()}",
            "delete the object": f"s3:DeleteObject on {self.location.arn()}",
        }
        # Without the right to list, S3 calls an object that is not there forbidden.
        reading = f"s3:GetObject on {self.location.arn()} and s3:ListBucket on {bucket}"
        grant = grants.get(action, reading)
        return explained(error, action=action, resource=where, grant=grant)

    def _where(self, path: str) -> str:
        return f"s3://{self.location.bucket}/{self.location.key(path)}"

    def _key(self, path: str) -> str:
        return self.location.key(str(checked_path(path)))


def _listed(page: Mapping[str, Any], root: str) -> Iterator[ObjectInfo]:
    """The objects of a page of a listing, by their paths below `root`."""
    for entry in page.get("Contents", ()):
        path = entry["Key"].removeprefix(root)
        # Consoles make a folder visible with an empty object of its name.
        if entry["Size"] or not path.endswith("/"):
            yield ObjectInfo(
                path, int(entry["Size"]), _version(entry), _written(entry), _stamp(entry)
            )


def _version(found: Mapping[str, Any]) -> str:
    """The moment of a write, in seconds, and its ETag, as listings and answers give them.

    The same bytes written twice may have the same ETag, but hardly within the same second.
    """
    return f"{int(found['LastModified'].timestamp())} {found['ETag']}"


def _written(found: Mapping[str, Any]) -> float:
    return float(found["LastModified"].timestamp())


def _stamp(found: Mapping[str, Any]) -> int:
    """A number for the ETag, which is the same when the same bytes are written twice."""
    return zlib.crc32(str(found["ETag"]).encode()) & 0xFFFFFF or 1


def _etag(version: str) -> str:
    return version.partition(" ")[2]


def _failed_condition(error: ClientError) -> bool:
    return code_of(error) == "PreconditionFailed" or status_of(error) == 412


class S3SourceStore(S3ObjectStore):
    """An object store below a prefix of a bucket, whose parts can be listed."""

    def __reduce__(self) -> tuple[type[S3ObjectStore], tuple[Any, ...]]:
        """Tasks in other processes open clients of their own."""
        return S3SourceStore, (self.location, self._access)

    def folders(self, start: str) -> Iterator[str]:
        """The folders that begin with `start`; a request for each thousand of them."""
        root = self._root()
        for page in self._pages(root + start, start, Delimiter="/"):
            for entry in page.get("CommonPrefixes", ()):
                yield str(entry["Prefix"]).removeprefix(root)

    def _meaning(self, error: Exception, action: str, path: str) -> Exception:
        if action.startswith("read ") and is_denied(error) and self._is_gone(path):
            return FileNotFoundError(self._where(path))
        return super()._meaning(error, action, path)

    def _is_gone(self, path: str) -> bool:
        try:
            # The path itself is the first of those that begin with it.
            first = next(self.beginning(path), None)
        except DependencyError:
            return False
        return first is None or first.path != path
