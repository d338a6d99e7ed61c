"""The rows of a PostgreSQL table by a column that grows, as SQL.

Infinity and NaN are greater than any value: after one of them nothing would be new any more. Rows
with them, or without a value, are read when all rows are.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from polynya.capture.postgresql.session import PostgresSession, identifier, literal
from polynya.capture.postgresql.tables import PgTable
from polynya.capture.source import GrowingColumn, Key

_ROW: Final = "t"
_LEAST: Final = -(2**63)
_WHOLE: Final = ("smallint", "integer", "bigint")


def value(column: str) -> str:
    """SQL of the column of a row."""
    return f"{_ROW}.{identifier(column)}"


def finite_value(table: PgTable, column: str) -> str:
    """SQL of the value of the column; NULL where that is infinity or NaN."""
    name, condition = value(column), _is_finite(value(column), _type_of(table, column))
    return f"CASE WHEN {condition} THEN {name} END" if condition else name


def conditions(table: PgTable, column: GrowingColumn, after: Key | None) -> list[str]:
    """Conditions for the rows from `overlap` before the mark on, and not before a chunk's last."""
    name, type_name = value(column.name), _type_of(table, column.name)
    given = [f"{name} IS NOT NULL"]
    finite = _is_finite(name, type_name)
    if finite:
        given.append(finite)
    if column.mark is not None:
        given.append(f"{name} >= {_lowered(column.mark, column.overlap, type_name)}")
    if after is not None:
        given.append(f"{name} >= {_constant(str(after[1]), type_name)}")
    return given


def lacks_index(session: PostgresSession, table: PgTable, column: str) -> str | None:
    """Why each extraction reads the whole table; None: an index begins with the column."""
    if table.kind in "vf":
        return (
            f"is no table, so each extraction reads what stands behind it; `{column}` should be "
            "the column of an index there"
        )
    found = session.run(
        "SELECT EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
        f"AND a.attnum = i.indkey[0] WHERE i.indrelid = {table.oid} AND i.indisvalid "
        f"AND i.indpred IS NULL AND a.attname = {literal(column)})"
    )
    if found == [[True]]:
        return None
    return f"no index begins with `{column}`, so each extraction reads the whole table"


def _type_of(table: PgTable, column: str) -> str:
    return next(one.type_name for one in table.columns if one.name == column)


def _is_finite(name: str, type_name: str) -> str | None:
    if type_name.startswith(("date", "timestamp")):
        return f"isfinite({name})"
    if type_name.startswith(("numeric", "double precision")):
        # Older servers have no infinity in numeric, and refuse the constant.
        return f"{name}::text NOT IN ('NaN', 'Infinity')"
    return None


def _constant(text: str, type_name: str) -> str:
    if type_name in _WHOLE:
        return f"{int(text)}::bigint"
    return f"{literal(text)}::{type_name}"


def _lowered(mark: str, overlap: int, type_name: str) -> str:
    """SQL of the mark less the overlap, of a type that an index of the column is read by."""
    if type_name in _WHOLE:
        return f"{max(int(mark) - overlap, _LEAST)}::bigint"
    if type_name.startswith("numeric"):
        return f"{literal(str(Decimal(mark) - overlap))}::numeric"
    if type_name.startswith("double"):
        return f"({_constant(mark, type_name)} - {overlap})"
    return f"({_constant(mark, type_name)} - interval '{overlap} microseconds')"
