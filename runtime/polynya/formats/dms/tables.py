"""What the path of a DMS file says: its table, format, full load or changes, place in the order.

DMS writes changes in the order of their commits and names each file by the time of its first one,
so the name and the row inside the file are an order that the source itself gives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, TypeAlias

from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.folders import NoTable, TableOf
from polynya.formats.values.instants import datetime_micros
from polynya.model.config.delivery import Delivery

FileKind: TypeAlias = Literal["csv", "parquet"]

_LOAD = re.compile(r"LOAD[0-9A-Za-z_]*", re.ASCII)
_CHANGES = re.compile(r"([0-9]{8})-([0-9]{6})([0-9]{0,6})", re.ASCII)
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
    match = _CHANGES.fullmatch(name)
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
