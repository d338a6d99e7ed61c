"""The `.dfm` file of a Replicate data file: columns, types and keys.

A data file without a matching `.dfm` file is not read at all. Types and keys come from there, so a
wrong one would put values into the wrong columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.opening import source_of
from polynya.formats.records.csv import CsvDialect
from polynya.formats.records.json import parse_object
from polynya.formats.replicate.tables import metadata_path
from polynya.model.config.settings import Delivery
from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
)
from polynya.store.object_store import ObjectStore

_TYPES: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "INT1": INT,
    "INT2": INT,
    "INT4": INT,
    "INT8": BIGINT,
    "UINT1": INT,
    "UINT2": INT,
    "UINT4": BIGINT,
    "UINT8": Decimal(20, 0),
    "REAL4": FLOAT,
    "REAL8": DOUBLE,
    "STRING": STRING,
    "WSTRING": STRING,
    "CLOB": STRING,
    "NCLOB": STRING,
    "TIME": STRING,
    "BYTES": BINARY,
    "BLOB": BINARY,
    "DATE": DATE,
    "DATETIME": TIMESTAMP,
}


def column_type(name: Any, precision: int, scale: int) -> DataType | None:
    """The column type of a Replicate type, None where the values have to decide."""
    folded = str(name).upper()
    if folded != "NUMERIC":
        return _TYPES.get(folded)
    fits = 1 <= precision <= MAX_PRECISION and scale <= precision
    return Decimal(precision, scale) if fits else None


HEADER_PREFIX: Final = "header__"
#: All that Replicate writes; a table may have columns of its own that begin like them.
HEADER_COLUMNS: Final = frozenset(
    f"{HEADER_PREFIX}{name}"
    for name in (
        "change_seq", "change_oper", "change_mask", "stream_position", "operation",
        "transaction_id", "timestamp",
    )
)  # fmt: skip
_MAX_METADATA_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a `.dfm` file says of its data file.

    Attributes:
        columns: all columns in the order of the file, those of the header too.
        types: of the columns of the table; without those whose type is not known here.
        keys: key columns in the order of the key.
        bits: by column, its bit in a change mask, 0 for the lowest.
        dialect: how CSV is written.
        records: number of records in the file, None where it does not say.
    """

    columns: tuple[str, ...]
    types: Mapping[str, DataType]
    keys: tuple[str, ...]
    bits: Mapping[str, int]
    dialect: CsvDialect
    records: int | None


def read_metadata(source: ObjectStore, path: str, delivery: Delivery) -> Metadata:
    """Read the `.dfm` file of the data file `path`; `delivery` fills in what it leaves open.

    Raises:
        UnreadableFileError: there is none, it is broken, or it describes another file.
    """
    where = metadata_path(path)
    try:
        with source_of(source, where) as file:
            content = file.read(_MAX_METADATA_BYTES + 1)
    except UnreadableFileError as error:
        raise UnreadableFileError(f"its .dfm file {error}") from error
    if len(content) > _MAX_METADATA_BYTES:
        raise UnreadableFileError("its .dfm file is larger than any that describes columns")
    try:
        document = parse_object(content.removeprefix(b"\xef\xbb\xbf"))
    except RecordError as error:
        raise UnreadableFileError(f"its .dfm file cannot be read: {error.error}") from error
    info = _section(document, "fileInfo")
    _check_name(info, path.rpartition("/")[2])
    columns = _columns(_section(document, "dataInfo").get("columns"))
    return Metadata(
        columns=tuple(column.name for column in columns),
        types={c.name: c.type for c in columns if c.type is not None and not c.is_header},
        keys=_keys(columns),
        bits={column.name: column.ordinal - 1 for column in columns},
        dialect=_dialect(_section(document, "formatInfo").get("options"), delivery),
        records=_whole(info.get("recordCount"), "recordCount"),
    )


@dataclass(frozen=True, slots=True)
class _Column:
    ordinal: int
    name: str
    type: DataType | None
    key: int

    @property
    def is_header(self) -> bool:
        return self.name in HEADER_COLUMNS


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise _broken(f"`{name}` is not an object")
    return section


def _check_name(info: Mapping[str, Any], file: str) -> None:
    name, extension = info.get("name"), info.get("extension")
    if name is None:
        return
    # Both `LOAD1` with `.csv` and `LOAD1.csv` with `gz` are written.
    ending = str(extension or "").lstrip(".")
    stem = file.partition(".")[0]
    if str(name) not in {file, stem, file.removesuffix(f".{ending}")}:
        raise UnreadableFileError(f"its .dfm file describes {str(name)[:80]!r}, not this file")


def _columns(listed: Any) -> list[_Column]:
    if not isinstance(listed, list) or not listed:
        raise _broken("`dataInfo.columns` lists no columns")
    columns = [_column(entry, index) for index, entry in enumerate(listed)]
    for what, values in (
        ("name", [column.name for column in columns]),
        ("ordinal", [column.ordinal for column in columns]),
    ):
        if len(set(values)) != len(values):
            raise _broken(f"two columns have the same {what}")
    return sorted(columns, key=lambda column: column.ordinal)


def _column(entry: Any, index: int) -> _Column:
    if not isinstance(entry, dict):
        raise _broken(f"column {index + 1} is not an object")
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise _broken(f"column {index + 1} has no name")
    ordinal = _whole(entry.get("ordinal"), "ordinal")
    if ordinal is None:
        ordinal = index + 1
    if not 1 <= ordinal <= 100_000:
        raise _broken(f"column {name[:60]!r} has the ordinal {ordinal}")
    precision = _whole(entry.get("precision"), "precision") or 0
    kind = column_type(entry.get("type"), precision, _whole(entry.get("scale"), "scale") or 0)
    return _Column(ordinal, name, kind, _whole(entry.get("primaryKeyPos"), "primaryKeyPos") or 0)


def _keys(columns: Sequence[_Column]) -> tuple[str, ...]:
    keys = sorted((c for c in columns if c.key and not c.is_header), key=lambda c: c.key)
    return tuple(column.name for column in keys)


def _dialect(options: Any, delivery: Delivery) -> CsvDialect:
    settings = CsvDialect.of(delivery)
    if not isinstance(options, dict):
        return settings
    delimiter = options.get("fieldDelimiter", settings.delimiter)
    null = options.get("nullValue", settings.null_value)
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise _unsupported("fieldDelimiter", delimiter)
    if not isinstance(null, str):
        raise _unsupported("nullValue", null)
    for option, allowed in (
        ("recordDelimiter", {"\n", "\r\n"}),
        ("quoteChar", {'"'}),
        ("escapeChar", {"", '"'}),
    ):
        value = options.get(option)
        if value is not None and str(value) not in allowed:
            raise _unsupported(option, value)
    return CsvDialect(delimiter, null)


def _whole(value: Any, what: str) -> int | None:
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise _broken(f"`{what}` is {str(value)[:40]!r}, not a number")
    return value


def _broken(problem: str) -> UnreadableFileError:
    return UnreadableFileError(f"its .dfm file is broken: {problem}")


def _unsupported(option: str, value: Any) -> UnreadableFileError:
    return UnreadableFileError(
        f"its .dfm file says `{option}` {str(value)[:20]!r}; files like that cannot be read"
    )
