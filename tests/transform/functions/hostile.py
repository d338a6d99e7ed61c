"""Rows with a column of every type, full of values that functions may stumble over."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from polynya.lake.spark.api import DataFrame, SparkSession
from polynya.model.types import DataType, parse_type

_TEXTS: Final = (
    None,
    "",
    " ",
    "a",
    "-1",
    "1",
    "1.5",
    "1e400",
    "0xff",
    "NaN",
    "true",
    "a,b,,c",
    "(",
    "[",
    "\\",
    "$1",
    "\\E",
    "{0}",
    "%zz",
    "###",
    "2024-02-30",
    "2024-02-29T23:59:60Z",
    "+99:99",
    "Europe/Berlin",
    "9999-12-31T23:59:59Z",
    "-290000-01-01",
    "http://[::1",
    "a=1&a=2",
    '{"a": [1, {"b": null}]}',
    '[{"a": 1}, 2, null]',
    "\u2ee4x",
    "\ud7ff\ufffd",
    "\x00",
    "\n|x\n",
    "x" * 3000,
    "🌊",
    "ß",
    "İ",
    "POLYGON((0 0, 1 1, 1 0, 0 0))",
    "9223372036854775808",
    "SGVsbG8=",
    "infinity",
    "now",
    "1d",
)
_LONGS: Final = (
    None,
    0,
    1,
    -1,
    2,
    31,
    -(2**63),
    2**63 - 1,
    2**31,
    10**11,
    10**17,
    10**18,
    1520672112,
)
_DOUBLES: Final = (
    None, 0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e19, 1e-10,
)  # fmt: skip
_INTS: Final = (None, 0, 1, -1, -(2**31), 2**31 - 1, 7)
_TIMES: Final = (
    None,
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
    datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
)
_PLAIN: Final[dict[str, tuple[Any, ...]]] = {
    "boolean": (None, True, False),
    "int": _INTS,
    "bigint": _LONGS,
    "float": (None, 0.0, 1.5, math.nan, math.inf, -math.inf, 3e38),
    "double": _DOUBLES,
    "string": _TEXTS,
    "binary": (None, b"", b"abc", b"\xff\xfe\x00", "⻤".encode()[:2]),
    "date": (None, date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)),
    "timestamp": _TIMES,
    "timestamp_ntz": tuple(one and one.replace(tzinfo=None) for one in _TIMES),
    "decimal(38,0)": (None, Decimal(0), Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(9)),
    "decimal(38,38)": (None, Decimal(0), Decimal("0.5"), Decimal("-0." + "9" * 38)),
    "decimal(5,2)": (None, Decimal("999.99"), Decimal("-0.01"), Decimal("2.50")),
}
_NESTED: Final = (
    "array<int>", "array<bigint>", "array<double>", "array<string>", "array<boolean>",
    "array<timestamp>", "array<binary>", "array<decimal(38,10)>", "array<array<string>>",
    "array<struct<a:int,`b c`:string>>", "array<map<string,int>>", "map<string,int>",
    "map<int,array<string>>", "struct<a:int,b:struct<c:string>>", "struct<m:map<string,double>>",
)  # fmt: skip
TYPES: Final = {f"c{index}": parse_type(kind) for index, kind in enumerate((*_PLAIN, *_NESTED))}
#: What stands where a literal has to.
LITERALS: Final = (
    "''",
    "'a'",
    "','",
    "'('",
    "'[a-'",
    "'(a)(?<n>b)?'",
    "'(?x) a # (c'",
    "'[(]'",
    r"'\\Q('",
    r"'\\'",
    "'(a|b)*c'",
    "'yyyy-MM-dd'",
    "'QQQQQQ'",
    "'bad pattern {'",
    "'a,b'",
    "'a,b,c;x,y,long'",
    "'{0} {1,number,0.0}'",
    "'{9999}'",
    "'{0,number,E}'",
    "'$[*].a[*]'",
    "'$..['",
    "'k,v'",
    "'POLYGON((0 0, 1e308 0, 9 1e308, 0 0), (1 1, 1 1, 1 1, 1 1))'",
    "'POLYGON((0 0, 1e999 0, 9 9, 0 0))'",
    "true",
    "false",
    "0",
    "-1",
    "99999999999",
    "1.5",
    r"'\n'",
    "'🌊'",
    "'`'",
    r"'\''",
)


def hostile_rows(spark: SparkSession, count: int, chance: random.Random) -> DataFrame:
    """Rows with the columns of TYPES, an `id`, and values drawn by chance."""
    rows = [(index, *(_value(kind, chance) for kind in TYPES.values())) for index in range(count)]
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    return spark.createDataFrame(rows, f"id bigint, {columns}", verifySchema=False)


def _value(kind: DataType, chance: random.Random) -> Any:
    text = str(kind)
    if text in _PLAIN:
        return chance.choice(_PLAIN[text])
    if chance.random() < 0.2:
        return None
    if text.startswith("array<"):
        return [_value(kind.element, chance) for _ in range(chance.randrange(4))]  # type: ignore[union-attr]
    if text.startswith("map<"):
        keys = [_value(kind.key, chance) for _ in range(chance.randrange(3))]  # type: ignore[union-attr]
        return {key: _value(kind.value, chance) for key in keys if key is not None}  # type: ignore[union-attr]
    if text.startswith("struct<"):
        return tuple(_value(inner, chance) for _, inner in kind.fields)  # type: ignore[union-attr]
    assert text.startswith("decimal"), "all others are plain"
    return Decimal("-12345678901234567890.0123456789") if chance.random() < 0.5 else Decimal(0)
