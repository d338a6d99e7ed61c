"""The texts by which MariaDB and MySQL write values for a comparison, in their own SQL. Pure.

They are those of `columns.Kind`, for values as the capture writes them: where an event has another
value than the database, as for dates of no calendar, the text is that of the event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from polynya.gateway.compare.columns import Kind
from polynya.gateway.mysql.quoting import quoted
from polynya.gateway.mysql.types.table import Facts

_DAY_MICROS: Final = 86_400_000_000
#: Day number of 1970-01-01.
_EPOCH: Final = 719_528
_BACKSLASH: Final = "CHAR(92 USING utf8mb4)"


@dataclass(frozen=True, slots=True)
class Text:
    """How the values of a column are written.

    Attributes:
        sql: of the text; NULL where the value is none.
        checked: of what is NULL exactly then, also where `sql` is too long for the server.
        value: of the value itself, where it may be long; None: `sql` says it.
        is_hex: `sql` is the value as lower-case hex.
    """

    kind: Kind
    sql: str
    checked: str
    value: str | None = None
    is_hex: bool = False


def text_of(facts: Facts) -> Text | None:
    """The text of a column; None for a type that is not compared."""
    made = _KINDS.get(facts.type)
    return None if made is None else made(facts, quoted(facts.name))


def _short(kind: Kind, sql: str) -> Text:
    return Text(kind, sql, sql)


def _whole(_: Facts, column: str) -> Text:
    # Zeros that ZEROFILL puts before a number are not of its value.
    return _short(Kind.WHOLE, f"CAST({column} + 0 AS CHAR)")


def _year(_: Facts, column: str) -> Text:
    return _short(Kind.WHOLE, f"CAST(IF({column} = 0, 1900, {column} + 0) AS CHAR)")


def _decimal(facts: Facts, column: str) -> Text:
    # Added to a zero the largest ones would lose digits.
    text = f"CAST({column}{' + 0' if 'zerofill' in facts.full else ''} AS CHAR)"
    trimmed = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"
    return _short(Kind.NUMBER, f"IF(LOCATE('.', {text}), {trimmed}, {text})")


def _float(facts: Facts, column: str) -> Text:
    number = f"CAST({column} AS DOUBLE)"
    return _double_text(number) if "," in facts.plain else _short(Kind.FLOAT, _single_bits(number))


def _double(_: Facts, column: str) -> Text:
    return _double_text(column)


def _double_text(number: str) -> Text:
    return _short(Kind.DOUBLE, f"CONV({_hex(number)}, 16, -10)")


def _hex(number: str) -> str:
    """The bits of a number as hex, out of those of a point; the negative zero is the other one."""
    return f"HEX(REVERSE(SUBSTR(ST_AsWKB(POINT({number} + 0e0, 0)), 6, 8)))"


def _single_bits(number: str) -> str:
    """The 32 bits of a number that has no more, out of its 64."""
    bits = f"CAST(CONV({_hex(number)}, 16, 10) AS UNSIGNED)"
    exponent, digits = f"(({bits} >> 52) & 2047)", f"(({bits} >> 29) & 8388607)"
    small = f"(({digits} | 8388608) >> (897 - {exponent}))"
    large = f"((({exponent} - 896) << 23) | {digits})"
    size = f"CAST(IF({exponent} > 896, {large}, {small}) AS SIGNED)"
    return f"CAST(IF({number} < 0, {size} - 2147483648, {size}) AS CHAR)"


def _bit(facts: Facts, column: str) -> Text:
    length = facts.precision or 1
    if length == 1:
        flag = f"IF({column}, 'true', 'false')"
        return _short(Kind.BOOLEAN, f"CASE WHEN {column} IS NOT NULL THEN {flag} END")
    parts = (f"LPAD(HEX(({column} >> {at}) & 255), 2, '0')" for at in range(0, length, 8))
    return _short(Kind.BYTES, f"LOWER(CONCAT({', '.join(parts)}))")


def _valid(column: str) -> str:
    return f"{column} >= '0001-01-01' AND MONTH({column}) > 0 AND DAYOFMONTH({column}) > 0"


def _empty(facts: Facts, column: str) -> str:
    """What a date of no calendar is; NULL stays NULL."""
    return "NULL" if facts.nullable else f"IF({column} IS NULL, NULL, 0)"


def _date(facts: Facts, column: str) -> Text:
    days = f"TO_DAYS({column}) - {_EPOCH}"
    either = f"IF({_valid(column)}, {days}, {_empty(facts, column)})"
    return _short(Kind.DATE, f"CAST({either} AS CHAR)")


def _micros(empty: Callable[[Facts, str], str]) -> Callable[[Facts, str], Text]:
    def made(facts: Facts, column: str) -> Text:
        days = f"(TO_DAYS({column}) - {_EPOCH}) * {_DAY_MICROS}"
        clock = f"CAST(FLOOR(TIME_TO_SEC({column})) AS SIGNED) * 1000000 + MICROSECOND({column})"
        either = f"IF({_valid(column)}, {days} + {clock}, {empty(facts, column)})"
        return _short(Kind.MICROS, f"CAST({either} AS CHAR)")

    return made


def _beginning(_: Facts, column: str) -> str:
    return f"IF({column} IS NULL, NULL, 0)"


def _time(_: Facts, column: str) -> Text:
    return _short(Kind.TIME, f"REPLACE(CAST(CAST({column} AS TIME(6)) AS CHAR), '.000000', '')")


def _text(_: Facts, column: str) -> Text:
    text = f"CONVERT({column} USING utf8mb4)"
    return Text(Kind.TEXT, text, column, text)


def _label(_: Facts, column: str) -> Text:
    text = f"CONVERT({column} USING utf8mb4)"
    return _short(Kind.TEXT, f"REPLACE({text}, ',', CONCAT({_BACKSLASH}, ','))")


def _bytes(_: Facts, column: str) -> Text:
    return Text(Kind.BYTES, f"LOWER(HEX({column}))", column, column, is_hex=True)


def _uuid(_: Facts, column: str) -> Text:
    return _short(Kind.BYTES, f"LOWER(REPLACE(CAST({column} AS CHAR), '-', ''))")


def _address(_: Facts, column: str) -> Text:
    return _short(Kind.BYTES, f"LOWER(HEX(INET6_ATON(CAST({column} AS CHAR))))")


_KINDS: Final[Mapping[str, Callable[[Facts, str], Text]]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _whole),
    "year": _year,
    "decimal": _decimal,
    "float": _float,
    "double": _double,
    "bit": _bit,
    "date": _date,
    "datetime": _micros(_empty),
    "timestamp": _micros(_beginning),
    "time": _time,
    **dict.fromkeys(
        ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "set"), _text
    ),
    "enum": _label,
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "uuid": _uuid,
    **dict.fromkeys(("inet4", "inet6"), _address),
}
