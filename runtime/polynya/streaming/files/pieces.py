"""A file becomes messages of a landed batch: a line or record each, or the whole file.

Formats that are files by their nature (Parquet, ORC, Avro containers) are one message, so that
nothing of their types is lost. Large ones are cut into messages that are small files themselves.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, Final

from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.json_lines import raw_lines
from polynya.formats.records.json_text import parse_value
from polynya.formats.records.separated import Dialect, pieces, placed_pieces
from polynya.model.config.streaming.content import (
    AvroContent,
    Content,
    CsvContent,
    JsonContent,
    RegexContent,
    SplitLinesContent,
    TsvContent,
)
from polynya.streaming.files.containers import CUTTERS, WHOLE_BYTES, Piece

_BLANK: Final = b" \t\r\n"
_LINES: Final = Dialect(quote="")
_LINE_END: Final = SplitLinesContent(type="split_lines").pattern
#: How files begin that tell what they are.
_STARTS: Final = {b"PAR1": "parquet", b"Obj\x01": "avro"}
#: Nothing that has to be one message may be larger.
MOST_BYTES: Final = 512 * 2**20


def pieces_of(file: BinaryIO, content: Content, record: int = 0, byte: int = 0) -> Iterator[Piece]:
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
        if size > WHOLE_BYTES:
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


def _lines(file: BinaryIO, record: int, byte: int) -> Iterator[Piece]:
    found = placed_pieces(file, _LINES, begin=byte)
    written = ((begin, raw) for begin, raw in found if raw.strip(_BLANK))
    return _from(written, record, byte, b"")


def _separated(
    file: BinaryIO, content: CsvContent | TsvContent, record: int, byte: int
) -> Iterator[Piece]:
    """The records, each below the line of names of the file if it has one."""
    dialect = Dialect(
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
) -> Iterator[Piece]:
    """The pieces from a record on, found by its byte or by counting."""
    for number, (begin, raw) in enumerate(found, record if byte else 0):
        if number >= record:
            yield Piece(number, before + raw, number + 1, begin + len(raw))


def _whole(file: BinaryIO, record: int) -> Iterator[Piece]:
    if record:
        return
    value = file.read(MOST_BYTES + 1)
    if len(value) > MOST_BYTES:
        raise UnreadableFileError(
            f"it is one message and larger than {MOST_BYTES // 2**20} MiB; have it written in parts"
        )
    if value:
        yield Piece(0, value, 1)
