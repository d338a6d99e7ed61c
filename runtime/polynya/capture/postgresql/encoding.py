"""SQL expressions that write a value as JSON, as Debezium's engine writes it.

Each function takes the SQL of a value and returns the SQL of a text; NULL stays NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

Sql: TypeAlias = str
Encoding: TypeAlias = Callable[[Sql], Sql]

#: What an infinite time is in a stream of Debezium: the driver's constants, converted.
_INFINITE_DAYS: Final = ("-2147472692", "-2147472691")
_INFINITE_DAYS_IN_ARRAYS: Final = ("-622191234", "-625821272")
_INFINITE_MICROS: Final = ("9223372036825200000", "-9223372036832400000")
_INFINITE_MILLIS: Final = ("9223372036825200", "-9223372036832400")
#: Digits of a big number are taken apart in limbs of 56 bits: 14 hexadecimal digits.
_LIMB: Final = 1 << 56
_DIGITS: Final = ("0123456789abcdef", "fedcba9876543210")


def text(value: Sql) -> Sql:
    """The output of the type as a JSON string."""
    return f"to_json({value}::text)::text"


def output(value: Sql) -> Sql:
    """The same for types that a cast to text changes: blanks are cut, networks lengthened."""
    return f"to_json({value})::text"


def plain(value: Sql) -> Sql:
    """What PostgreSQL writes is JSON as it is: whole numbers, true and false."""
    return f"{value}::text"


def floating(value: Sql) -> Sql:
    """A number; a string for what JSON has no number for."""
    return (
        f"CASE {value}::text WHEN 'NaN' THEN '\"NaN\"' WHEN 'Infinity' THEN '\"Infinity\"' "
        f"WHEN '-Infinity' THEN '\"-Infinity\"' WHEN '-0' THEN '-0.0' ELSE {value}::text END"
    )


def binary(value: Sql) -> Sql:
    """Bytes in Base64, in one line."""
    return f"'\"' || translate(encode({value}, 'base64'), E'\\n', '') || '\"'"


def opaque(value: Sql) -> Sql:
    """The output of a type that Debezium does not know: its bytes."""
    return binary(f"convert_to({value}::text, 'UTF8')")


def decimal(precision: int) -> Encoding:
    """A number with a scale: its unscaled value as few bytes of a two's complement as hold it."""

    def encode(value: Sql) -> Sql:
        digits = f"replace({value}::text, '.', '')"
        if precision <= 18:
            number = _few_bytes(f"{digits}::int8")
            return _finite(value, f"'\"' || encode({number}, 'base64') || '\"'")
        return _finite(value, _any_bytes(f"{digits}::numeric"))

    return encode


def free_decimal(value: Sql) -> Sql:
    """A number of any scale, without zeros at its end: scale and unscaled value."""
    digits = f"replace(trim_scale({value})::text, '.', '')::numeric"
    written = (
        f"'{{\"scale\":' || min_scale({value}) || ',\"value\":' || {_any_bytes(digits)} || '}}'"
    )
    return _finite(value, written)


def money(value: Sql) -> Sql:
    """An amount with two decimals."""
    return binary(_few_bytes(f"({value}::numeric(20, 2) * 100)::int8"))


def date(value: Sql) -> Sql:
    """Days since 1970."""
    return _bounded(value, f"({value} - DATE '1970-01-01')::text", _INFINITE_DAYS)


def date_in_array(value: Sql) -> Sql:
    """The same in an array, where infinite ones are other numbers."""
    return _bounded(value, f"({value} - DATE '1970-01-01')::text", _INFINITE_DAYS_IN_ARRAYS)


def time(value: Sql) -> Sql:
    """Microseconds of a day."""
    return f"(extract(epoch FROM {value}) * 1000000)::int8::text"


def time_in_array(value: Sql) -> Sql:
    """The same in an array, where Debezium has whole milliseconds only."""
    return f"mod(floor(extract(epoch FROM {value}) * 1000)::int8, 86400000) * 1000 || ''"


def timestamp_micros(value: Sql) -> Sql:
    """Microseconds since 1970, of a time without zone."""
    # Late years do not fit 64 bits; the reader refuses them, as it does all after 9999.
    number = f"trunc(extract(epoch FROM {value}) * 1000000)::text"
    return _bounded(value, number, _INFINITE_MICROS)


def timestamp_millis(value: Sql) -> Sql:
    """Milliseconds, of a time that has no more digits."""
    number = f"(extract(epoch FROM {value}) * 1000)::int8::text"
    return _bounded(value, number, _INFINITE_MILLIS)


def zoned_timestamp(digits: int) -> Encoding:
    """ISO 8601 in UTC with so many digits of a second; years as Java counts and writes them."""
    seconds = {0: "", 3: ".MS", 6: ".US"}.get(digits, f".FF{digits}")

    def encode(value: Sql) -> Sql:
        clock = f'to_char({value}, \'MM-DD"T"HH24:MI:SS{seconds}"Z"\')'
        # Years of four digits need no arithmetic, which takes three times as long.
        usual = f'to_char({value}, \'YYYY-MM-DD"T"HH24:MI:SS{seconds}"Z"\')'
        is_usual = f"{value} >= '0001-01-01 00:00:00Z' AND {value} < '10000-01-01 00:00:00Z'"
        year = f"extract(year FROM {value})::int"
        # There is no year 0 in PostgreSQL: 1 BC is Java's 0.
        counted = f"({year} + ({year} < 0)::int)"
        sign = f"CASE WHEN {counted} < 0 THEN '-' WHEN {counted} > 9999 THEN '+' ELSE '' END"
        width = f"greatest(4, length(abs({counted})::text))"
        return (
            f"'\"' || CASE WHEN {is_usual} THEN {usual} WHEN isfinite({value}) THEN {sign} || "
            f"lpad(abs({counted})::text, {width}, '0') || '-' || {clock} "
            f"ELSE {value}::text END || '\"'"
        )

    return encode


def zoned_time(value: Sql) -> Sql:
    """A time of day in UTC; the offset that it was written with is not kept."""
    there = f"({value} AT TIME ZONE 'UTC')::text"
    return f"'\"' || replace(left({there}, -3), '24:00:00', '00:00:00') || 'Z\"'"


def interval(value: Sql) -> Sql:
    """ISO 8601 with all parts, each with its sign."""
    parts = " || ".join(
        f"trim_scale(extract({part} FROM {value})::numeric) || '{letter}'"
        for part, letter in (
            ("year", "Y"), ("month", "M"), ("day", "DT"),
            ("hour", "H"), ("minute", "M"), ("second", "S"),
        )
    )  # fmt: skip
    return f"CASE WHEN isfinite({value}) THEN '\"P' || {parts} || '\"' END"


def bits(value: Sql) -> Sql:
    """The bits as a number, its last byte first, without zero bytes at the end."""
    # Filled up at the left to whole bytes, the text is cut into them from the right.
    width = f"((length({value}) + 7) / 8 * 8)"
    filled = f"lpad({value}::text, {width}, '0')"
    pieces = (
        f"SELECT string_agg(lpad(to_hex(substr({filled}, p, 8)::bit(8)::int), 2, '0'), '' "
        f"ORDER BY p DESC) FROM generate_series(1, {width}, 8) p"
    )
    number = f"decode(regexp_replace(coalesce(({pieces}), ''), '(?:00)+$', ''), 'hex')"
    return f"CASE WHEN {value} IS NOT NULL THEN {binary(number)} END"


def one_bit(value: Sql) -> Sql:
    """A single bit: true or false."""
    return f"CASE {value}::text WHEN '1' THEN 'true' WHEN '0' THEN 'false' END"


def point(value: Sql) -> Sql:
    """Coordinates, and the same as well-known binary."""
    x, y = (f"({value})[{axis}]" for axis in (0, 1))
    shape = f"'\\x0101000000'::bytea || {_backwards(x)} || {_backwards(y)}"
    return (
        f"'{{\"x\":' || {floating(x)} || ',\"y\":' || {floating(y)} || ',\"wkb\":' || "
        f"{binary(shape)} || ',\"srid\":null}}'"
    )


def shape(value: Sql) -> Sql:
    """Other geometric types: their text as bytes, each number with a decimal point as in Java."""
    numbers = "'(^|[^0-9.e+-])(-?[0-9]+)(?![0-9.e])'"
    return opaque(f"regexp_replace({value}::text, {numbers}, '\\1\\2.0', 'g')")


def map_of(schema: Sql) -> Encoding:
    """An hstore as an object; `schema` is where the extension has its functions."""
    return lambda value: f"{schema}.hstore_to_json({value})::text"


def geometry(schema: Sql) -> Encoding:
    """PostGIS's own bytes (EWKB) and the number of their reference system, as Debezium reads them.

    `schema` is where the extension has its functions. A number of 0 means that there is none.
    """

    def encode(value: Sql) -> Sql:
        # The text of a value are its bytes in hexadecimal digits.
        content = binary(f"decode({value}::text, 'hex')")
        number = f"coalesce(nullif({schema}.st_srid({value}), 0)::text, 'null')"
        return f"'{{\"wkb\":' || {content} || ',\"srid\":' || {number} || '}}'"

    return encode


def array(element: Encoding, *, null_elements: bool) -> Encoding:
    """A list. Debezium has no value for one with NULL where the schema allows none.

    For one of several dimensions there is a text in its place, which `polynya.capture.lists`
    refuses.
    """

    def encode(value: Sql) -> Sql:
        item = "coalesce(" + element("u.e") + ", 'null')"
        items = (
            f"(SELECT '[' || coalesce(string_agg({item}, ',' ORDER BY u.o), '') || ']' "
            # Not `FROM unnest`, which would take a row type apart into its columns.
            f"FROM (SELECT unnest({value}) AS e, "
            f"generate_series(1, cardinality({value})) AS o) u)"
        )
        many = f"'\"' || array_dims({value}) || '\"'"
        if not null_elements:
            items = f"CASE WHEN array_position({value}, NULL) IS NULL THEN {items} END"
        return (
            f"CASE WHEN array_ndims({value}) > 1 THEN {many} "
            f"WHEN {value} IS NOT NULL THEN {items} END"
        )

    return encode


def _finite(value: Sql, written: Sql) -> Sql:
    """NaN and infinities of numeric are NULL: Debezium has no other value for them."""
    return (
        f"CASE WHEN {value}::text IN ('NaN', 'Infinity', '-Infinity') THEN NULL ELSE {written} END"
    )


def _bounded(value: Sql, written: Sql, infinite: tuple[str, str]) -> Sql:
    return (
        f"CASE {value}::text WHEN 'infinity' THEN '{infinite[0]}' "
        f"WHEN '-infinity' THEN '{infinite[1]}' ELSE {written} END"
    )


def _few_bytes(number: Sql) -> Sql:
    """The bytes of a whole number of 64 bits, without those that only repeat its sign."""
    lengths = " ".join(
        f"WHEN n BETWEEN {-(1 << bits - 1)} AND {(1 << bits - 1) - 1} THEN {9 - bits // 8}"
        for bits in range(8, 64, 8)
    )
    return (
        f"(SELECT substring(int8send(n) FROM CASE {lengths} ELSE 1 END) "
        f"FROM (SELECT {number} AS n OFFSET 0) one)"
    )


def _any_bytes(number: Sql) -> Sql:
    """JSON of the bytes of a whole number of any size.

    A negative one is the complement of what stands one nearer to zero, which has no sign.
    """
    limbs = (
        f"WITH RECURSIVE limbs(q, i, l) AS (SELECT div(a, {_LIMB}), 0, mod(a, {_LIMB}) "
        f"UNION ALL SELECT div(q, {_LIMB}), i + 1, mod(q, {_LIMB}) FROM limbs WHERE q <> 0) "
        "SELECT string_agg(lpad(to_hex(l::int8), 14, '0'), '' ORDER BY i DESC) FROM limbs"
    )
    short = f"regexp_replace('00' || ({limbs}), '^(?:00)+(?=[0-7])', '')"
    complement = f"translate({short}, '{_DIGITS[0]}', '{_DIGITS[1]}')"
    digits = binary(f"decode(CASE WHEN big.n < 0 THEN {complement} ELSE {short} END, 'hex')")
    magnitude = "CASE WHEN big.n < 0 THEN -big.n - 1 ELSE big.n END"
    whole = f"(SELECT {digits} FROM (SELECT {magnitude} AS a OFFSET 0) unsigned)"
    small = binary(_few_bytes("big.n::int8"))
    return (
        f"(SELECT CASE WHEN big.n BETWEEN -9223372036854775808 AND 9223372036854775807 "
        f"THEN {small} ELSE {whole} END FROM (SELECT {number} AS n OFFSET 0) big)"
    )


def _backwards(number: Sql) -> Sql:
    """The eight bytes of a float, the last one first."""
    sent = f"float8send({number})"
    return " || ".join(f"substring({sent} FROM {index} FOR 1)" for index in range(8, 0, -1))
