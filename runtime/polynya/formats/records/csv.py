"""CSV in the dialect of the settings: fields are text or NULL, types are inferred without loss.

Python's `csv` does not distinguish `""` from an empty field, nor an escaped NULL marker from a bare
one; here that is the difference between text and NULL.

The raw bytes of a record are the header line, a newline and the text of the row, so that one record
can be read again without its file. Without header lines they are the text of the row alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, BinaryIO, Final

from polynya.formats import limits
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.columnar import OpenedFile, RawRecord
from polynya.formats.records.json import parse_value, raw_lines
from polynya.formats.values.columns import Faults, TypedColumn, build
from polynya.formats.values.exact import USUAL, NumberSpelling
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import DEFAULT_DELIMITER, DEFAULT_QUOTE, Delivery
from polynya.model.types import (
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

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How fields are written.

    Attributes:
        delimiter: one character between fields.
        null_value: what a bare field holds that is NULL; a quoted field is text. None: whatever is
            empty is NULL, quoted or not.
        quote: one character around fields, doubled inside them (RFC 4180); "" for none.
        escape: one character that takes any meaning from the next one; "" for none.
        comment: one character with which lines begin that are not records; "" for none.
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
    def of(cls, delivery: Delivery, *, null_words: frozenset[str] = frozenset()) -> CsvDialect:
        """The dialect of a replication service, as the settings of a task name it.

        `null_words` are those that the service writes unless somebody tells it something else.
        """
        words = null_words if delivery.null_value is None else frozenset()
        return cls(delivery.delimiter_character, delivery.null_value or "", null_words=words)

    def is_null(self, bare: str) -> bool:
        """Whether a field without quotes is NULL."""
        return bare == (self.null_value or "") or bare in self.null_words


def pieces(file: BinaryIO, dialect: CsvDialect | None = None, *, skip: int = 0) -> Iterator[bytes]:
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
    file: BinaryIO, dialect: CsvDialect | None = None, *, skip: int = 0, begin: int = 0
) -> Iterator[tuple[int, bytes]]:
    """The same, each with the byte at which it begins; the first one not before `begin`.

    Iterating raises TooLargeError.
    """
    dialect = dialect or CsvDialect()
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


def _count(line: bytes, quote: bytes, dialect: CsvDialect) -> int:
    """How many quotes of a line are not escaped."""
    if dialect.escape and quote in line:
        line = _escaped(dialect.escape).sub(b"", line)
    return line.count(quote)


@lru_cache(maxsize=16)
def _escaped(escape: str) -> re.Pattern[bytes]:
    return re.compile(re.escape(escape.encode()) + b".", re.DOTALL)


def fields(piece: bytes, dialect: CsvDialect) -> list[str | None]:
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


def _marked_fields(text: str, dialect: CsvDialect) -> list[str | None]:
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
def _grammar(dialect: CsvDialect) -> _Grammar:
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


def column_names(piece: bytes, dialect: CsvDialect) -> list[str]:
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


def header_names(piece: bytes, dialect: CsvDialect) -> list[str]:
    """The names of the header line of a replication service, whose files may have none.

    Raises:
        UnreadableFileError: it is not a line of names: broken, with a name twice, or with a field
            that is empty or a number, as a row of data has.
    """
    names = column_names(piece, dialect)
    for name in names:
        if not name.strip() or _is_plain_number(name):
            raise UnreadableFileError(
                f"the first line is not a header line: {name!r} is not a column name; "
                "if the files have none, set `header: false`"
            )
    return names


def _is_plain_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+([.,][0-9]+)?", text.strip(), re.ASCII) is not None


_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_CANONICAL_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_EXACT_INTEGERS = 1 << 53
_NESTED = (Array, MapType, Struct)


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How the files of a dataset are laid out.

    Attributes:
        dialect: how fields are written.
        names: the columns in order, for files without a header line; None: it names them.
        skip_lines: lines before the header line, or before the first record.
    """

    dialect: CsvDialect
    names: tuple[str, ...] | None = None
    skip_lines: int = 0

    @classmethod
    def of(cls, dataset: ResolvedDataset) -> CsvLayout:
        """The layout that the settings of a task name."""
        said = dataset.landing.delivery
        # An escape that is the quote itself says what RFC 4180 says anyway.
        escape = said.escape if said.escape != said.quote_character else None
        dialect = CsvDialect(
            delimiter=said.delimiter_character,
            null_value=said.null_value,
            quote=said.quote_character,
            escape=escape or "",
            comment=said.comment or "",
            bare_quotes=True,
        )
        names = None if said.has_header else tuple(dataset.events.columns)
        return cls(dialect, names, said.skip_lines or 0)

    def of_one_record(self) -> CsvLayout:
        """The layout of a record's raw bytes, which hold no skipped lines."""
        return replace(self, skip_lines=0)


def open_csv(file: BinaryIO, start: int, layout: CsvLayout) -> OpenedFile:
    """Read a file of separated values, in UTF-8."""
    records = pieces(file, layout.dialect, skip=layout.skip_lines)
    if layout.names is not None:
        rows = islice(records, start, None)
        return OpenedFile(_records(b"", layout.names, rows, layout.dialect))
    header = next(records, None)
    if header is None:
        return OpenedFile(iter(()))
    names = column_names(header, layout.dialect)
    rows = islice(records, start, None)
    return OpenedFile(
        _records(header + b"\n", names, rows, layout.dialect), dict.fromkeys(names, Void())
    )


#: What people separate fields by, with how a setting is written.
_DELIMITERS: Final = {";": '";"', "\t": '"\\t"', "|": '"|"', ",": '","'}


def refuse_other_delimiter(file: BinaryIO, layout: CsvLayout) -> None:
    """Refuse a file of one column whose lines look separated by another character.

    The file is at its start, before and after. A name with such a character alone says nothing: the
    first record must have as many of them.

    Raises UnreadableFileError.
    """
    if layout.names is not None:
        return
    records = pieces(file, layout.dialect, skip=layout.skip_lines)
    header = next(records, None)
    other = None
    if header is not None and len(column_names(header, layout.dialect)) == 1:
        other = _other_delimiter(header, layout.dialect)
        first = next(records, None)
        if first is not None and _other_delimiter(first, layout.dialect) != other:
            other = None
    file.seek(0)
    if other is not None:
        count, delimiter = other
        raise UnreadableFileError(
            f"its lines have one column, and {count} if {_DELIMITERS[delimiter]} separates them; "
            f"set `delimiter: {_DELIMITERS[delimiter]}` under `landing`"
        )


def _other_delimiter(line: bytes, dialect: CsvDialect) -> tuple[int, str] | None:
    """How many fields a line has with another usual delimiter, and which makes most of them."""
    counts = []
    for delimiter in _DELIMITERS.keys() - {dialect.delimiter, dialect.quote, dialect.escape}:
        try:
            counts.append((len(fields(line, replace(dialect, delimiter=delimiter))), delimiter))
        except RecordError:
            continue
    most = max(counts, default=(1, ""))
    return most if most[0] > 1 else None


def _records(
    prefix: bytes, names: Sequence[str], rows: Iterator[bytes], dialect: CsvDialect
) -> Iterator[RawRecord]:
    for piece in rows:
        raw = prefix + piece
        try:
            yield raw, _record(names, piece, dialect)
        except RecordError as error:
            yield raw, error


def _record(names: Sequence[str], piece: bytes, dialect: CsvDialect) -> dict[str, Any]:
    row = fields(piece, dialect)
    if len(row) != len(names):
        problem = f"{len(row)} fields, the table has {len(names)} columns"
        other = _other_delimiter(piece, dialect) if len(row) == 1 else None
        if other is not None and other[0] == len(names):
            problem += f"; `delimiter: {_DELIMITERS[other[1]]}` under `landing` makes as many"
        raise RecordError("bad_csv", problem)
    return dict(zip(names, row, strict=True))


def text_builder(
    values: Sequence[Any],
    known: DataType | None,
    *,
    declared: bool = False,
    spelling: NumberSpelling = USUAL,
) -> TypedColumn:
    """Type a column of texts."""
    if known is None or isinstance(known, Void):
        known = _inferred([value for value in values if value is not None], spelling)
    faults: Faults = {}
    checked = [_checked(index, value, known, faults) for index, value in enumerate(values)]
    # The texts are canonical for the type now, so parsing them as declared ones loses nothing.
    column = build(checked, known, declared=True, spelling=spelling)
    for index, (rule, error) in column.faults.items():
        faults[index] = (rule if declared else "type_mismatch", error)
    if not declared:
        column = _without_disguise(column, checked, values, faults, spelling)
    return TypedColumn(column.type, column.array, faults)


def _without_disguise(
    column: TypedColumn,
    checked: Sequence[Any],
    values: Sequence[Any],
    faults: Faults,
    spelling: NumberSpelling,
) -> TypedColumn:
    """Refuse texts whose number would not spell the same, such as 007."""
    if column.type not in {INT, BIGINT, FLOAT, DOUBLE} and not isinstance(column.type, Decimal):
        return column
    for index, value in enumerate(values):
        if value is None or checked[index] is None:
            continue
        number = value if spelling.is_usual else spelling.number(value)
        if number is None or not _is_canonical_number(number):
            faults.setdefault(index, ("type_mismatch", f"{value[:60]!r} is not a canonical number"))
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


def _inferred(texts: list[str], spelling: NumberSpelling = USUAL) -> DataType:
    if not texts:
        return Void()
    if not spelling.is_usual:
        numbers = [spelling.number(text) for text in texts]
        if None in numbers:
            return BOOLEAN if all(map(_is_boolean, texts)) else STRING
        texts = [number for number in numbers if number is not None]
    if all(map(_is_bigint, texts)):
        return BIGINT
    if all(map(_is_double, texts)):
        return DOUBLE
    if all(map(_is_boolean, texts)):
        return BOOLEAN
    return STRING


def text_type(
    before: DataType, texts: Sequence[str | None], spelling: NumberSpelling = USUAL
) -> DataType:
    """The type of a column that has texts more, where those so far made it `before`."""
    some = [text for text in texts if text is not None]
    if isinstance(before, Void):
        return _inferred(some, spelling)
    if before in {BIGINT, DOUBLE} and not spelling.is_usual:
        # What is not a number becomes the empty text, which fits neither.
        some = [spelling.number(text) or "" for text in some]
    narrower: dict[DataType, tuple[DataType, ...]] = {BIGINT: (BIGINT, DOUBLE)}
    for kind in narrower.get(before, (before,)):
        if kind != STRING and all(map(_FITS[kind], some)):
            return kind
    return STRING


def joined_text_types(before: DataType, here: DataType) -> DataType:
    """The type of a column from those of its parts, as far as types alone can tell."""
    if before == here or isinstance(here, Void):
        return before
    if isinstance(before, Void):
        return here
    return DOUBLE if {before, here} == {BIGINT, DOUBLE} else STRING


def _is_canonical_number(text: str) -> bool:
    return _CANONICAL_NUMBER.fullmatch(text) is not None


def _is_bigint(text: str) -> bool:
    return _CANONICAL_INTEGER.fullmatch(text) is not None and -(1 << 63) <= int(text) < 1 << 63


def _is_double(text: str) -> bool:
    """Whether the text is the spelling of a double, or an integer below its exact limit."""
    if _CANONICAL_INTEGER.fullmatch(text):
        return abs(int(text)) <= _EXACT_INTEGERS
    return _is_canonical_number(text) and repr(float(text)) == text


def _is_boolean(text: str) -> bool:
    return text in {"true", "false"}


_FITS: dict[DataType, Callable[[str], bool]] = {
    BIGINT: _is_bigint,
    DOUBLE: _is_double,
    BOOLEAN: _is_boolean,
}
