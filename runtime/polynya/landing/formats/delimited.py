"""CSV with a header line: every field is text, an empty one NULL; types are inferred losslessly.

The raw bytes of a record are the header line, a newline and the row's own text, so that one record
can be read again by itself.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

from polynya.landing.columns import Column, Faults, build
from polynya.landing.errors import RecordError, UnreadableFileError
from polynya.landing.formats.base import OpenedFile, RawRecord
from polynya.landing.json_text import parse_value
from polynya.model.datatypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    MapType,
    Struct,
    Void,
)

_MAX_FIELD_CHARACTERS = 16 * 1024 * 1024
_MAX_RECORD_LINES = 100_000
_BOM = b"\xef\xbb\xbf"
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_CANONICAL_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_EXACT_INTEGERS = 1 << 53
_NESTED = (Array, MapType, Struct)


def open_csv(file: BinaryIO, start: int) -> OpenedFile:
    """Read a file of comma-separated values."""
    csv.field_size_limit(_MAX_FIELD_CHARACTERS)
    records = pieces(file)
    header = next(records, None)
    if header is None:
        return OpenedFile(iter(()))
    names = _header(header)
    return OpenedFile(
        _records(header, names, islice(records, start, None)), dict.fromkeys(names, Void())
    )


def _header(raw: bytes) -> list[str]:
    try:
        (names,) = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), strict=True)
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise UnreadableFileError(f"the header line cannot be read: {error}") from error
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UnreadableFileError(f"column {twice!r} appears twice in the header line")
    return names


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Split at line ends outside quotes: the header, then one piece a record."""
    held: list[bytes] = []
    quotes = 0
    first = True
    for raw in file:
        line = raw.removeprefix(_BOM) if first else raw
        first = False
        if not held and not line.strip(b"\r\n"):
            continue
        held.append(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0 or len(held) >= _MAX_RECORD_LINES:
            yield b"".join(held).rstrip(b"\r\n")
            held, quotes = [], 0
    if held:
        yield b"".join(held).rstrip(b"\r\n")


def _records(header: bytes, names: list[str], rows: Iterator[bytes]) -> Iterator[RawRecord]:
    for piece in rows:
        raw = header + b"\n" + piece
        try:
            yield raw, _record(names, piece)
        except RecordError as error:
            yield raw, error


def _record(names: list[str], piece: bytes) -> dict[str, Any]:
    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: {error.reason} at byte {error.start}"
        raise RecordError("bad_utf8", problem) from None
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise RecordError("bad_csv", f"not CSV: {error}") from None
    if len(rows) != 1 or len(rows[0]) != len(names):
        found = len(rows[0]) if rows else 0
        raise RecordError("bad_csv", f"{found} fields, the header line has {len(names)}")
    return {name: value or None for name, value in zip(names, rows[0], strict=True)}


def text_builder(
    values: Sequence[Any], known: DataType | None, *, declared: bool = False
) -> Column:
    """Type a column of texts."""
    if known is None or isinstance(known, Void):
        known = _inferred([value for value in values if value is not None])
    faults: Faults = {}
    checked = [_checked(index, value, known, faults) for index, value in enumerate(values)]
    # The texts are canonical for the type now, so parsing them as declared ones loses nothing.
    column = build(checked, known, declared=True)
    for index, (rule, error) in column.faults.items():
        faults[index] = (rule if declared else "type_mismatch", error)
    if not declared:
        column = _without_disguise(column, checked, values, faults)
    return Column(column.type, column.array, faults)


def _without_disguise(
    column: Column, checked: Sequence[Any], values: Sequence[Any], faults: Faults
) -> Column:
    """Refuse texts whose number would not spell the same, such as 007."""
    if column.type not in {INT, BIGINT, FLOAT, DOUBLE} and not isinstance(column.type, Decimal):
        return column
    for index, value in enumerate(values):
        if value is not None and checked[index] is not None and not _is_number(value):
            faults.setdefault(index, ("type_mismatch", f"{value[:60]!r} is no canonical number"))
    return column


def _checked(index: int, value: str | None, kind: DataType, faults: Faults) -> Any:
    """A nested value from its JSON text; any other text as it is."""
    if value is None or not isinstance(kind, _NESTED):
        return value
    try:
        return parse_value(value.encode())
    except RecordError as error:
        faults[index] = (error.rule, error.error)
        return None


def _inferred(texts: list[str]) -> DataType:
    if not texts:
        return Void()
    if all(map(_is_bigint, texts)):
        return BIGINT
    if all(map(_is_double, texts)):
        return DOUBLE
    if all(text in {"true", "false"} for text in texts):
        return BOOLEAN
    return STRING


def _is_number(text: str) -> bool:
    return _CANONICAL_NUMBER.fullmatch(text) is not None


def _is_bigint(text: str) -> bool:
    return _CANONICAL_INTEGER.fullmatch(text) is not None and -(1 << 63) <= int(text) < 1 << 63


def _is_double(text: str) -> bool:
    """Whether the text is the spelling of a double, or an integer below its exact limit."""
    if _CANONICAL_INTEGER.fullmatch(text):
        return abs(int(text)) <= _EXACT_INTEGERS
    return _is_number(text) and repr(float(text)) == text
