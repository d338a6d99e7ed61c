"""The file of an index: sorted keys with their rows as one Arrow batch, and a digest of it all.

A process that opens a file computes the digest once. A file that was lost, cut off, changed, or is
of another data file, key or version is never used. It is written under another name and renamed, so
that nobody sees a part, and mapped into memory, so that it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from polynya.lake.apply.local.keys.sorted_rows import SortedRows

#: Of the layout, and of the order of Arrow that the rows have.
VERSION: Final = 1
SUFFIX, SCRATCH = ".keys", ".building-"
_NAME: Final = b"polynya.key-index"
_CHUNK, _DIGEST_BYTES = 1 << 20, 32


class UnusableError(Exception):
    """An index is not used; the text says why, as what follows its name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What an index is of: a data file, and the ids and types of its columns in the index.

    `keys` are compared in this order, `kept` are values that go with the place of a row.
    """

    file: str
    size_bytes: int
    rows: int
    keys: tuple[tuple[int, str], ...]
    kept: tuple[tuple[int, str], ...]

    @property
    def text(self) -> bytes:
        """All of it, with the version."""
        parts = [VERSION, self.file, self.size_bytes, self.rows, self.keys, self.kept]
        return json.dumps(parts).encode()

    @property
    def name(self) -> str:
        """Of the file of the index."""
        return hashlib.blake2b(self.text, digest_size=16).hexdigest() + SUFFIX


@dataclass(frozen=True, slots=True)
class Opened:
    """An index whose content was checked, while its file has this `signature`."""

    index: SortedRows
    signature: Sequence[int]


def write_index(folder: Path, identity: Identity, index: SortedRows) -> None:
    """Write an index whole, or nothing. Raises OSError."""
    with _scratch(folder) as (stream, scratch):
        batch = _batch(identity, index)
        with pa.ipc.new_file(stream, batch.schema) as writer:
            writer.write_batch(batch)
        stream.flush()
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        digest = _digest(stream, size)
        stream.seek(0, os.SEEK_END)
        stream.write(digest)
        stream.flush()
        os.fsync(stream.fileno())
        scratch.replace(folder / identity.name)


def open_index(folder: Path, identity: Identity) -> Opened:
    """Open an index and check all of it. Raises UnusableError."""
    path = folder / identity.name
    try:
        status = path.stat()
        # Closed at once: the bytes stay mapped, and thousands of indexes hold no file open.
        with pa.memory_map(str(path)) as mapped:
            content = mapped.read_buffer()
        after = path.stat()
    except FileNotFoundError as error:
        raise UnusableError("is gone") from error
    except (OSError, pa.ArrowException) as error:
        raise UnusableError(f"cannot be read: {error}") from error
    if _signature(status) != _signature(after):
        raise UnusableError("was replaced just now")
    if not is_private(status):
        raise UnusableError("can be changed by others")
    return Opened(_index(_checked(content), identity), _signature(status))


def is_as_opened(folder: Path, identity: Identity, opened: Opened) -> bool:
    """Whether the file of an index is still the one that was checked."""
    try:
        return _signature((folder / identity.name).stat()) == opened.signature
    except OSError:
        return False


def is_private(status: os.stat_result) -> bool:
    """Whether only this user can change something."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _batch(identity: Identity, index: SortedRows) -> pa.RecordBatch:
    names = [*(f"key{number}" for number in range(len(index.keys))), *index.rows.schema.names]
    columns = [*index.keys, *index.rows.columns]
    schema = pa.schema(
        [pa.field(name, one.type) for name, one in zip(names, columns, strict=True)],
        metadata={_NAME: identity.text},
    )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _index(content: pa.Buffer, identity: Identity) -> SortedRows:
    try:
        reader = pa.ipc.open_file(pa.BufferReader(content))
        if (reader.schema.metadata or {}).get(_NAME) != identity.text:
            raise UnusableError("is of another data file, key or version")
        batch = reader.get_batch(0)
    except (pa.ArrowException, IndexError) as error:
        raise UnusableError(f"cannot be read: {error}") from error
    if batch.num_rows != identity.rows:
        raise UnusableError(f"has {batch.num_rows:,} rows")
    keys = len(identity.keys)
    rows = pa.RecordBatch.from_arrays(batch.columns[keys:], batch.schema.names[keys:])
    return SortedRows(tuple(batch.columns[:keys]), rows)


def _checked(content: pa.Buffer) -> pa.Buffer:
    """The content of a file without its digest."""
    size = len(content) - _DIGEST_BYTES
    if size <= 0:
        raise UnusableError("is cut off")
    digest = hashlib.blake2b(memoryview(content)[:size], digest_size=_DIGEST_BYTES).digest()
    if content.slice(size).to_pybytes() != digest:
        raise UnusableError("is not what was written")
    return content.slice(0, size)


def _digest(stream: BinaryIO, size: int) -> bytes:
    """The digest of the next so many bytes."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    while size:
        chunk = stream.read(min(size, _CHUNK))
        if not chunk:
            break
        digest.update(chunk)
        size -= len(chunk)
    return digest.digest()


def _signature(status: os.stat_result) -> Sequence[int]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode)


@contextmanager
def _scratch(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file that only this user reads; removed when it was not renamed."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=SCRATCH)
    try:
        with os.fdopen(handle, "w+b") as stream:
            yield stream, Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
