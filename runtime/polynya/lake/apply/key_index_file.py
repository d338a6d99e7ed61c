"""The file of a key index: sorted keys with their rows as one Arrow batch, and a digest.

Keys are compared exactly, column by column, in the order of Arrow. All keys take the steps of a
binary search together, so that a step is a few Arrow kernels, whatever the type of a column.

A process that opens a file computes its digest once, and never uses one that was lost, truncated or
changed, or that belongs to another data file, key or version. A file is written under another name
and renamed, so that nobody sees a part, and mapped into memory, so that it may be deleted at any
time.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

Compare = Callable[[Any, Any], Any]
_INT = pa.int32()
_ONE = pa.scalar(1, _INT)


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows sorted by `keys`, columns without a NULL, and what is known of each row."""

    keys: tuple[pa.Array, ...]
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.keys[0])

    @classmethod
    def of(cls, keys: Sequence[pa.Array], place: str) -> SortedRows:
        """Sort rows that have only their number as `place`, int32.

        Rows of one key stay in their order.
        """
        order = sorting(keys)
        rows = pa.RecordBatch.from_arrays([order.cast(_INT)], [place])
        return cls(tuple(key.take(order) for key in keys), rows)

    def matches(self, wanted: SortedRows) -> pa.Table:
        """Pairs of a row here and a wanted one with the same key: the columns of both.

        A key may have several rows here, but only one in `wanted`. Both have keys of the same
        types.
        """
        wanted = wanted._between(self)
        first = self._bound(wanted.keys, pc.less)
        hits = pc.indices_nonzero(self._is_at(first, wanted.keys))
        keys, first = [key.take(hits) for key in wanted.keys], first.take(hits)
        given = wanted.rows.take(hits)
        if pc.any(self._is_at(pc.add(first, _ONE), keys)).as_py():
            run, first = _expanded_runs(first, pc.subtract(self._bound(keys, pc.less_equal), first))
            given = given.take(run)
        rows = self.rows.take(first)
        names = [*given.schema.names, *rows.schema.names]
        return pa.Table.from_arrays([*given.columns, *rows.columns], names)

    def _between(self, other: SortedRows) -> SortedRows:
        """Those rows whose key is neither before the first nor after the last of `other`."""
        if not len(self) or not len(other):
            return self._slice(0, 0)
        start = self._bound([key[:1] for key in other.keys], pc.less)[0].as_py()
        end = self._bound([key[-1:] for key in other.keys], pc.less_equal)[0].as_py()
        return self._slice(start, end)

    def _slice(self, start: int, end: int) -> SortedRows:
        keys = tuple(key[start:end] for key in self.keys)
        return SortedRows(keys, self.rows.slice(start, end - start))

    def _bound(self, keys: Sequence[pa.Array], compare: Compare) -> pa.Array:
        """For each key, how many rows are before it (`less`), or not after it (`less_equal`)."""
        at = pa.repeat(pa.scalar(0, _INT), len(keys[0]))
        if not len(self) or not len(at):
            return at
        # What is looked for is at least `at`, and at most `length` more.
        length = len(self)
        while length > 1:
            half = length // 2
            middle = pc.add(at, pa.scalar(half, _INT))
            at = pc.if_else(self._is(compare, pc.subtract(middle, _ONE), keys), middle, at)
            length -= half
        return pc.add(at, self._is(compare, at, keys).cast(_INT))

    def _is(self, compare: Compare, at: pa.Array, keys: Sequence[pa.Array]) -> pa.Array:
        """Whether the row at each place is less than a key; or equal, if `compare` says so."""
        last = len(keys) - 1
        here = self._taken(last, at)
        result = compare(here, keys[last])
        for column in range(last - 1, -1, -1):
            here = self._taken(column, at)
            tied = pc.and_(pc.equal(here, keys[column]), result)
            result = pc.or_(pc.less(here, keys[column]), tied)
        return result

    def _is_at(self, at: pa.Array, keys: Sequence[pa.Array]) -> pa.Array:
        """Whether the row at each place, which may be that after the last, has a key."""
        last = pa.scalar(len(self) - 1, _INT)
        result = pc.less_equal(at, last)
        if not len(self):
            return result
        there = pc.min_element_wise(at, last)
        for column, key in enumerate(keys):
            result = pc.and_(result, pc.equal(self._taken(column, there), key))
        return result

    def _taken(self, column: int, at: pa.Array) -> pa.Array:
        return pc.take(self.keys[column], at, boundscheck=False)


def _expanded_runs(first: pa.Array, sizes: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Every place of some runs of places, and before it the number of its run."""
    ends = pc.cumulative_sum(sizes)
    numbers = pa.arange(0, len(first)).cast(_INT)
    run = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, numbers))
    before = pc.subtract(pc.subtract(ends, sizes), first).take(run)
    return run, pc.subtract(pa.arange(0, len(run)).cast(_INT), before)


def sorting(keys: Sequence[pa.Array]) -> pa.Array:
    """The places of rows in the order of their keys, uint64."""
    if len(keys) == 1:
        return pc.sort_indices(keys[0])
    names = [str(number) for number in range(len(keys))]
    table = pa.Table.from_arrays(list(keys), names)
    return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])


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
class OpenedIndex:
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


def open_index(folder: Path, identity: Identity) -> OpenedIndex:
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
    return OpenedIndex(_index(_checked(content), identity), _signature(status))


def is_as_opened(folder: Path, identity: Identity, opened: OpenedIndex) -> bool:
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
        [pa.field(name, column.type) for name, column in zip(names, columns, strict=True)],
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
    """The digest of the next `count` bytes."""
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
