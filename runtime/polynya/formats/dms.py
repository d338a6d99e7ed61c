"""AWS DMS: file names, order, reading, and the format of the protocol.

DMS writes changes in commit order and names each file by the time of its first change. So the name
of the file and the row inside it are an order that the source itself gives.

| settings | order of changes |
|---|---|
| `sequence_by` | its columns; equal ones by file and row |
| `timestamp_column` | time of the commit, then file and row |
| neither | file and row |

Rows of a full load sort before all changes: the changes that DMS caches during the load may have
been committed before the load read their rows.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from typing_extensions import override

from polynya.formats.base import LandingFormat, ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import NO_ORDER, BatchLimits, DatasetBatch, FilePart, FileProgress
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.files import (
    Discovery,
    Folders,
    NoTable,
    TableOf,
    by_kind,
    full_load_of,
    sorted_out,
    unread,
)
from polynya.formats.opening import landed_file
from polynya.formats.records.columnar import OpenedFile, RawRecord
from polynya.formats.records.csv import CsvDialect, fields, header_names, pieces
from polynya.formats.records.openers import builder_of, opener_of
from polynya.formats.values import times
from polynya.formats.values.batches import Extras, Placement, batch_of, settled
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Faults, TypedColumn
from polynya.formats.values.rows import ColumnTypes, Evolving, ObservedTypes
from polynya.formats.values.sequence import RecordOrder, order_by, times_of
from polynya.formats.values.times import datetime_micros
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import Delivery
from polynya.model.config.sources import included
from polynya.model.config.task import StorageTask
from polynya.model.formats import OPERATION
from polynya.model.types import TIMESTAMP, DataType
from polynya.store.object_store import ObjectInfo

FileKind: TypeAlias = Literal["csv", "parquet"]

_LOAD = re.compile(r"LOAD[0-9A-Za-z_]*", re.ASCII)
_CHANGE_FILE_NAME = re.compile(r"([0-9]{8})-([0-9]{6})([0-9]{0,6})", re.ASCII)
_ENDINGS: dict[str, FileKind] = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet"}

#: Control tables that DMS keeps in the target, such as `awsdms_status`.
_CONTROL_PREFIX = "awsdms_"


@dataclass(frozen=True, slots=True)
class DmsFile:
    """One file by its name.

    Attributes:
        kind: how its bytes are written.
        place: 20 digits that sort as the files of changes were written,
            `YYYYMMDDHHmmSS` and the fraction of a second; None for a full load.
        micros: the same time in microseconds since 1970 UTC.
    """

    kind: FileKind
    place: str | None
    micros: int | None

    @property
    def is_load(self) -> bool:
        """Whether the file belongs to the full load."""
        return self.place is None


@lru_cache(maxsize=4096)
def dms_file(path: str) -> DmsFile:
    """Read the name of a file.

    Raises:
        UnreadableFileError: DMS gives no such names, so the file has no place in the order.
    """
    kind = kind_of(path)
    name = path.rpartition("/")[2].partition(".")[0]
    if _LOAD.fullmatch(name):
        return DmsFile(kind, None, None)
    match = _CHANGE_FILE_NAME.fullmatch(name)
    if match is None:
        raise UnreadableFileError(
            f"{name!r} is neither LOAD and a number nor the time of a change "
            "(20260131-235959123), so its rows have no place in the order"
        )
    day, clock, fraction = match.groups()
    try:
        second = datetime.strptime(day + clock, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError as error:
        raise UnreadableFileError(f"the name says a time that is none: {error}") from None
    micros = datetime_micros(second) + int(fraction.ljust(6, "0"))
    return DmsFile(kind, f"{day}{clock}{fraction:0<6}", micros)


def kind_of(path: str) -> FileKind:
    """The format of a file by the ending of its name. Raises UnreadableFileError."""
    name = path.rpartition("/")[2]
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending):
            return kind
    raise UnreadableFileError(f"the name ends with none of {', '.join(_ENDINGS)}")


def table_of_dms(delivery: Delivery) -> TableOf:
    """Tables have their folder in the folder of their schema, also below `cdc_path`."""
    changes = () if delivery.cdc_path is None else tuple(delivery.cdc_path.split("/"))

    def table_of(path: str) -> str | NoTable:
        parts = path.split("/")
        if changes and tuple(parts[: len(changes)]) == changes:
            parts = parts[len(changes) :]
        if len(parts) < 3:
            return NoTable.UNPLACED
        schema, table = parts[:2]
        is_control = table.lower().startswith(_CONTROL_PREFIX)
        return NoTable.CONTROL if is_control else f"{schema}.{table}"

    return table_of


def reading_order(path: str) -> tuple[int, str, str]:
    """Sort key: the full load first, then changes as they were written, then foreign names."""
    try:
        file = dms_file(path)
    except UnreadableFileError:
        return 2, "", path
    return (0, "", path) if file.place is None else (1, file.place, path)


def is_load(path: str) -> bool:
    """Whether a file belongs to the full load."""
    return reading_order(path)[0] == 0


def placed(
    columns: Mapping[str, TypedColumn],
    dataset: ResolvedDataset,
    files: Sequence[DmsFile],
    offsets: Sequence[int],
) -> Placement:
    """Where the rows stand; `files` and `offsets` say where they were read, one entry a row."""
    count = len(files)
    stamp = dataset.landing.delivery.timestamp_column
    commits, faults = times_of(columns, stamp, (), count)
    if dataset.events.sequence_by:
        order = order_by(columns, dataset.events.sequence_by, [file.is_load for file in files])
    elif stamp is not None:
        order = _by_commit(commits, files, offsets)
    else:
        order = _by_file(files, offsets)
    loads = [index for index, file in enumerate(files) if file.is_load]
    for index in loads:
        order.identifiers[index], order.tails[index] = NO_ORDER, None
        order.faults.pop(index, None)
    times, time_faults = _times(columns, dataset, commits, files)
    return Placement(
        order.identifiers,
        order.tails,
        [_position(file, offset) for file, offset in zip(files, offsets, strict=True)],
        times,
        {**order.faults, **time_faults, **faults},
    )


def place_of_load(began: datetime, dataset: ResolvedDataset) -> str | None:
    """How the change identifiers of that time begin: 20 digits to the microsecond.

    None where `sequence_by` orders the changes.
    """
    if dataset.events.sequence_by:
        return None
    stamp = times.stamp(times.datetime_micros(began))
    # Between hundredths and microseconds `stamp` has nothing but zeros.
    return f"{stamp[:16]}{stamp[-4:]}"


def _position(file: DmsFile, offset: int) -> str | None:
    return None if file.place is None else f"{file.place}{offset:010d}"


def _by_file(files: Sequence[DmsFile], offsets: Sequence[int]) -> RecordOrder:
    """20 digits of the file's name and 15 of the row: 35 in all."""
    identifiers: list[str | None] = [
        f"{file.place}{offset:015d}" for file, offset in zip(files, offsets, strict=True)
    ]
    return RecordOrder(identifiers, [None] * len(identifiers), {})


def _by_commit(
    commits: Sequence[int | None], files: Sequence[DmsFile], offsets: Sequence[int]
) -> RecordOrder:
    """20 digits of the commit in microseconds, 20 of the file, 10 of the row: 50 in all."""
    identifiers: list[str | None] = []
    faults: Faults = {}
    for index, (micros, file, offset) in enumerate(zip(commits, files, offsets, strict=True)):
        if micros is None:
            identifiers.append(None)
            faults[index] = ("null_sequence", "the timestamp column is NULL")
            continue
        stamp = times.stamp(micros)
        # Between hundredths and microseconds `stamp` has nothing but zeros.
        identifiers.append(f"{stamp[:16]}{stamp[-4:]}{file.place}{offset:010d}")
    return RecordOrder(identifiers, [None] * len(identifiers), faults)


def _times(
    columns: Mapping[str, TypedColumn],
    dataset: ResolvedDataset,
    commits: list[int | None],
    files: Sequence[DmsFile],
) -> tuple[list[int | None], Faults]:
    """The `timestamp` setting, else the commit, else the time in the file's name."""
    if dataset.events.timestamp is not None:
        return times_of(columns, dataset.events.timestamp, (), len(files))
    if dataset.landing.delivery.timestamp_column is not None:
        return commits, {}
    sequence, faults = times_of(columns, None, dataset.events.sequence_by, len(files))
    times = [
        file.micros if micros is None else micros
        for micros, file in zip(sequence, files, strict=True)
    ]
    return times, faults


#: Marks a value that the source did not send.
UNSENT: Final = object()
#: `CsvNullValue`, where nobody sets it.
NULL_WORDS: Final = frozenset({"NULL"})
_CHANGE_CODES: Final = frozenset("IUD")
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
    """Read the raw bytes of one record of a DMS file again."""
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
        allowed = _LOADED if named.is_load else _CHANGE_CODES
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
    dialect = CsvDialect.of(dataset.landing.delivery, null_words=NULL_WORDS - {unsent or ""})
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
            f"the first line does not name the column {missing[0]!r}, so it is not a header line "
            "of this table; if the files have none, set `header: false`"
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


def _check_no_header(first: bytes, choices: Sequence[list[str]], dialect: CsvDialect) -> None:
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
    dialect: CsvDialect,
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


def read_dms(request: ReadRequest) -> DatasetBatch:
    """Read the next batch; see `Format.read`.

    The batch also ends before a file of another format: text and typed values settle in different
    ways. Operations are L, I, U and D.
    """
    dataset, known = request.table.dataset, request.table.schema
    buffer = RecordBuffer(request.limits)
    observed = ObservedTypes()
    kind: str | None = None
    for part in request.files:
        if buffer.is_full:
            break
        try:
            own = kind_of(part.path)
            if kind is not None and own != kind:
                break
            _take_file(request, part, buffer, observed)
            kind = own
        except UnreadableFileError as error:
            buffer.refuse_file(part, str(error))
    types = observed.column_types(
        known,
        declared_types(dataset),
        dataset.policies.schema_evolution,
        excluded=dataset.events.except_columns,
    )
    return to_batch(buffer, dataset, types, kind or "csv")


def _take_file(
    request: ReadRequest, part: FilePart, buffer: RecordBuffer, observed: ObservedTypes
) -> None:
    named = dms_file(part.path)
    with landed_file(request.store, part.path, named.kind) as file:
        opened = open_dms(file, part.start, named, request.table.dataset)
        buffer.take(part, opened.records)
        # Not before: a file that turns out to be damaged has no say in the types.
        observed.learn(opened.types)


def declared_types(dataset: ResolvedDataset) -> dict[str, DataType]:
    """What the configuration says of types: the time of the commit is always a time."""
    stamp = dataset.landing.delivery.timestamp_column
    return {**({} if stamp is None else {stamp: TIMESTAMP}), **dataset.events.columns}


def to_batch(
    buffer: RecordBuffer, dataset: ResolvedDataset, types: ColumnTypes, kind: str
) -> DatasetBatch:
    """Take the operations out of the records, then type and place the rest.

    `kind` is the format of the files.
    """
    files = [dms_file(path) for path in buffer.files]
    operations: list[str | None] = []
    for record, file in zip(buffer.records, files, strict=True):
        operation = record.pop(OPERATION, None)
        operations.append("L" if file.is_load else operation)
    unsent = _unsent(buffer) if dataset.landing.delivery.unsent_value is not None else []

    def place(columns: Mapping[str, TypedColumn]) -> Placement:
        return placed(columns, dataset, files, buffer.offsets)

    done = settled(buffer.records, types, builder_of(kind), place, needed=dataset.events.keys)
    return batch_of(buffer, done, dataset.events.keys, Extras(operations, unsent))


def _unsent(buffer: RecordBuffer) -> list[list[str] | None]:
    """Names of the columns that were not sent, for each record; their values become None."""
    found: list[list[str] | None] = []
    for record in buffer.records:
        names = [name for name, value in record.items() if value is UNSENT]
        record.update(dict.fromkeys(names))
        found.append(names or None)
    return found


def groups_of(files: Collection[str]) -> list[set[str]]:
    """Files of one kind make one batch."""
    return by_kind(files, kind_of)


def reread_dms(request: RereadRequest) -> DatasetBatch:
    """Read records of one group again, as one batch."""
    dataset, known = request.table.dataset, request.table.schema
    buffer = RecordBuffer(BatchLimits())
    kind = "csv"
    for record in request.records:
        named = dms_file(record.file)
        kind = named.kind
        try:
            for _, parsed in reopen_dms(record.raw, named, dataset).records:
                buffer.add(record.file, record.offset, record.raw, parsed)
        except UnreadableFileError as error:
            refused = RecordError("bad_csv", str(error))
            buffer.add(record.file, record.offset, record.raw, refused)
    # JSON spells binary, decimals and times as text: the types of the table say what they are.
    declared = {**({} if kind == "csv" else known), **declared_types(dataset)}
    evolving = Evolving(
        dataset.policies.schema_evolution,
        frozenset(declared_types(dataset)),
        excluded=frozenset(dataset.events.except_columns),
    )
    types = ColumnTypes(known, declared, evolving=evolving)
    return to_batch(buffer, dataset, types, kind)


class DmsFormat(LandingFormat):
    """Files of AWS DMS on S3."""

    def __init__(self, task: StorageTask) -> None:
        self._root = task.landing.path
        self._table_of = table_of_dms(task.landing)
        self._included = partial(included, task)

    @override
    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        return sorted_out(landed, self._root, self._table_of, self._included)

    @override
    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """The full load, then changes as they were written."""
        del dataset
        found = unread(landed, done)
        files = sorted(found.files, key=lambda part: reading_order(part.path))
        return replace(found, files=tuple(files))

    @override
    def read(self, request: ReadRequest) -> ReadBatch:
        return ReadBatch({request.table.source: read_dms(request)})

    @override
    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """CSV and Parquet apart."""
        del dataset
        return groups_of(files)

    @override
    def reread(self, request: RereadRequest) -> ReadBatch:
        return ReadBatch({request.table.source: reread_dms(request)})

    @override
    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """The files that DMS calls LOAD and a number."""
        return full_load_of(landed, dataset, glob, table_of=self._table_of, is_load=is_load)

    @override
    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        """Changes begin with their time, unless `sequence_by` orders them."""
        return place_of_load(began, dataset)
