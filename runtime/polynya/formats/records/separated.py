"""Text with separated fields: where a record ends, and what its fields are.

Python's own reader tells neither `""` from an empty field nor an escaped NULL marker from a bare
one; that is the difference between a text and NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import BinaryIO

from polynya.formats import limits
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.json_lines import raw_lines
from polynya.model.config.delivery import DEFAULT_DELIMITER, DEFAULT_QUOTE, Delivery

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are written.

    Attributes:
        delimiter: one character between fields.
        null_value: what a bare field holds that is NULL; a quoted field is text. None: whatever is
            empty is NULL, quoted or not.
        quote: one character around fields, doubled inside them (RFC 4180); "" for none.
        escape: one character that takes any meaning from the next one; "" for none.
        comment: one character with which lines begin that are no records; "" for none.
        null_words: what a bare field may hold beside that, and be NULL.
        bare_quotes: whether quotes inside a field that does not begin with one are text.
    """

    delimiter: str = DEFAULT_DELIMITER
    null_value: str | None = ""
    quote: str = DEFAULT_QUOTE
    escape: str = ""
    comment: str = ""
    bare_quotes: bool = False
    null_words: frozenset[str] = frozenset()

    @classmethod
    def of(cls, delivery: Delivery, *, null_words: frozenset[str] = frozenset()) -> Dialect:
        """The dialect of a replication service, as the settings of a task name it.

        `null_words` are those that the service writes unless somebody tells it something else.
        """
        words = null_words if delivery.null_value is None else frozenset()
        return cls(delivery.delimiter_character, delivery.null_value or "", null_words=words)

    def is_null(self, bare: str) -> bool:
        """Whether a field without quotes is NULL."""
        return bare == (self.null_value or "") or bare in self.null_words


def pieces(file: BinaryIO, dialect: Dialect | None = None, *, skip: int = 0) -> Iterator[bytes]:
    """Split at line ends outside quotes, one piece a record; blank lines and comments are none.

    Args:
        file: UTF-8; a byte order mark is skipped.
        dialect: what quotes and comments look like; None: quotes only.
        skip: lines at the start that are not looked at.

    Iterating raises TooLargeError. Reading never goes on inside quotes: what stands there would
    pass for records.
    """
    return (piece for _, piece in placed_pieces(file, dialect, skip=skip))


def placed_pieces(
    file: BinaryIO, dialect: Dialect | None = None, *, skip: int = 0, begin: int = 0
) -> Iterator[tuple[int, bytes]]:
    """The same, each with the byte at which it begins; the first one not before `begin`.

    Iterating raises TooLargeError.
    """
    dialect = dialect or Dialect()
    quote, comment = dialect.quote.encode(), dialect.comment.encode()
    held: list[bytes] = []
    end = file.seek(begin) if begin else 0
    size = quotes = 0
    for number, raw in enumerate(raw_lines(file, end), 1 if begin else 0):
        here, end = end, end + len(raw)
        if number < skip:
            continue
        line = raw.removeprefix(_BOM) if number == 0 else raw
        if not held and (not line.strip(b"\r\n") or (comment and line.startswith(comment))):
            continue
        begin = begin if held else here
        held.append(line)
        size += len(line)
        quotes += _count(line, quote, dialect) if quote else 0
        if size > limits.RECORD_BYTES:
            raise limits.refuse_record(begin)
        if quotes % 2 == 0:
            yield begin, b"".join(held).rstrip(b"\r\n")
            held, size, quotes = [], 0, 0
    if held:
        yield begin, b"".join(held).rstrip(b"\r\n")


def _count(line: bytes, quote: bytes, dialect: Dialect) -> int:
    """How many quotes of a line are not escaped."""
    if dialect.escape and quote in line:
        line = _escaped(dialect.escape).sub(b"", line)
    return line.count(quote)


@lru_cache(maxsize=16)
def _escaped(escape: str) -> re.Pattern[bytes]:
    return re.compile(re.escape(escape.encode()) + b".", re.DOTALL)


def fields(piece: bytes, dialect: Dialect) -> list[str | None]:
    """The fields of one record, None where NULL.

    Raises:
        RecordError: bad_utf8, or bad_csv for quotes that are not closed or in the wrong place.
    """
    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: {error.reason} at byte {error.start}"
        raise RecordError("bad_utf8", problem) from None
    null = dialect.null_value or ""
    words = dialect.null_words
    if (dialect.quote and dialect.quote in text) or (dialect.escape and dialect.escape in text):
        return _marked_fields(text, dialect)
    found = text.split(dialect.delimiter)
    return [None if field == null or field in words else field for field in found]


def _marked_fields(text: str, dialect: Dialect) -> list[str | None]:
    grammar = _grammar(dialect)
    found: list[str | None] = []
    for match in grammar.field.finditer(text):
        quoted, bare, end = match["quoted"], match["bare"], match["end"]
        if end is None:
            raise RecordError(
                "bad_csv",
                f"a quote that is not closed, or in the wrong place, at character {match.start()}",
            )
        if quoted is None and dialect.bare_quotes and "\n" in grammar.bare(bare):
            raise RecordError("bad_csv", f"a line ends in the field at character {match.start()}")
        if quoted is None:
            found.append(None if dialect.is_null(bare) else grammar.plain(bare))
        else:
            value = grammar.plain(quoted.replace(dialect.quote * 2, dialect.quote))
            found.append(None if not value and dialect.null_value is None else value)
        if not end:
            break
    return found


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A dialect as regular expressions. `field` matches one field, or a character of none."""

    field: re.Pattern[str]
    escaped: re.Pattern[str] | None

    def bare(self, text: str) -> str:
        """A text without what is escaped in it."""
        return text if self.escaped is None else self.escaped.sub("", text)

    def plain(self, text: str) -> str:
        """A text without its escapes."""
        return text if self.escaped is None else self.escaped.sub(r"\1", text)


@lru_cache(maxsize=16)
def _grammar(dialect: Dialect) -> _Grammar:
    delimiter, quote, escape = map(re.escape, (dialect.delimiter, dialect.quote, dialect.escape))
    pair = f"|{escape}." if escape else ""
    inner = "" if dialect.bare_quotes else quote
    bare = f"(?P<bare>(?:[^{delimiter}{inner}{escape}]{pair})*+)"
    quoted = "(?P<quoted>(?!))"
    if quote:
        # Possessive: linear time on any input.
        quoted = f"{quote}(?P<quoted>(?:[^{quote}{escape}]|{quote}{quote}{pair})*+){quote}"
        bare = f"(?!{quote}){bare}"
    field = rf"(?:{quoted}|{bare})(?P<end>{delimiter}|\Z)|."
    escaped = re.compile(f"{escape}(.)", re.DOTALL) if escape else None
    return _Grammar(re.compile(field, re.DOTALL), escaped)


def column_names(piece: bytes, dialect: Dialect) -> list[str]:
    """The names of a header line. Raises UnreadableFileError: broken, one twice, or too many."""
    try:
        names = [
            name or ""
            for name in fields(piece, replace(dialect, null_value="", null_words=frozenset()))
        ]
    except RecordError as error:
        raise UnreadableFileError(f"the header line cannot be read: {error.error}") from error
    limits.check_columns(len(names))
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UnreadableFileError(f"column {twice!r} appears twice in the header line")
    return names


def header_names(piece: bytes, dialect: Dialect) -> list[str]:
    """The names of the header line of a replication service, whose files may have none.

    Raises:
        UnreadableFileError: it is no line of names: broken, with a name twice, or with a field
            that is empty or a number, as a row of data has.
    """
    names = column_names(piece, dialect)
    for name in names:
        if not name.strip() or _is_number(name):
            raise UnreadableFileError(
                f"the first line is no header line: {name!r} is no column name; "
                "if the files have none, set `header: false`"
            )
    return names


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+([.,][0-9]+)?", text.strip(), re.ASCII) is not None
