"""Files in their order become the rows of one landed batch, within its limits."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import BinaryIO, Final

import pyarrow as pa

from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.compression import codec_of, decompressed
from polynya.formats.files.source import source_of
from polynya.formats.landed.batch import SCHEMAS, Lost
from polynya.model.config.streaming.content import Content
from polynya.store.object_store import ObjectStore
from polynya.streaming.files.containers import Piece
from polynya.streaming.files.files import FoundFile
from polynya.streaming.files.pieces import MOST_BYTES, pieces_of
from polynya.streaming.files.position import CutFile

#: A file of at most this size is fetched by one request, which also tells its version.
_FETCHED_BYTES: Final = 8 * 2**20
_HEAD_BYTES: Final = 512


class _GoneError(Exception):
    """Raised when a file is not there any more in the version that was listed."""


@dataclass(slots=True)
class ReadFiles:
    """What was read of some files.

    Attributes:
        names: the file of each row.
        sizes: its size in bytes, as it is stored.
        records: the number of the row's first record in it.
        values: the messages.
        bytes: of all of them.
        finished: files that were read to their end, or of which there is nothing to read.
        begun: how many of the files it took, besides one that was cut before.
        cut: the file that was left when the batch was full.
        lost: what could not be read any more.
        unread: names of files that landed as they are, since nothing of them could be read.
    """

    names: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    bytes: int = 0
    finished: list[FoundFile] = field(default_factory=list)
    begun: int = 0
    cut: CutFile | None = None
    lost: list[Lost] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def table(self) -> pa.Table:
        """As the rows of a landed batch."""
        schema = SCHEMAS["files"]
        columns = [self.names, self.sizes, self.records, self.values]
        arrays = [pa.array(one, kind.type) for one, kind in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def take(self, file: FoundFile, piece: Piece) -> None:
        """Add a message."""
        self.names.append(file.name)
        self.sizes.append(file.size)
        self.records.append(piece.record)
        self.values.append(piece.value)
        self.bytes += len(piece.value)

    def is_full(self, max_records: int, max_bytes: int) -> bool:
        """Whether a limit is reached."""
        return len(self.values) >= max_records or self.bytes >= max_bytes

    def forget_since(self, rows: int) -> None:
        """Leave out the rows after the first ones."""
        self.bytes -= sum(map(len, self.values[rows:]))
        for column in (self.names, self.sizes, self.records, self.values):
            del column[rows:]


class FilesReader:
    """Reads files, and goes on in one that was cut without beginning it again."""

    def __init__(self, store: ObjectStore, content: Content) -> None:
        self._store = store
        self._content = content
        self._at: CutFile | None = None
        self._pieces: Generator[Piece] | None = None
        self._held: Piece | None = None

    def read(
        self,
        files: Sequence[FoundFile],
        cut: CutFile | None,
        *,
        max_records: int,
        max_bytes: int,
        initial: bool = False,
    ) -> ReadFiles:
        """Read until a limit is reached; one message is always taken.

        Args:
            files: in the order in which they are read.
            cut: a file to go on with first.
            max_records: most messages.
            max_bytes: most bytes of messages.
            initial: whether the files belong to the initial load.
        """
        found = ReadFiles()
        todo = [CutFile(one, 0, initial=initial) for one in files]
        for one in [cut, *todo] if cut else todo:
            if found.is_full(max_records, max_bytes):
                break
            found.begun += one is not cut
            found.cut = self._read_or_say(one, found, max_records, max_bytes)
            if found.cut is not None:
                break
        return found

    def close(self) -> None:
        """Let go of the file that is open."""
        if self._pieces is not None:
            self._pieces.close()
        self._pieces, self._at, self._held = None, None, None

    def _read_or_say(
        self,
        one: CutFile,
        found: ReadFiles,
        max_records: int,
        max_bytes: int,
        *,
        again: bool = True,
    ) -> CutFile | None:
        """Read a file; where it was left. One that cannot be read is done and named."""
        rows = len(found.values)
        try:
            left = self._read_one(one, found, max_records, max_bytes)
        except (_GoneError, UnreadableFileError) as error:
            self.close()
            found.forget_since(rows)
            if isinstance(error, UnreadableFileError):
                self._bad(one, found, f"cannot be read: {error}")
            elif again and (newer := self._newer(one)) is not None:
                # Its writer was not done. The position may pass its name, so it is read now.
                return self._read_or_say(newer, found, max_records, max_bytes, again=False)
            else:
                found.lost.append(Lost(one.file.name, str(one.record), "", str(error)))
                found.finished.append(one.file)
            return None
        if left is None:
            found.finished.append(one.file)
        return left

    def _read_one(
        self, one: CutFile, found: ReadFiles, max_records: int, max_bytes: int
    ) -> CutFile | None:
        """Read a file from a place on; where it was left, None at its end."""
        if self._at != one or self._pieces is None:
            self.close()
            self._pieces = self._pieces_of(one)
        at = one
        while (piece := self._held or next(self._pieces, None)) is not None:
            self._held = None
            full = found.bytes + len(piece.value) > max_bytes or len(found.values) >= max_records
            if full and found.values:
                self._check(one.file)
                self._held, self._at = piece, at
                return at
            found.take(one.file, piece)
            at = CutFile(one.file, piece.following, piece.byte, one.initial)
        self._check(one.file)
        self.close()
        return None

    def _pieces_of(self, one: CutFile) -> Generator[Piece]:
        """The messages of a file, open meanwhile. Raises as `pieces_of`, and _GoneError."""
        with ExitStack() as open_files:
            content = self._opened(one.file, open_files)
            yield from pieces_of(content, self._content, one.record, one.byte)

    def _opened(self, file: FoundFile, open_files: ExitStack) -> BinaryIO:
        """The content of a file, decompressed. Raises _GoneError."""
        content: BinaryIO
        if file.size <= _FETCHED_BYTES:
            content = BytesIO(self._fetched(file, file.size + 1))
        else:
            self._check(file)
            content = open_files.enter_context(source_of(self._store, file.name))
        head = content.read(_HEAD_BYTES)
        content.seek(0)
        packed = self._content.compression != "none"
        codec = codec_of(head, file.name) if packed else None
        return content if codec is None else open_files.enter_context(decompressed(content, codec))

    def _check(self, file: FoundFile) -> None:
        """Make sure that what was read of a large file is all of one version."""
        if file.size > _FETCHED_BYTES:
            self._fetched(file, 1)

    def _fetched(self, file: FoundFile, limit: int) -> bytes:
        try:
            content = self._store.read(file.name, limit)
        except FileNotFoundError:
            raise _GoneError("gone before it was read") from None
        if content.version != file.version:
            raise _GoneError("changed before it was read to its end")
        return content.data

    def _bad(self, one: CutFile, found: ReadFiles, why: str) -> None:
        """Take a file that cannot be read as it should be for done, and say so.

        One of which nothing was read lands as it is: what decodes it will put it into quarantine.
        """
        found.finished.append(one.file)
        if one.record == 0 and one.file.size <= MOST_BYTES:
            try:
                raw = self._fetched(one.file, one.file.size + 1)
            except _GoneError as error:
                why = str(error)
            else:
                found.take(one.file, Piece(0, raw, 1))
                found.unread.append(one.file.name)
                return
        found.lost.append(Lost(one.file.name, str(one.record), "", why))

    def _newer(self, one: CutFile) -> CutFile | None:
        """A file of which nothing was read yet, in the version that it has now."""
        if one.record or one.byte:
            return None
        name = one.file.name
        try:
            version = self._store.read(name, 1).version
            size = self._store.size(name)
            if version != self._store.read(name, 1).version:
                return None
        except FileNotFoundError:
            return None
        return replace(one, file=replace(one.file, size=size, version=version))
