"""CSV and TSV: a message holds lines of separated values, with a line of names or without."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from polynya.formats import limits
from polynya.formats.contents.decoded import Decoded, Item, OneByOne, too_many
from polynya.formats.errors import RecordError, TooLargeError
from polynya.formats.records.json_text import first_twice
from polynya.formats.records.separated import Dialect, fields, pieces
from polynya.model.config.streaming.content import CsvContent, TsvContent


class SeparatedDecoder(OneByOne):
    """Lines of separated values; every field is text or NULL."""

    def __init__(self, content: CsvContent | TsvContent) -> None:
        self.is_text = content.infer_types
        self._header = content.header
        self._duplicates = content.duplicate_header
        self._dialect = Dialect(
            delimiter=content.delimiter_character,
            null_value=content.null_value,
            quote=content.quote_character,
            escape=content.escape_character,
            bare_quotes=True,
        )

    def one(self, message: bytes) -> Decoded:
        """See `OneByOne`."""
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
