"""The rows of one Replicate file, checked against its `.dfm` file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import parquet

from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.json_lines import lines
from polynya.formats.records.opened import OpenedFile, RawRecord
from polynya.formats.records.openers import opener_of
from polynya.formats.records.separated import pieces
from polynya.formats.replicate.csv_rows import csv_records
from polynya.formats.replicate.header import LOADED, OPERATION, SEQUENCE, header_of
from polynya.formats.replicate.metadata import HEADER_COLUMNS, Metadata
from polynya.formats.replicate.tables import FileKind
from polynya.model.datatypes import BINARY, BOOLEAN, DataType

#: Key of a record's `Header`; no column has an empty name.
HEADER: Final = ""
_BOOLEANS = {"0": False, "1": True}


@dataclass(frozen=True, slots=True)
class Described:
    """A data file by its path and its `.dfm` file."""

    kind: FileKind
    is_load: bool
    metadata: Metadata


def open_replicate(
    file: BinaryIO, start: int, described: Described, *, has_header: bool
) -> OpenedFile:
    """Read a file from record `start` on.

    Returns:
        Records of the table's columns, with their `Header` under `HEADER`. The raw bytes of a CSV
        record begin with a line of all column names.

    Raises:
        UnreadableFileError: the file is not what its `.dfm` file says.
    """
    metadata = described.metadata
    _check_columns(described)
    if described.kind == "csv":
        if start == 0:
            found = sum(1 for _ in pieces(file)) - int(has_header)
            # A file without any line has no header line either.
            _check_count(max(found, 0), metadata)
        file.seek(0)
        rows = csv_records(file, metadata, has_header=has_header)
        return OpenedFile(_changes(islice(rows, start, None), described))
    if start == 0:
        _check_count(_count(file, described.kind), metadata)
    file.seek(0)
    opened = opener_of(described.kind)(file, start)
    if opened.types and set(opened.types) != set(metadata.columns):
        odd = sorted(set(opened.types) ^ set(metadata.columns))
        raise UnreadableFileError(f"its .dfm file and the file differ in the column {odd[0]!r}")
    types = {n: kind for n, kind in opened.types.items() if n not in HEADER_COLUMNS}
    return OpenedFile(_changes(opened.records, described), types)


def _check_columns(described: Described) -> None:
    lacking = {OPERATION, SEQUENCE}.difference(described.metadata.columns)
    if lacking and not described.is_load:
        raise UnreadableFileError(
            f"its .dfm file does not name the column {min(lacking)}, which changes have"
        )


def _count(file: BinaryIO, kind: FileKind) -> int:
    if kind == "json":
        return sum(1 for _ in lines(file))
    try:
        return int(parquet.ParquetFile(file).metadata.num_rows)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole Parquet file: {error}") from error


def _check_count(found: int, metadata: Metadata) -> None:
    if metadata.records is not None and found != metadata.records:
        raise UnreadableFileError(
            f"its .dfm file says {metadata.records} records, the file has {found}"
        )


def _changes(records: Iterator[RawRecord], described: Described) -> Iterator[RawRecord]:
    """Take the header columns out of the records."""
    metadata = described.metadata
    for raw, parsed in records:
        if isinstance(parsed, RecordError):
            yield raw, parsed
            continue
        try:
            yield raw, change_of(parsed, metadata, is_load=described.is_load)
        except RecordError as error:
            yield raw, error


def change_of(
    record: Mapping[str, Any], metadata: Metadata, *, is_load: bool, spelled: bool = True
) -> dict[str, Any]:
    """The columns of the table, and under `HEADER` what the record says of itself.

    Args:
        record: all columns.
        metadata: which columns there are.
        is_load: the record belongs to the full load.
        spelled: text stands for bytes and booleans as Replicate spells them.

    Raises:
        RecordError: the header makes no sense, or a column is not described.
    """
    odd = next((name for name in record if name not in metadata.bits), None)
    if odd is not None:
        raise RecordError("bad_column", f"the .dfm file does not name the column {odd[:60]!r}")
    data: dict[str, Any] = {HEADER: LOADED if is_load else header_of(record, metadata.bits)}
    for name, value in record.items():
        if name not in HEADER_COLUMNS:
            data[name] = _value(value, metadata.types.get(name)) if spelled else value
    return data


def _value(value: Any, kind: DataType | None) -> Any:
    """A text as its type spells it in Replicate: bytes in hexadecimal, booleans as 0 and 1."""
    if not isinstance(value, str):
        return value
    if kind == BOOLEAN:
        return _BOOLEANS.get(value, value)
    if kind != BINARY:
        return value
    try:
        return bytes.fromhex(value.removeprefix("0x"))
    except ValueError:
        raise RecordError("bad_value", f"{value[:40]!r} are no bytes in hexadecimal") from None
