"""Cases for each row of the table of types in `docs/capture-mariadb.md`.

What is expected is what the connectors of Debezium 3.5.0.Final for MariaDB and for MySQL wrote of
the same value, with the settings of a capture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

MAX_DATE = 2_932_896
WKB_POINT = "AQEAAAAAAAAAAADwPwAAAAAAAARA"


@dataclass(frozen=True)
class Case:
    """A type of DDL, a value in SQL (None: it is computed), and both in a landed event."""

    ddl: str
    sql: str | None
    value: Any
    kind: str
    name: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    only: str = ""
    """The kind of server that has it; empty: both."""

    @property
    def may_be_null(self) -> bool:
        """Whether a row without a value has NULL."""
        return self.sql is not None and "not null" not in self.ddl


def decimal(ddl: str, sql: str, value: str, precision: int, scale: int) -> Case:
    given = (("scale", str(scale)), ("connect.decimal.precision", str(precision)))
    return Case(ddl, sql, value, "bytes", "org.apache.kafka.connect.data.Decimal", given)


def time(ddl: str, sql: str, value: Any, name: str, kind: str = "int64") -> Case:
    return Case(ddl, sql, value, kind, f"io.debezium.time.{name}")


def data(ddl: str, sql: str, value: Any, name: str, kind: str, **given: str) -> Case:
    return Case(ddl, sql, value, kind, f"io.debezium.data.{name}", tuple(given.items()))


def json_of_mysql(sql: str, value: str) -> Case:
    """MySQL keeps a document and not its text; Debezium writes it in its own way."""
    return replace(data("json", f"'{sql}'", value, "Json", "string"), only="mysql")


ROWS: dict[str, list[Case]] = {
    "TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT": [
        Case("tinyint", "-128", -128, "int16"),
        Case("tinyint unsigned", "255", 255, "int16"),
        Case("boolean", "2", 2, "int16"),
        Case("smallint", "-32768", -32768, "int16"),
        Case("smallint unsigned", "65535", 65535, "int32"),
        Case("mediumint", "-8388608", -8388608, "int32"),
        Case("mediumint unsigned", "16777215", 16777215, "int32"),
        Case("int", "-2147483648", -2147483648, "int32"),
        Case("int unsigned", "4294967295", 4294967295, "int64"),
        Case("int(5) zerofill", "42", 42, "int64"),
        Case("bigint", "-9223372036854775808", -(2**63), "int64"),
    ],
    "BIGINT UNSIGNED": [
        decimal("bigint unsigned", "18446744073709551615", "AP//////////", 20, 0),
        decimal("bigint unsigned", "9223372036854775808", "AIAAAAAAAAAA", 20, 0),
    ],
    "DECIMAL(p,s)": [
        decimal("decimal(10,2)", "-123.45", "z8c=", 10, 2),
        decimal("decimal(10,2)", "0", "AA==", 10, 2),
        decimal("decimal(5,0)", "-99999", "/nlh", 5, 0),
        decimal("decimal(20,4) unsigned", "9999999999999999.9999", "BWvHXi1jD///", 20, 4),
        decimal("decimal(38,10)", "-1234567890123456789012345678.0123456789",
                "9rZPCQ/9zOw7tm+xM5i66w==", 38, 10),
        decimal("decimal(65,30)",
                "12345678901234567890123456789012345.123456789012345678901234567890",
                "HgK8HpeFi9xsuVBY80JNfTp/7HsD4maOPwrS", 65, 30),
    ],
    "FLOAT": [
        Case("float", "0.1", 0.1, "float"),
        Case("float", "16777217", 16777216.0, "float"),
        Case("float", "3.4e38", 3.4e38, "float"),
    ],
    "FLOAT(m,d), DOUBLE": [
        Case("float(7,3)", "1234.567", 1234.5670166015625, "double"),
        Case("double", "0.1", 0.1, "double"),
        Case("double", "1.7976931348623157e308", 1.7976931348623157e308, "double"),
        Case("double", "5e-324", 5e-324, "double"),
    ],
    "BIT(1)": [
        Case("bit(1)", "1", True, "boolean"),
        Case("bit(1)", "0", False, "boolean"),
    ],
    "BIT(n)": [
        data("bit(9)", "b'100000001'", "AQE=", "Bits", "bytes", length="9"),
        data("bit(64)", "b'111'", "BwAAAAAAAAA=", "Bits", "bytes", length="64"),
    ],
    "YEAR": [
        time("year", "2155", 2155, "Year", "int32"),
        time("year", "0", 1900, "Year", "int32"),
    ],
    "DATE": [
        time("date", "'2024-02-29'", 19782, "Date", "int32"),
        time("date", "'0001-01-01'", -719162, "Date", "int32"),
        time("date", "'9999-12-31'", MAX_DATE, "Date", "int32"),
        time("date", "'0000-00-00'", None, "Date", "int32"),
        time("date", "'2024-02-00'", None, "Date", "int32"),
        time("date not null", "'0000-00-00'", 0, "Date", "int32"),
    ],
    "DATETIME, DATETIME(1) to (3)": [
        time("datetime", "'2024-02-29 12:34:56'", 1_709_210_096_000, "Timestamp"),
        time("datetime(3)", "'1969-12-31 23:59:59.999'", -1, "Timestamp"),
        time("datetime", "'0050-05-05 01:02:03'", -60_578_578_677_000, "Timestamp"),
        time("datetime", "'0000-00-00 00:00:00'", None, "Timestamp"),
        time("datetime not null", "'0000-00-00 00:00:00'", 0, "Timestamp"),
    ],
    "DATETIME(4) to (6)": [
        time("datetime(6)", "'2024-02-29 12:34:56.789012'", 1_709_210_096_789_012,
             "MicroTimestamp"),
        time("datetime(6)", "'9999-12-31 23:59:59.999999'", 253_402_300_799_999_999,
             "MicroTimestamp"),
    ],
    "TIMESTAMP": [
        time("timestamp null", "'2024-02-29 12:34:56'", "2024-02-29T12:34:56Z", "ZonedTimestamp",
             "string"),
        time("timestamp(6) null", "'2024-01-01 00:00:00.1'", "2024-01-01T00:00:00.100000Z",
             "ZonedTimestamp", "string"),
        time("timestamp(3) null", "0", "1970-01-01T00:00:00.000Z", "ZonedTimestamp", "string"),
    ],
    "TIME": [
        time("time", "'-12:34:56'", -45_296_000_000, "MicroTime"),
        # A MySQL server has no fraction in the last second.
        replace(time("time(3)", "'-838:59:59.999'", -3_020_399_999_000, "MicroTime"),
                only="mariadb"),
        replace(time("time(6)", "'838:59:59.999999'", 3_020_399_999_999, "MicroTime"),
                only="mariadb"),
        time("time(3)", "'-838:59:58.999'", -3_020_398_999_000, "MicroTime"),
        time("time(6)", "'838:59:58.999999'", 3_020_398_999_999, "MicroTime"),
        time("time(6)", "'-00:00:00.000001'", -1, "MicroTime"),
    ],
    "CHAR, VARCHAR, TEXT": [
        Case("char(5)", "'ab '", "ab", "string"),
        Case("varchar(20)", r"'x\"\\\n\té€😀'", 'x"\\\n\té€😀', "string"),
        Case("varchar(5) character set latin1", "'ñ'", "ñ", "string"),
        Case("varchar(5) character set sjis", "'日本'", "日本", "string"),
        Case("varchar(5) character set ucs2", "'ab'", "ab", "string"),
        Case("varchar(5) character set utf8mb3", "'é'", "é", "string"),
        Case("varchar(5) character set utf16", "'é😀'", "é😀", "string"),
        Case("varchar(5) character set utf32", "'é'", "é", "string"),
        Case("varchar(5) character set latin2", "'ł'", "ł", "string"),
        Case("varchar(5) character set cp1251", "'Ж'", "Ж", "string"),
        Case("varchar(5) character set koi8r", "'Ж'", "Ж", "string"),
        Case("varchar(5) character set gbk", "'日本'", "日本", "string"),
        Case("varchar(5) character set big5", "'日本'", "日本", "string"),
        Case("varchar(5) character set euckr", "'한'", "한", "string"),
        Case("varchar(5) character set eucjpms", "'日本①'", "日本①", "string"),
        Case("varchar(5) collate utf8mb4_bin", "'A '", "A ", "string"),
        Case("text", "''", "", "string"),
        Case("longtext", "'long'", "long", "string"),
    ],
    "JSON": [
        Case("json", """'{"k": [1, 2.50, null]}'""", '{"k": [1, 2.50, null]}', "string",
             only="mariadb"),
        json_of_mysql('{"k": [1, 2.50, null]}', '{"k":[1,2.5,null]}'),
        json_of_mysql(r'{"b": "q\\"\\n\\u001fé😀\\\\u00ab", "a": {"": []}}',
                      r'{"a":{"":[]},"b":"q\"\n\u001Fé😀\\u00ab"}'),
        json_of_mysql("[1e7, 1e-5, 1.0, -0.0, 1e22, 18446744073709551615, 12345678.1, 123456.75]",
                      "[10000000,0.000010000000000000000818030539140313095458623138256371021270751953"
                      "125,1.0,-0.0,10000000000000000000000,18446744073709551615,"
                      "12345678.09999999962747097015380859375,123456.75]"),
        json_of_mysql("null", "null"),
        json_of_mysql('"text"', '"text"'),
    ],
    "BINARY, VARBINARY, BLOB": [
        Case("binary(4)", "'ab'", "YWIAAA==", "bytes"),
        Case("varbinary(20)", "'ab\\0'", "YWIA", "bytes"),
        Case("blob", "''", "", "bytes"),
        Case("longblob", "x'deadbeef'", "3q2+7w==", "bytes"),
    ],
    "UUID": [
        Case("uuid", "'123e4567-e89b-12d3-a456-426655440000'", "Ej5FZ+ibEtOkVkJmVUQAAA==", "bytes",
             only="mariadb"),
    ],
    "INET4, INET6": [
        Case("inet6", "'2001:db8::'", "IAENuAAAAAAAAAAAAAAAAA==", "bytes",
             only="mariadb"),
        Case("inet4", "'192.0.2.0'", "wAACAA==", "bytes", only="mariadb"),
    ],
    "ENUM, SET": [
        data("enum('a','b''c','d,e')", "'b''c'", "b'c", "Enum", "string", allowed="a,b'c,d\\,e"),
        data("enum('a','b''c','d,e')", "'d,e'", "d\\,e", "Enum", "string", allowed="a,b'c,d\\,e"),
        data("enum('a')", "'nope'", "", "Enum", "string", allowed="a"),
        data("set('x','y','z')", "'z,x'", "x,z", "EnumSet", "string", allowed="x,y,z"),
    ],
    "POINT": [
        data("point", "ST_GeomFromText('POINT(1 2.5)')",
             {"x": 1.0, "y": 2.5, "wkb": WKB_POINT, "srid": None}, "geometry.Point", "struct"),
    ],
    "GEOMETRY and its subtypes": [
        # MySQL reads the latitude first in this reference system.
        replace(data("geometry", "ST_GeomFromText('POINT(1 2.5)', 4326)",
                     {"wkb": WKB_POINT, "srid": 4326}, "geometry.Geometry", "struct"),
                only="mariadb"),
        replace(data("geometry", "ST_GeomFromText('POINT(2.5 1)', 4326)",
                     {"wkb": WKB_POINT, "srid": 4326}, "geometry.Geometry", "struct"),
                only="mysql"),
        data("linestring", "ST_GeomFromText('LINESTRING(0 0,1 1)')",
             {"wkb": "AQIAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/AAAAAAAA8D8=", "srid": None},
             "geometry.Geometry", "struct"),
        data("geometrycollection", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))')",
             {"wkb": "AQcAAAABAAAAAQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": None},
             "geometry.Geometry", "struct"),
    ],
    "columns AS (…) VIRTUAL or STORED": [
        Case("int as (7) virtual", None, 7, "int32"),
        Case("varchar(9) as (concat('a', 'b')) stored", None, "ab", "string"),
    ],
    "INVISIBLE columns": [
        # MySQL has them since 8.0.23.
        Case("int invisible", "6", 6, "int32", only="mariadb"),
        Case("int not null default 5 invisible", "6", 6, "int32", only="mariadb"),
    ],
}  # fmt: skip
CASES = [case for cases in ROWS.values() for case in cases]


def cases_of(kind: str) -> dict[int, Case]:
    """The cases of a kind of server by their numbers."""
    return {n: case for n, case in enumerate(CASES) if case.only in {"", kind}}


def create(kind: str) -> str:
    """A table with a column of each case, `c0`, `c1` and so on."""
    columns = ", ".join(f"c{number} {case.ddl}" for number, case in cases_of(kind).items())
    return f"CREATE TABLE kinds (id INT PRIMARY KEY, {columns})"


def insert(kind: str, key: int) -> str:
    """A row with the value of each case."""
    return _insert(key, {number: case.sql for number, case in cases_of(kind).items()})


def insert_nulls(kind: str, key: int) -> str:
    """A row with a NULL wherever there may be one."""
    values = {
        number: "NULL" if case.may_be_null else case.sql for number, case in cases_of(kind).items()
    }
    return _insert(key, values)


def _insert(key: int, values: dict[int, str | None]) -> str:
    # Invisible columns have to be named, and computed ones must not be.
    given = {f"c{number}": sql for number, sql in values.items() if sql is not None}
    names, sqls = ", ".join(given), ", ".join(given.values())
    return f"INSERT INTO kinds (id, {names}) VALUES ({key}, {sqls})"
