"""Decoders of text messages: JSON, separated values, and text split by regular expressions.

Patterns run in RE2, so no text takes more than linear time, whatever the pattern is.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from polynya.formats import limits
from polynya.formats.contents.decoded import Decoded, Decoder, Item, OneByOne, too_many
from polynya.formats.errors import RecordError, TooLargeError
from polynya.formats.records.csv import CsvDialect, fields, pieces
from polynya.formats.records.json import first_twice, parse_object, parse_value
from polynya.formats.records.sizes import check_values
from polynya.model.config.stream_content import (
    CsvContent,
    RegexContent,
    SplitLinesContent,
    TsvContent,
    group_pattern,
)
from polynya.model.error_catalogue.streams import CONTENT_UNUSABLE


class SeparatedDecoder(OneByOne):
    """Lines of separated values; every field is text or NULL."""

    def __init__(self, content: CsvContent | TsvContent) -> None:
        self.is_text = content.infer_types
        self._header = content.header
        self._duplicates = content.duplicate_header
        self._dialect = CsvDialect(
            delimiter=content.delimiter_character,
            null_value=content.null_value,
            quote=content.quote_character,
            escape=content.escape_character,
            bare_quotes=True,
        )

    @override
    def one(self, message: bytes) -> Decoded:
        try:
            lines = list(
                islice(pieces(io.BytesIO(message), self._dialect), limits.MESSAGE_RECORDS + 2)
            )
        except TooLargeError as error:
            raise RecordError("too_large", str(error)) from error
        if len(lines) > limits.MESSAGE_RECORDS + 1:
            raise too_many()
        if not lines:
            raise RecordError("bad_csv", "there is no line in it")
        if self._header is not None:
            return Decoded([self._item(line, self._header) for line in lines], part=_of(lines))
        head, *rows = lines
        names = self._names(head)
        return Decoded([self._item(row, names) for row in rows], part=_of(rows, head + b"\n"))

    def _item(self, line: bytes, names: Sequence[str]) -> Item:
        try:
            row = fields(line, self._dialect)
        except RecordError as error:
            return error
        if len(row) != len(names):
            return RecordError("bad_csv", f"{len(row)} fields for {len(names)} columns")
        return dict(zip(names, row, strict=True))

    def _names(self, head: bytes) -> list[str]:
        try:
            names = [name or "" for name in fields(head, replace(self._dialect, null_value=""))]
        except RecordError as error:
            raise RecordError(error.rule, f"the line of names: {error.error}") from error
        if self._duplicates:
            return _numbered(names)
        if len(set(names)) != len(names):
            twice = first_twice(names)[:64]
            raise RecordError("bad_csv", f"column {twice!r} stands twice in the line of names")
        return names


class _Part:
    """The text of one record, which can be read by itself."""

    def __init__(self, lines: Sequence[bytes], before: bytes) -> None:
        self._lines, self._before = lines, before

    def __call__(self, index: int) -> bytes:
        return self._before + self._lines[index]


def _of(lines: Sequence[bytes], before: bytes = b"") -> _Part:
    return _Part(lines, before)


def _numbered(names: Sequence[str]) -> list[str]:
    """Names of which the second `a` is `a_2`, unless there is a column of that name."""
    given, numbers = set(names), dict.fromkeys(names, 2)
    found: dict[str, None] = {}
    for name in names:
        free = name
        while free in found or (free != name and free in given):
            free = f"{name}_{numbers[name]}"
            numbers[name] += 1
        found[free] = None
    return list(found)


_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


class JsonDecoder(OneByOne):
    """Strict JSON, as in landed files of JSON lines."""

    @override
    def one(self, message: bytes) -> Decoded:
        text = message.removeprefix(_BOM)
        check_values(text)
        if text.lstrip(_BLANK)[:1] == b"[":
            return _array(text)
        try:
            return Decoded((parse_object(text),))
        except RecordError:
            lines = _json_lines(text)
            if not lines:
                raise
        return Decoded([_parsed(line) for line in lines], part=lines.__getitem__)


def _array(text: bytes) -> Decoded:
    values = parse_value(text)
    if len(values) > limits.MESSAGE_RECORDS:
        raise too_many()
    items: list[Item] = [
        value
        if isinstance(value, dict)
        else RecordError("not_an_object", "it is not a JSON object")
        for value in values
    ]
    return Decoded(items, part=lambda index: written(values[index]).encode())


def _json_lines(text: bytes) -> list[bytes]:
    """The lines of a text with an object a line; none where it is a document of its own.

    Each looks like an object, or the first one is one: a document would end with it.
    """
    if text.count(b"\n") > 2 * limits.MESSAGE_RECORDS:
        raise too_many()
    lines = [line.strip(_BLANK) for line in text.split(b"\n")]
    lines = [line for line in lines if line]
    if len(lines) > limits.MESSAGE_RECORDS:
        raise too_many()
    if len(lines) < 2:
        return []
    plain = all(line.startswith(b"{") and line.endswith(b"}") for line in lines)
    return lines if plain or _is_object(lines[0]) else []


def _is_object(line: bytes) -> bool:
    found = _parsed(line)
    return not isinstance(found, RecordError) or found.rule not in {"bad_json", "not_an_object"}


def _parsed(line: bytes) -> Item:
    try:
        return parse_object(line)
    except RecordError as error:
        return error


def written(value: Any) -> str:
    """The JSON text of a parsed value, with every number as it was."""
    match value:
        case dict():
            inner = (f"{json.dumps(key)}:{written(item)}" for key, item in value.items())
            return "{" + ",".join(inner) + "}"
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


_LINE = "line"


class RegexDecoder(Decoder):
    """The named groups of a pattern are the columns; a group that took no part is NULL."""

    def __init__(self, content: RegexContent) -> None:
        self.is_text = content.infer_types
        pattern = group_pattern(content.pattern)
        self._whole = content.multi_line
        self._pattern = f"(?s){pattern}" if content.multi_line else pattern
        _try(lambda: pc.extract_regex(pa.array([""]), pattern=self._pattern), content.pattern)

    @override
    def decode(self, messages: Sequence[bytes]) -> Iterable[Decoded | RecordError]:
        """Match the pattern once, against all messages."""
        texts = [_text(message) for message in messages]
        lines = [
            [] if isinstance(text, RecordError) else [text] if self._whole else _text_lines(text)
            for text in texts
        ]
        found = iter(self._items([line for own in lines for line in own]))
        for text, own in zip(texts, lines, strict=True):
            if isinstance(text, RecordError):
                yield text
            elif len(own) > limits.MESSAGE_RECORDS:
                yield too_many()
            else:
                items = [next(found) for _ in own]
                yield Decoded(items, part=None if self._whole else _encoded(own))

    def _items(self, lines: list[str]) -> list[Item]:
        if not lines:
            return []
        groups = pc.extract_regex(pa.array(lines, pa.string()), pattern=self._pattern).to_pylist()
        return [_item(group) for group in groups]


class SplitDecoder(OneByOne):
    """Each piece is a record with one column; empty pieces are none."""

    def __init__(self, content: SplitLinesContent) -> None:
        self._pattern = content.pattern
        _try(lambda: self._cut(""), content.pattern)

    @override
    def one(self, message: bytes) -> Decoded:
        text = _text(message)
        if isinstance(text, RecordError):
            raise text
        pieces = [piece for piece in self._cut(text) if piece]
        if len(pieces) > limits.MESSAGE_RECORDS:
            raise too_many()
        return Decoded([{_LINE: piece} for piece in pieces], part=_encoded(pieces))

    def _cut(self, text: str) -> list[str]:
        parts = pc.split_pattern_regex(pa.array([text], pa.string()), pattern=self._pattern)
        pieces: list[str] = parts[0].as_py()
        return pieces


def _text(message: bytes) -> str | RecordError:
    try:
        return message.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return RecordError("bad_utf8", f"not UTF-8: {error.reason} at byte {error.start}")


def _text_lines(text: str) -> list[str]:
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]


def _item(groups: dict[str, Any] | None) -> Item:
    if groups is None:
        return RecordError("no_match", "the pattern is not found in it")
    return groups


class _encoded:  # noqa: N801 - a function with a memory
    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __call__(self, index: int) -> bytes:
        return self._texts[index].encode()


def _try(use: Any, pattern: str) -> None:
    """Raise OperationError for a pattern that RE2 refuses although the settings were right."""
    try:
        use()
    except pa.ArrowException as error:
        where = f"pattern {pattern[:200]!r}"
        raise CONTENT_UNUSABLE(where=where, part="pattern", error=error) from error
