"""The stored rows of single records: their events and versions, with header columns. No JVM.

Only rows of these records are read; see `StoredRows.matching`. Events that concern every record,
truncates that are pending or kept, come with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from pyiceberg.table import Table

from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.fold.fold import TruncateEvent
from polynya.lake.fold.shape import Shape
from polynya.lake.read.inspect import states
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.promotion import storage_type
from polynya.model.types import BINARY
from polynya.query.committed_rows import RowLimits
from polynya.query.stored_rows import StoredRows

#: What may be looked through for the rows of a record.
RECORD_LIMITS: Final = RowLimits(rows=50_000_000, file_bytes=2**40, memory_bytes=256 * 2**20)
_STORED: Final = (Partition.CURRENT, Partition.PRIOR, Partition.CHANGES, Partition.RETAINED)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EVENTS: Final = (Partition.CHANGES, Partition.RETAINED)
#: The header columns of events and versions.
ROW_HEADERS: Final = (
    h.PARTITION,
    h.CHANGE_IDENTIFIER,
    h.SEQUENCE_TAIL,
    h.SOURCE_POSITION,
    h.OPERATION,
    h.TIMESTAMP,
    h.FROM_TIMESTAMP,
    h.TO_TIMESTAMP,
    h.INSERTED_TIMESTAMP,
    h.MODIFIED_TIMESTAMP,
    h.WAS_CURRENT_FROM,
    h.WAS_CURRENT_TO,
    h.UNSENT,
    h.COPY_CHANGE_IDENTIFIER,
)


def key_values(shape: Shape, given: Mapping[str, str]) -> dict[str, pa.Array]:
    """The values of a key that was given as text, in the types of its columns.

    Raises ValueError, with a sentence, for columns that are missing or none of the key, and for
    values that no such column can have.
    """
    if not shape.keys:
        raise ValueError("the dataset has no keys")
    if set(given) != set(shape.keys):
        raise ValueError(f"the key is of {', '.join(given) or 'no column'}")
    found = {}
    for name in shape.keys:
        kind = storage_type(shape.columns[name])
        text = given[name]
        try:
            if kind == BINARY:
                found[name] = pa.array([bytes.fromhex(text)], pa.binary())
            else:
                found[name] = pa.array([text], pa.string()).cast(arrow_type(kind))
        except (pa.ArrowException, ValueError) as error:
            raise ValueError(f"{name} is {kind}, and cannot be {text[:100]!r}") from error
    return found


def record_rows(
    table: Table,
    shape: Shape,
    values: Mapping[str, pa.Array],
    limits: RowLimits = RECORD_LIMITS,
) -> pa.Table:
    """Events and versions whose columns have these values: ROW_HEADERS, then the data columns.

    Raises NotEmbeddedError for more than the limits, and for what only Spark can read.
    """
    there = set(table.schema().column_names)
    columns = [name for name in (*ROW_HEADERS, *shape.columns) if name in there]
    rows = StoredRows(table, limits).matching(columns, _STORED, values)
    return _in_order(rows, columns)


def truncates(table: Table, limits: RowLimits = RECORD_LIMITS) -> list[dict[str, Any]]:
    """All truncates, as rows with header columns: pending, kept, and those of the table's state.

    Of the last ones only their place and time are known. Raises as `record_rows`.
    """
    there = set(table.schema().column_names)
    columns = [name for name in ROW_HEADERS if name in there]
    wanted = {h.OPERATION: pa.array(["T"])}
    found: list[dict[str, Any]] = (
        StoredRows(table, limits).matching(columns, _EVENTS, wanted).to_pylist()
    )
    known = {(one[h.CHANGE_IDENTIFIER], one.get(h.SEQUENCE_TAIL) or "") for one in found}
    applied = states(table)[1].truncates
    return found + [
        truncate_row(one) for one in applied if (one.change_identifier, one.tail or "") not in known
    ]


def truncate_row(one: TruncateEvent) -> dict[str, Any]:
    """A truncate of a table's state as a row of an event that was applied."""
    return {
        h.PARTITION: str(Partition.RETAINED),
        h.CHANGE_IDENTIFIER: one.change_identifier,
        h.SEQUENCE_TAIL: one.tail,
        h.OPERATION: "T",
        h.TIMESTAMP: _EPOCH + timedelta(microseconds=one.micros),
    }


def _in_order(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows in the order of events, each with the columns in their order."""
    order = [(name, "ascending") for name in (h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL)]
    return rows.select(list(columns)).sort_by(order)
