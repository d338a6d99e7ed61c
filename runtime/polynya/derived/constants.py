"""Values that a flow compares columns with or fills them with, as literals of the column's type."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal as Exact
from typing import TypeAlias

from polynya.model.names import literal
from polynya.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

ConstantValue: TypeAlias = bool | int | float | str


def constant_sql(value: ConstantValue, kind: DataType | None) -> str | None:
    """The Spark SQL of a value for a column; None where the value does not fit its type exactly.

    Where the type is not known, the value has the type that it has in the file.
    """
    if isinstance(value, bool):
        return str(value).lower() if kind in {None, BOOLEAN} else None
    if isinstance(value, str):
        return _text_sql(value, kind)
    return _number_sql(value, kind)


def _text_sql(value: str, kind: DataType | None) -> str | None:
    try:
        if kind is None or kind == STRING:
            return literal(value)
        if kind == DATE:
            return _cast(date.fromisoformat(value).isoformat(), kind)
        if kind == TIMESTAMP:
            at = datetime.fromisoformat(value)
            # Without an offset it would mean another instant in each session.
            return None if at.tzinfo is None else _cast(at.isoformat(sep=" "), kind)
        if kind == TIMESTAMP_NTZ:
            at = datetime.fromisoformat(value)
            return _cast(at.isoformat(sep=" "), kind) if at.tzinfo is None else None
    except ValueError:
        return None
    return None


def _cast(text: str, kind: DataType) -> str:
    return f"CAST({literal(text)} AS {kind})"


def _number_sql(value: int | float, kind: DataType | None) -> str | None:
    exact = Exact(str(value))
    whole = exact == exact.to_integral_value()
    if kind is None:
        return str(value)
    if kind in {INT, BIGINT}:
        bits = 31 if kind == INT else 63
        if not whole or not -(2**bits) <= exact < 2**bits:
            return None
        return str(int(exact)) if kind == INT else f"CAST({int(exact)} AS bigint)"
    if kind in {FLOAT, DOUBLE}:
        if isinstance(value, int) and int(float(value)) != value:
            return None
        return f"CAST({value!r} AS {kind})"
    if isinstance(kind, Decimal):
        step = Exact(1).scaleb(-kind.scale)
        fits = exact % step == 0 and abs(exact) < Exact(10) ** (kind.precision - kind.scale)
        return f"CAST({exact:f} AS {kind})" if fits else None
    return None
