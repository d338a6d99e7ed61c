"""The rows of a MariaDB or MySQL table by a column that grows, as SQL.

Times have six digits after the second in these servers, so a mark loses nothing. Dates of zero and
other times that are none bound nothing: all rows are read then.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from polynya.capture.mysql.catalog import MysqlTable
from polynya.capture.mysql.session import MysqlSession, literal, quoted
from polynya.capture.source import GrowingColumn, Key

_YEAR_ONE: Final = datetime(1, 1, 1)  # noqa: DTZ001 - as the server writes times


def value_text(column: str) -> str:
    """SQL of the value of the column as text."""
    return f"CAST({quoted(column)} AS CHAR)"


def conditions(column: GrowingColumn, after: Key | None) -> list[str]:
    """Conditions for the rows from `overlap` before the mark on, and not before a chunk's last."""
    name = quoted(column.name)
    bounds = [
        None if column.mark is None else _bound(column, column.mark, column.overlap),
        None if after is None else _bound(column, str(after[1]), 0),
    ]
    return [f"{name} IS NOT NULL", *(f"{name} >= {bound}" for bound in bounds if bound is not None)]


def newest(session: MysqlSession, table: MysqlTable, column: str) -> str | None:
    """The greatest value of the column as text; None: it has none."""
    rows = session.rows(
        f"SELECT CAST(MAX({quoted(column)}) AS CHAR) FROM {quoted(table.database, table.name)}",
        f"reading {table.full_name}",
    )
    return rows[0][0]


def lacks_index(session: MysqlSession, table: MysqlTable, column: str) -> str | None:
    """Why each extraction reads the whole table; None: an index begins with the column."""
    if table.is_view:
        return (
            f"is no table, so each extraction reads what stands behind it; `{column}` should be "
            "the column of an index there"
        )
    found = session.first(
        "SELECT 1 FROM information_schema.STATISTICS WHERE SEQ_IN_INDEX = 1"
        f" AND TABLE_SCHEMA = {literal(table.database)} AND TABLE_NAME = {literal(table.name)}"
        f" AND COLUMN_NAME = {literal(column)} LIMIT 1",
        "listing the keys",
    )
    if found is not None:
        return None
    return f"no index begins with `{column}`, so each extraction reads the whole table"


def _bound(column: GrowingColumn, text: str, overlap: int) -> str | None:
    """A value less the overlap as a constant; None: it bounds nothing."""
    if column.kind == "number":
        return str(Decimal(text) - overlap)
    try:
        moment = datetime.fromisoformat(text) - timedelta(microseconds=overlap)
    except (ValueError, OverflowError):
        return None
    moment = max(moment, _YEAR_ONE)
    return f"CAST({literal(moment.isoformat(' ', 'microseconds'))} AS DATETIME(6))"
