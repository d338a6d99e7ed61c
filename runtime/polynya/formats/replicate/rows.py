"""Rows of Replicate files: `header__` columns, before images, CSV checks.

A before image is the row that an update replaced, with the change sequence of that update. It is
left out unless its key differs from the key of the update. In that case the record moved: the
before image becomes a delete of the old key and the update an insert of the new key. The insert
remembers the old key, which carries over columns without a sent value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import parquet

from polynya.formats.batch import NO_ORDER, Rejected
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.columnar import OpenedFile, RawRecord
from polynya.formats.records.csv import CsvDialect, fields, pieces
from polynya.formats.records.json import lines
from polynya.formats.records.openers import opener_of
from polynya.formats.replicate.metadata import HEADER_COLUMNS, HEADER_PREFIX, Metadata
from polynya.formats.replicate.tables import FileKind
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.exact import shown
from polynya.formats.values.sequence import time_micros
from polynya.model.types import BINARY, BOOLEAN, DataType


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
        row = fields(first, CsvDialect(metadata.dialect.delimiter))
    except RecordError:
        return False
    # A type such as NUMERIC(10,2) may have been written without quotes around its comma.
    return any(_names(line, metadata) for line in (row, _joined(row, metadata.dialect)))


def _names(row: list[str | None], metadata: Metadata) -> bool:
    return len(row) == len(metadata.columns) and all(
        field is not None and (field == name or field.startswith(f"{name}:"))
        for field, name in zip(row, metadata.columns, strict=True)
    )


def _joined(row: list[str | None], dialect: CsvDialect) -> list[str | None]:
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


SEQUENCE: Final = f"{HEADER_PREFIX}change_seq"
OPERATION: Final = f"{HEADER_PREFIX}change_oper"
_LONG_OPERATION = f"{HEADER_PREFIX}operation"
MASK: Final = f"{HEADER_PREFIX}change_mask"
_TIMESTAMP = f"{HEADER_PREFIX}timestamp"

#: 16 digits of time and 19 of the change: a change identifier as it is.
_CHANGE_SEQUENCE = re.compile(r"[0-9]{35}", re.ASCII)
_HEX = re.compile(r"(?:0[xX])?([0-9A-Fa-f]{1,8192})", re.ASCII)
_OPERATIONS = frozenset("IUDB")
_TRUNCATE = "TRUNCATE"

BEFORE_IMAGE: Final = "B"


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """What a record says of itself.

    Attributes:
        operation: L I U D, T for a truncate, B for the state before an update.
        sequence: 35 digits that sort as the changes happened.
        micros: time of the change in microseconds since 1970 UTC, None where it is not known.
        unsent: columns of an update that keep the value valid just before.
    """

    operation: str
    sequence: str
    micros: int | None = None
    unsent: tuple[str, ...] = ()


#: Of every row of a full load.
LOADED: Final = RecordHeader("L", NO_ORDER)


def header_of(record: Mapping[str, Any], bits: Mapping[str, int]) -> RecordHeader:
    """Read the header columns of a change; `bits` are those of the columns in a change mask.

    Raises:
        RecordError: unknown_op, null_sequence, bad_sequence, bad_timestamp or bad_header.
    """
    operation = _operation(record)
    changed = _mask(record.get(MASK), bits)
    return RecordHeader(
        operation,
        _sequence(record.get(SEQUENCE)),
        _micros(record.get(_TIMESTAMP)),
        _unsent(record, bits, changed) if operation == "U" and changed is not None else (),
    )


def _operation(record: Mapping[str, Any]) -> str:
    if str(record.get(_LONG_OPERATION)).upper() == _TRUNCATE:
        return "T"
    # Text first: in JSON it may be anything, also what cannot be in a set.
    operation = str(record.get(OPERATION))
    if operation not in _OPERATIONS:
        raise RecordError("unknown_op", f"operation {operation[:20]!r} is not known")
    return operation


def _sequence(value: Any) -> str:
    if value is None:
        raise RecordError("null_sequence", f"{SEQUENCE} is NULL")
    if not isinstance(value, str) or not _CHANGE_SEQUENCE.fullmatch(value):
        raise RecordError("bad_sequence", f"{SEQUENCE} {shown(value)} has not 35 digits")
    return value


def _micros(value: Any) -> int | None:
    try:
        return None if value is None else time_micros(value)
    except (ValueError, OverflowError) as error:
        raise RecordError("bad_timestamp", f"{_TIMESTAMP}: {error}") from None


def _mask(value: Any, bits: Mapping[str, int]) -> int | None:
    """The mask as a number whose lowest bit belongs to the first column; None when it is empty.

    Text is a hexadecimal number; bytes begin with the lowest bits.
    """
    if value is None or value == "":
        return None
    if isinstance(value, bytes):
        mask = int.from_bytes(value, "little")
    else:
        match = _HEX.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise RecordError("bad_header", f"{MASK} {shown(value)} is not a hexadecimal number")
        mask = int(match[1], 16)
    if mask.bit_length() > max(bits.values(), default=-1) + 1:
        raise RecordError("bad_header", f"{MASK} has more bits than there are columns")
    return mask or None


def _unsent(record: Mapping[str, Any], bits: Mapping[str, int], changed: int) -> tuple[str, ...]:
    """Columns that did not change, by the mask, and are NULL.

    Either the source did not log them, or they were NULL before: the value before is right.
    """
    return tuple(
        name
        for name, value in record.items()
        if value is None and not changed >> bits[name] & 1 and name not in HEADER_COLUMNS
    )


#: Key of a record's `RecordHeader`; no column has an empty name.
HEADER: Final = ""
_BOOLEANS = {"0": False, "1": True}


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A data file by its path and its `.dfm` file."""

    kind: FileKind
    is_load: bool
    metadata: Metadata


def open_replicate(
    file: BinaryIO, start: int, described: DescribedFile, *, has_header: bool
) -> OpenedFile:
    """Read a file from record `start` on.

    Returns:
        Records of the table's columns, with their `RecordHeader` under `HEADER`. The raw bytes of a
        CSV record begin with a line of all column names.

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


def _check_columns(described: DescribedFile) -> None:
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


def _changes(records: Iterator[RawRecord], described: DescribedFile) -> Iterator[RawRecord]:
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
        raise RecordError("bad_value", f"{value[:40]!r} are not bytes in hexadecimal") from None


@dataclass(slots=True)
class Row:
    """One record that is kept; `old_key` has one value a key column.

    `moved` tells that the record came to its key by an update: that comes after the delete of the
    old key, which has the same sequence.
    """

    index: int
    header: RecordHeader
    record: dict[str, Any]
    raw: bytes
    old_key: tuple[Any, ...] | None = None

    @property
    def moved(self) -> bool:
        """Whether the update changed the key."""
        return self.old_key is not None


def paired(buffer: RecordBuffer, keys: Sequence[str], kind: str) -> tuple[list[Row], int]:
    """Put before images and their updates together; `kind` is the format of the files.

    Returns:
        The rows that stay, in their order, and how many before images were left out. One without
        its update, or without a key, is rejected in `buffer`.
    """
    rows = [
        Row(index, record.pop(HEADER), record, raw)
        for index, (record, raw) in enumerate(zip(buffer.records, buffer.raws, strict=True))
    ]
    updates = {row.header.sequence: row for row in rows if row.header.operation == "U"}
    kept: list[Row] = []
    filtered = 0
    for row in rows:
        if row.header.operation != BEFORE_IMAGE:
            kept.append(row)
            continue
        update = updates.get(row.header.sequence)
        problem = _problem(row, update, keys)
        if problem is not None:
            buffer.rejected.append(_rejected(buffer, row, problem))
        elif update is None or not _moves(row, update, keys):
            filtered += 1
        else:
            kept.append(_deleted(row, keys))
            update.old_key = key_of(row.record, keys)
            # Read again from quarantine, the update needs its before image too.
            update.raw = joined_raw(row.raw, update.raw, kind)
    return kept, filtered


def joined_raw(before: bytes, after: bytes, kind: str) -> bytes:
    """The raw bytes of two records; CSV records begin with a line of names, which stays once."""
    if kind == "csv":
        names, _, _ = before.partition(b"\n")
        after = after.removeprefix(names + b"\n")
    return before + b"\n" + after


def key_of(record: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    """The key columns of a record, as the file spells them."""
    return tuple(record.get(name) for name in keys)


def _problem(row: Row, update: Row | None, keys: Sequence[str]) -> RecordError | None:
    if not keys:
        return None  # nothing to move: every event is a row of its own
    if update is None:
        return RecordError("no_after", "a before image without its update")
    if None in key_of(row.record, keys):
        return RecordError("null_key", "a before image without its key")
    return None


def _moves(row: Row, update: Row, keys: Sequence[str]) -> bool:
    return bool(keys) and key_of(row.record, keys) != key_of(update.record, keys)


def _deleted(row: Row, keys: Sequence[str]) -> Row:
    """The delete of the old key; other values are not needed and could only be refused."""
    record = {name: row.record[name] for name in keys}
    return Row(row.index, replace(row.header, operation="D", unsent=()), record, row.raw)


def _rejected(buffer: RecordBuffer, row: Row, problem: RecordError) -> Rejected:
    return Rejected(
        buffer.files[row.index], buffer.offsets[row.index], problem.rule, problem.error, row.raw
    )
