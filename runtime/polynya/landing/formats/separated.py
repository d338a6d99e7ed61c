"""CSV as replication services write it: a choice of delimiter and NULL, quoted text is never NULL.

Python's own reader does not tell `""` from an empty field; for these files that is the difference
between the empty text and NULL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from polynya.landing.errors import RecordError, UnreadableFileError
from polynya.model.delivery import DEFAULT_DELIMITER, Delivery

# Possessive: linear time on any input.
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are written. Quotes are `"`, doubled inside a quoted field (RFC 4180)."""

    delimiter: str = DEFAULT_DELIMITER
    null_value: str = ""

    @classmethod
    def of(cls, delivery: Delivery) -> Dialect:
        """The dialect that the settings of a task name."""
        return cls(delivery.delimiter or DEFAULT_DELIMITER, delivery.null_value or "")


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
    null = dialect.null_value
    if '"' in text:
        return _quoted_fields(text, dialect.delimiter, null)
    return [None if field == null else field for field in text.split(dialect.delimiter)]


def _quoted_fields(text: str, delimiter: str, null: str) -> list[str | None]:
    found: list[str | None] = []
    position = 0
    while True:
        match = _QUOTED.match(text, position)
        if match is not None:
            found.append(match[1].replace('""', '"'))
            end = match.end()
        else:
            end = text.find(delimiter, position)
            end = len(text) if end < 0 else end
            field = text[position:end]
            if '"' in field:
                raise RecordError("bad_csv", "a quote that is not closed, or inside a bare field")
            found.append(None if field == null else field)
        if end == len(text):
            return found
        if text[end] != delimiter:
            raise RecordError("bad_csv", "text behind a closing quote")
        position = end + 1


def header_names(piece: bytes, dialect: Dialect) -> list[str]:
    """The column names of a header line.

    Raises:
        UnreadableFileError: it is no line of names: broken, with a name twice, or with a field
            that is empty or a number, as a row of data has.
    """
    try:
        names = fields(piece, Dialect(dialect.delimiter))
    except RecordError as error:
        raise UnreadableFileError(f"the header line cannot be read: {error.error}") from error
    for name in names:
        if name is None or not name.strip() or _is_number(name):
            raise UnreadableFileError(
                f"the first line is no header line: {name or ''!r} is no column name; "
                "if the files have none, set `header: false`"
            )
    whole = [name for name in names if name is not None]
    if len(set(whole)) != len(whole):
        twice = next(name for name in whole if whole.count(name) > 1)
        raise UnreadableFileError(f"column {twice!r} appears twice in the header line")
    return whole


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+([.,][0-9]+)?", text.strip(), re.ASCII) is not None
