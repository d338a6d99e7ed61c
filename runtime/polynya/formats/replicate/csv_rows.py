"""CSV files of Replicate: the header line has to name the columns of the `.dfm` file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.opened import RawRecord
from polynya.formats.records.separated import Dialect, fields, pieces
from polynya.formats.replicate.metadata import Metadata


def _rows_of(file: BinaryIO, metadata: Metadata, *, has_header: bool) -> Iterator[bytes]:
    """The rows of a CSV file, after its header line."""
    rows = pieces(file)
    first = next(rows, None)
    if first is None:
        return
    is_header = _is_header(first, metadata)
    if has_header and not is_header:
        raise UnreadableFileError(
            "the first line does not name the columns of its .dfm file; if the files have no "
            "header line, set `header: false`"
        )
    if not has_header:
        if is_header:
            raise UnreadableFileError(
                "it begins with a header line, and the task says `header: false`"
            )
        yield first
    yield from rows


def _is_header(first: bytes, metadata: Metadata) -> bool:
    """Whether a line has the names, each alone or with its type after a colon."""
    try:
        row = fields(first, Dialect(metadata.dialect.delimiter))
    except RecordError:
        return False
    # A type such as NUMERIC(10,2) may have been written without quotes around its comma.
    return any(_names(line, metadata) for line in (row, _joined(row, metadata.dialect)))


def _names(row: list[str | None], metadata: Metadata) -> bool:
    return len(row) == len(metadata.columns) and all(
        field is not None and (field == name or field.startswith(f"{name}:"))
        for field, name in zip(row, metadata.columns, strict=True)
    )


def _joined(row: list[str | None], dialect: Dialect) -> list[str | None]:
    """Fields of a header line, with those put together that a comma inside brackets split."""
    joined: list[str | None] = []
    for field in row:
        last = joined[-1] if joined else None
        if last is not None and field is not None and last.count("(") > last.count(")"):
            joined[-1] = f"{last}{dialect.delimiter}{field}"
        else:
            joined.append(field)
    return joined


def csv_records(file: BinaryIO, metadata: Metadata, *, has_header: bool) -> Iterator[RawRecord]:
    """The records of a file with all their columns.

    Iterating raises UnreadableFileError when the header line is not what was told.
    """
    prefix = names_line(metadata) + b"\n"
    for piece in _rows_of(file, metadata, has_header=has_header):
        try:
            yield prefix + piece, _csv_record(piece, metadata)
        except RecordError as error:
            yield prefix + piece, error


def _csv_record(piece: bytes, metadata: Metadata) -> dict[str, Any]:
    row = fields(piece, metadata.dialect)
    if len(row) != len(metadata.columns):
        problem = f"{len(row)} fields, its .dfm file names {len(metadata.columns)} columns"
        raise RecordError("bad_csv", problem)
    return dict(zip(metadata.columns, row, strict=True))


def names_line(metadata: Metadata) -> bytes:
    """A line of all column names, quoted: what raw CSV records begin with."""
    quoted = ('"' + name.replace('"', '""') + '"' for name in metadata.columns)
    return metadata.dialect.delimiter.join(quoted).encode()
