"""Files in their order become the messages of one landed batch, within its limits.

A message is a line, a record or a whole file. Parquet, ORC and Avro containers are one message, so
that no type is lost. Large ones are cut into messages that are small files themselves.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, BinaryIO, Final, TypeAlias

import pyarrow as pa
from pyarrow import orc, parquet

from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.landed import SCHEMAS, Lost
from polynya.formats.opening import codec_of, decompressed, source_of
from polynya.formats.records.avro import blocks_of, header_of, opened_avro
from polynya.formats.records.columnar import exact_batches, opened_orc, opened_parquet
from polynya.formats.records.csv import CsvDialect, pieces, placed_pieces
from polynya.formats.records.json import parse_value, raw_lines
from polynya.model.config.stream_content import (
    AvroContent,
    Content,
    CsvContent,
    JsonContent,
    RegexContent,
    SplitLinesContent,
    TsvContent,
)
from polynya.store.object_store import ObjectStore
from polynya.streams.files.files import FoundFile
from polynya.streams.files.position import CutFile

#: A file is cut when it is larger, into parts of about so many bytes.
PART_BYTES: Final = 32 * 2**20


@dataclass(frozen=True, slots=True)
class FileMessage:
    """A message.

    Attributes:
        record: number of its first record in the file, from 0; for a line that of the line.
        value: its bytes.
        following: number of the first record after it.
        byte: where that one begins in the file, 0 when it is found by its number.
    """

    record: int
    value: bytes
    following: int
    byte: int = 0


#: (file, number of the first record that is wanted, size in bytes) → the messages
Cutter: TypeAlias = Callable[[BinaryIO, int, int], Iterator[FileMessage]]


def _parquet(file: BinaryIO, record: int, size: int) -> Iterator[FileMessage]:
    reader = opened_parquet(file)
    rows = _rows(reader.metadata.num_rows, size)
    at = 0
    # Group by group: the library would read ahead, and what is not wanted is not read.
    for group in range(reader.num_row_groups):
        end = at + reader.metadata.row_group(group).num_rows
        if end > record:
            batches = exact_batches(file, rows, [group])
            yield from _tables(batches, record, parquet.write_table, at)
        at = end


def _orc(file: BinaryIO, record: int, size: int) -> Iterator[FileMessage]:
    reader = opened_orc(file)
    rows = _rows(reader.nrows, size)
    stripes = (reader.read_stripe(number) for number in range(reader.nstripes))
    batches = (part.slice(at, rows) for part in stripes for at in range(0, part.num_rows, rows))
    yield from _tables(batches, record, orc.write_table)


def _rows(rows: int, size: int) -> int:
    """How many rows make a part of a file."""
    return max(1, rows * PART_BYTES // max(1, size))


def _tables(
    batches: Iterator[pa.RecordBatch],
    record: int,
    write: Callable[[pa.Table, Any], None],
    at: int = 0,
) -> Iterator[FileMessage]:
    """The records of batches from one on; `at` is the number of the first one there."""
    for batch in batches:
        begin, at = at, at + batch.num_rows
        if at <= record:
            continue
        buffer = io.BytesIO()
        write(pa.Table.from_batches([batch.slice(max(0, record - begin))]), buffer)
        yield FileMessage(max(begin, record), buffer.getvalue(), at)


def _avro(file: BinaryIO, record: int, size: int) -> Iterator[FileMessage]:
    """The header again before some of the blocks; nothing is decoded."""
    del size
    opened_avro(file)
    header = header_of(file)
    at = 0
    held: list[bytes] = []
    first = at
    for begin, records, length in list(blocks_of(file, header, len(header))):
        if at >= record:
            file.seek(begin)
            held.append(file.read(length))
        else:
            first = at + records
        at += records
        if sum(map(len, held)) >= PART_BYTES:
            yield FileMessage(first, header + b"".join(held), at)
            held, first = [], at
    if held:
        yield FileMessage(first, header + b"".join(held), at)


def _guarded(cut: Cutter) -> Cutter:
    def pieces(file: BinaryIO, record: int, size: int) -> Iterator[FileMessage]:
        try:
            yield from cut(file, record, size)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnreadableFileError(f"damaged: {type(error).__name__} {error}") from error

    return pieces


#: By type of content. A damaged file raises UnreadableFileError.
CUTTERS: Final = {
    "parquet": _guarded(_parquet),
    "orc": _guarded(_orc),
    "avro": _guarded(_avro),
}


_BLANK: Final = b" \t\r\n"
_LINES: Final = CsvDialect(quote="")
_LINE_END: Final = SplitLinesContent(type="split_lines").pattern
#: How files begin that tell what they are.
_STARTS: Final = {b"PAR1": "parquet", b"Obj\x01": "avro"}
#: Nothing that has to be one message may be larger.
MAX_MESSAGE_BYTES: Final = 512 * 2**20


def pieces_of(
    file: BinaryIO, content: Content, record: int = 0, byte: int = 0
) -> Iterator[FileMessage]:
    """The messages of a file from a record on.

    Args:
        file: its content, decompressed, seekable, at its start.
        content: what the task says about it.
        record: number of the first record that is wanted.
        byte: where it begins, as an earlier piece has said.

    Raises:
        UnreadableFileError: on iterating; it is damaged, or too large for one message.
    """
    head = file.read(4)
    file.seek(0)
    if isinstance(content, CsvContent | TsvContent):
        return _separated(file, content, record, byte)
    kind = _STARTS.get(head[:4], "") if content.type == "auto" else content.type
    if kind in CUTTERS and not (isinstance(content, AvroContent) and content.schema_):
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if size > PART_BYTES:
            return CUTTERS[kind](file, record, size)
        return _whole(file, record)
    if _has_lines(file, content):
        return _lines(file, record, byte)
    return _whole(file, record)


def _has_lines(file: BinaryIO, content: Content) -> bool:
    if isinstance(content, RegexContent):
        return not content.multi_line
    if isinstance(content, SplitLinesContent):
        return content.pattern == _LINE_END
    if isinstance(content, JsonContent) or content.type == "auto":
        return not _is_one_document(file)
    return False


def _is_one_document(file: BinaryIO) -> bool:
    """Whether a text of JSON is one value over several lines, and not a value in each line."""
    first = next((line for line in raw_lines(file) if line.strip(_BLANK + b"\xef\xbb\xbf")), b"")
    file.seek(0)
    text = first.removeprefix(b"\xef\xbb\xbf").strip(_BLANK)
    if not text.startswith(b"[") and text != b"{":
        return False
    try:
        parse_value(text)
    except RecordError:
        return True
    return False


def _lines(file: BinaryIO, record: int, byte: int) -> Iterator[FileMessage]:
    found = placed_pieces(file, _LINES, begin=byte)
    written = ((begin, raw) for begin, raw in found if raw.strip(_BLANK))
    return _from(written, record, byte, b"")


def _separated(
    file: BinaryIO, content: CsvContent | TsvContent, record: int, byte: int
) -> Iterator[FileMessage]:
    """The records, each below the line of names of the file if it has one."""
    dialect = CsvDialect(
        content.delimiter_character, "", content.quote_character, content.escape_character
    )
    names = b""
    if content.header is None:
        names = next(pieces(file, dialect), b"") + b"\n"
        file.seek(0)
    found = placed_pieces(file, dialect, begin=byte)
    if content.header is None and not byte:
        next(found, None)
    return _from(found, record, byte, names)


def _from(
    found: Iterator[tuple[int, bytes]], record: int, byte: int, before: bytes
) -> Iterator[FileMessage]:
    """The pieces from a record on, found by its byte or by counting."""
    for number, (begin, raw) in enumerate(found, record if byte else 0):
        if number >= record:
            yield FileMessage(number, before + raw, number + 1, begin + len(raw))


def _whole(file: BinaryIO, record: int) -> Iterator[FileMessage]:
    if record:
        return
    value = file.read(MAX_MESSAGE_BYTES + 1)
    if len(value) > MAX_MESSAGE_BYTES:
        raise UnreadableFileError(
            f"it is one message and larger than {MAX_MESSAGE_BYTES // 2**20} MiB; have it written "
            "in parts"
        )
    if value:
        yield FileMessage(0, value, 1)


#: A file of at most this size is fetched by one request, which also tells its version.
_FETCHED_BYTES: Final = 8 * 2**20
_HEAD_BYTES: Final = 512


class _GoneError(Exception):
    """Raised when a file is not there any more in the version that was listed."""


@dataclass(slots=True)
class FilesBatch:
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

    def take(self, file: FoundFile, piece: FileMessage) -> None:
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
        self._pieces: Generator[FileMessage] | None = None
        self._held: FileMessage | None = None

    def read(
        self,
        files: Sequence[FoundFile],
        cut: CutFile | None,
        *,
        max_records: int,
        max_bytes: int,
        initial: bool = False,
    ) -> FilesBatch:
        """Read until a limit is reached; one message is always taken.

        Args:
            files: in the order in which they are read.
            cut: a file to go on with first.
            max_records: most messages.
            max_bytes: most bytes of messages.
            initial: whether the files belong to the initial load.
        """
        found = FilesBatch()
        todo = [CutFile(file, 0, 0, initial) for file in files]
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
        found: FilesBatch,
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
        self, one: CutFile, found: FilesBatch, max_records: int, max_bytes: int
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

    def _pieces_of(self, one: CutFile) -> Generator[FileMessage]:
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

    def _bad(self, one: CutFile, found: FilesBatch, why: str) -> None:
        """Take a file that cannot be read as it should be for done, and say so.

        One of which nothing was read lands as it is: what decodes it will put it into quarantine.
        """
        found.finished.append(one.file)
        if one.record == 0 and one.file.size <= MAX_MESSAGE_BYTES:
            try:
                raw = self._fetched(one.file, one.file.size + 1)
            except _GoneError as error:
                why = str(error)
            else:
                found.take(one.file, FileMessage(0, raw, 1))
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
