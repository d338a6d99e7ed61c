"""The rows of one DMS file, each with its operation in `Op`, whatever the file looks like."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, BinaryIO, Final

from polynya.formats.dms.tables import DmsFile
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.opened import OpenedFile, RawRecord
from polynya.formats.records.openers import opener_of
from polynya.formats.records.separated import Dialect, fields, header_names, pieces
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.formats.dms import OPERATION

#: Marks a value that the source did not send.
UNSENT: Final = object()
#: `CsvNullValue`, where nobody sets it.
NULL_WORDS: Final = frozenset({"NULL"})
_CHANGES: Final = frozenset("IUD")
_LOADED: Final = frozenset("I")


def open_dms(file: BinaryIO, start: int, named: DmsFile, dataset: ResolvedDataset) -> OpenedFile:
    """Read a file from record `start` on.

    Returns:
        Records with `Op` first where the file has one: I, U or D in changes, I or nothing in a
        full load. The raw bytes of a CSV record hold the file's header line, if there is one.

    Raises:
        UnreadableFileError: the file is not what the settings of the task say.
    """
    if named.kind == "parquet":
        opened = opener_of("parquet")(file, start)
        if not named.is_load and OPERATION not in opened.types:
            raise UnreadableFileError(f"a file of changes has a column {OPERATION}, this has none")
        _check_operation(list(opened.types))
        types = {name: kind for name, kind in opened.types.items() if name != OPERATION}
        return OpenedFile(_operated(opened.records, named), types)
    rows = _csv_rows(file, named, dataset)
    return OpenedFile(_operated(islice(rows, start, None), named))


def reopen_dms(raw: bytes, named: DmsFile, dataset: ResolvedDataset) -> OpenedFile:
    """Read the raw bytes of one record of such a file again."""
    if named.kind == "csv":
        return open_dms(io.BytesIO(raw), 0, named, dataset)
    return OpenedFile(_operated(opener_of("json")(io.BytesIO(raw), 0).records, named))


def _operated(records: Iterator[RawRecord], named: DmsFile) -> Iterator[RawRecord]:
    """Refuse records whose operation cannot be."""
    for raw, parsed in records:
        if isinstance(parsed, RecordError):
            yield raw, parsed
            continue
        operation = parsed.get(OPERATION)
        # Text first: in Parquet it may be anything, also what cannot be in a set.
        allowed = _LOADED if named.is_load else _CHANGES
        known = str(operation) in allowed or (named.is_load and operation is None)
        if known:
            yield raw, parsed
        else:
            problem = f"operation {str(operation)[:20]!r} is not known in {_kind(named)}"
            yield raw, RecordError("unknown_op", problem)


def _kind(named: DmsFile) -> str:
    return "a full load" if named.is_load else "a file of changes"


def _csv_rows(file: BinaryIO, named: DmsFile, dataset: ResolvedDataset) -> Iterator[RawRecord]:
    unsent = dataset.landing.delivery.unsent_value
    dialect = Dialect.of(dataset.landing.delivery, null_words=NULL_WORDS - {unsent or ""})
    rows = pieces(file)
    first = next(rows, None)
    if first is None:
        return iter(())
    if dataset.landing.delivery.has_header:
        names = header_names(first, dialect)
        _check_header(names, named, dataset)
        return _records(rows, [names], dialect, unsent, prefix=first + b"\n")
    choices = _declared(named, dataset)
    _check_no_header(first, choices, dialect)
    return _records(chain([first], rows), choices, dialect, unsent, prefix=b"")


def _check_operation(names: list[str]) -> None:
    """DMS writes the operation first; elsewhere it is a column that the table has itself."""
    if OPERATION in names[1:]:
        raise UnreadableFileError(
            f"its column {OPERATION} is not the first one, so it belongs to the table and is no "
            "operation; give it another name with a transformation rule of the DMS task"
        )


def _check_header(names: list[str], named: DmsFile, dataset: ResolvedDataset) -> None:
    """A row of data must never pass for the header line."""
    if not named.is_load and names[0] != OPERATION:
        raise UnreadableFileError(
            f"the header line of a file of changes begins with {OPERATION}, this with "
            f"{names[0][:60]!r}; if the files have none, set `header: false`"
        )
    _check_operation(names)
    expected = dataset.events.keys or tuple(dataset.events.columns)[:1]
    missing = [name for name in expected if name not in names]
    if missing:
        raise UnreadableFileError(
            f"the first line does not name the column {missing[0]!r}, so it is no header line of "
            "this table; if the files have none, set `header: false`"
        )


def _declared(named: DmsFile, dataset: ResolvedDataset) -> list[list[str]]:
    """The names that the fields of a file without header line may have.

    A full load has an operation only if DMS was told so; the number of fields shows it.
    """
    if not dataset.events.columns:
        raise UnreadableFileError("it has no header line, and `columns` does not name its fields")
    names = list(dataset.events.columns)
    stamp = dataset.landing.delivery.timestamp_column
    if stamp is not None and stamp not in names:
        # DMS puts it between the operation and the columns of the table.
        names.insert(0, stamp)
    changes = [OPERATION, *names]
    return [changes, names] if named.is_load else [changes]


def _check_no_header(first: bytes, choices: Sequence[list[str]], dialect: Dialect) -> None:
    try:
        row = fields(first, dialect)
    except RecordError:
        return  # a broken record like any other
    folded = [(field or "").lower() for field in row]
    if any(folded == [name.lower() for name in names] for names in choices):
        raise UnreadableFileError("it begins with a header line, and the task says `header: false`")


def _records(
    rows: Iterator[bytes],
    choices: Sequence[list[str]],
    dialect: Dialect,
    unsent: str | None,
    *,
    prefix: bytes,
) -> Iterator[RawRecord]:
    by_length = {len(names): names for names in choices}
    for piece in rows:
        try:
            yield prefix + piece, _record(fields(piece, dialect), by_length, unsent)
        except RecordError as error:
            yield prefix + piece, error


def _record(
    row: list[str | None], by_length: dict[int, list[str]], unsent: str | None
) -> dict[str, Any]:
    names = by_length.get(len(row))
    if names is None:
        wanted = " or ".join(str(length) for length in sorted(by_length))
        raise RecordError("bad_csv", f"{len(row)} fields, not {wanted}")
    if unsent is None:
        return dict(zip(names, row, strict=True))
    return {
        name: UNSENT if value == unsent else value for name, value in zip(names, row, strict=True)
    }
