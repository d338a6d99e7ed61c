"""CSV in the dialect of the settings: every field is text or NULL; types are inferred losslessly.

The raw bytes of a record are the header line, a newline and the row's own text, so that one record
can be read again by itself; without header lines they are the row's text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO

from polynya.formats.errors import RecordError
from polynya.formats.records.json_text import parse_value
from polynya.formats.records.opened import OpenedFile, RawRecord
from polynya.formats.records.separated import Dialect, column_names, fields, pieces
from polynya.formats.values.columns import Column, Faults, build
from polynya.model.config.dataset import ResolvedDataset
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

_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_CANONICAL_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_EXACT_INTEGERS = 1 << 53
_NESTED = (Array, MapType, Struct)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the files of a dataset are laid out.

    Attributes:
        dialect: how fields are written.
        names: the columns in order, for files without a header line; None: it names them.
        skip_lines: lines before the header line, or before the first record.
    """

    dialect: Dialect
    names: tuple[str, ...] | None = None
    skip_lines: int = 0

    @classmethod
    def of(cls, dataset: ResolvedDataset) -> Layout:
        """The layout that the settings of a task name."""
        said = dataset.landing.delivery
        # An escape that is the quote itself says what RFC 4180 says anyway.
        escape = said.escape if said.escape != said.quote_character else None
        dialect = Dialect(
            delimiter=said.delimiter_character,
            null_value=said.null_value,
            quote=said.quote_character,
            escape=escape or "",
            comment=said.comment or "",
            bare_quotes=True,
        )
        names = None if said.has_header else tuple(dataset.events.columns)
        return cls(dialect, names, said.skip_lines or 0)

    def of_one_record(self) -> Layout:
        """The layout of a record's raw bytes, which hold no skipped lines."""
        return replace(self, skip_lines=0)


def open_csv(file: BinaryIO, start: int, layout: Layout) -> OpenedFile:
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


def _records(
    prefix: bytes, names: Sequence[str], rows: Iterator[bytes], dialect: Dialect
) -> Iterator[RawRecord]:
    for piece in rows:
        raw = prefix + piece
        try:
            yield raw, _record(names, piece, dialect)
        except RecordError as error:
            yield raw, error


def _record(names: Sequence[str], piece: bytes, dialect: Dialect) -> dict[str, Any]:
    row = fields(piece, dialect)
    if len(row) != len(names):
        raise RecordError("bad_csv", f"{len(row)} fields, the table has {len(names)} columns")
    return dict(zip(names, row, strict=True))


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
    if all(map(_is_boolean, texts)):
        return BOOLEAN
    return STRING


def text_type(before: DataType, texts: Sequence[str | None]) -> DataType:
    """The type of a column that has texts more, where those so far made it `before`."""
    some = [text for text in texts if text is not None]
    if isinstance(before, Void):
        return _inferred(some)
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


def _is_number(text: str) -> bool:
    return _CANONICAL_NUMBER.fullmatch(text) is not None


def _is_bigint(text: str) -> bool:
    return _CANONICAL_INTEGER.fullmatch(text) is not None and -(1 << 63) <= int(text) < 1 << 63


def _is_double(text: str) -> bool:
    """Whether the text is the spelling of a double, or an integer below its exact limit."""
    if _CANONICAL_INTEGER.fullmatch(text):
        return abs(int(text)) <= _EXACT_INTEGERS
    return _is_number(text) and repr(float(text)) == text


def _is_boolean(text: str) -> bool:
    return text in {"true", "false"}


_FITS: dict[DataType, Callable[[str], bool]] = {
    BIGINT: _is_bigint,
    DOUBLE: _is_double,
    BOOLEAN: _is_boolean,
}
