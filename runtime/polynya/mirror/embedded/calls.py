"""Functions of one row whose results are the same in Spark and in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.mirror.embedded.typed import Value, is_key
from polynya.model.datatypes import DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ


def call(name: str, arguments: Sequence[Value]) -> Value:
    """A call of a function.

    Raises:
        NotEmbeddedError: the function is not on the list, or not with such arguments.
    """
    made = _CALLS.get(name)
    value = None if made is None else made(name, arguments)
    if value is None:
        types = ", ".join(str(one.type or "?") for one in arguments)
        raise NotEmbeddedError(f"the function {name}({types})")
    return value


def _first_known(name: str, arguments: Sequence[Value]) -> Value | None:
    types = {one.type for one in arguments}
    if len(types) != 1 or None in types or (name != "coalesce" and len(arguments) != 2):
        return None
    return Value(f"coalesce({_listed(arguments)})", arguments[0].type)


def _null_where_equal(name: str, arguments: Sequence[Value]) -> Value | None:
    del name
    if len(arguments) != 2 or arguments[0].type != arguments[1].type:
        return None
    if arguments[0].type is None or not is_key(arguments[0].type):
        return None
    return Value(f"nullif({_listed(arguments)})", arguments[0].type)


def _concat(name: str, arguments: Sequence[Value]) -> Value | None:
    del name
    if not arguments or {one.type for one in arguments} != {STRING}:
        return None
    # DuckDB's own `concat` leaves NULLs out.
    return Value(f"({' || '.join(one.sql for one in arguments)})", STRING)


def _length(name: str, arguments: Sequence[Value]) -> Value | None:
    del name
    if [one.type for one in arguments] != [STRING]:
        return None
    return Value(f"CAST(length({arguments[0].sql}) AS INTEGER)", INT)


def _letters(name: str, arguments: Sequence[Value]) -> Value | None:
    """Java and DuckDB have the letters of ASCII in common; any other one is an error."""
    if [one.type for one in arguments] != [STRING]:
        return None
    text, function = arguments[0].sql, {"lcase": "lower", "ucase": "upper"}.get(name, name)
    only_ascii = f"length({text}) = strlen({text})"
    return Value(
        f"(CASE WHEN {text} IS NULL THEN NULL WHEN {only_ascii} THEN {function}({text}) "
        f"ELSE error('{name} of other letters than those of ASCII') END)",
        STRING,
    )


def _part_of_day(name: str, arguments: Sequence[Value]) -> Value | None:
    if [one.type for one in arguments] != [DATE]:
        return None
    part = "day" if name == "dayofmonth" else name
    return Value(f"CAST({part}({arguments[0].sql}) AS INTEGER)", INT)


def _day(name: str, arguments: Sequence[Value]) -> Value | None:
    del name
    if len(arguments) != 1 or arguments[0].type not in {DATE, TIMESTAMP, TIMESTAMP_NTZ}:
        return None
    return Value(f"CAST({arguments[0].sql} AS DATE)", DATE)


def _listed(arguments: Sequence[Value]) -> str:
    return ", ".join(one.sql for one in arguments)


_CALLS: Final[Mapping[str, Callable[[str, Sequence[Value]], Value | None]]] = {
    "coalesce": _first_known,
    "ifnull": _first_known,
    "nvl": _first_known,
    "nullif": _null_where_equal,
    "concat": _concat,
    **dict.fromkeys(("length", "char_length", "character_length"), _length),
    **dict.fromkeys(("lower", "lcase", "upper", "ucase"), _letters),
    **dict.fromkeys(("year", "month", "day", "dayofmonth"), _part_of_day),
    "to_date": _day,
    "date": _day,
}
