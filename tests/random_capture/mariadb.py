"""MariaDB under the random workload: its types, and triggers that write down what happens."""

from __future__ import annotations

import random
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pymysql

from examples.servers.mariadb import Server, mariadb_server
from tests.random_capture import types
from tests.random_capture.source import Audit, Column, Source
from tests.random_capture.types import Type

_DATABASE = "mill"
SETUP = (
    f"CREATE DATABASE {_DATABASE}",
    "CREATE DATABASE audit",
    # Texts of values are hexadecimal, so that no encoding changes them on the way.
    (
        "CREATE TABLE audit.log (seq BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(64) NOT NULL,"
        " op VARCHAR(1) NOT NULL, image LONGTEXT,"
        " at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))"
    ),
)
_SESSION = (
    f"USE {_DATABASE}",
    "SET time_zone = '+00:00'",
    "SET NAMES utf8mb4",
    "SET lock_wait_timeout = 120",
)


def text_of(value: str) -> str:
    """A text as SQL."""
    return f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)"


def _texts(most: int = 12) -> Any:
    return lambda chance: text_of(types.words(chance, most))


def _ascii(most: int) -> Any:
    return lambda chance: "'" + "".join(chance.choices("aBz 09-", k=chance.randint(0, most))) + "'"


def _plain(ddl: str, draw: Any, value: Any = str, **more: Any) -> Type:
    given = {"text": "HEX(CONVERT(CAST({} AS CHAR) USING utf8mb4))", **more}
    return Type(ddl, draw, lambda text: value(bytes.fromhex(text).decode()), **given)


def _bytes(ddl: str, draw: Any) -> Type:
    return Type(ddl, draw, bytes.fromhex, text="HEX({})")


def _hex(most: int) -> Any:
    return lambda chance: f"X'{chance.randbytes(chance.randint(0, most)).hex()}'"


def _moments(digits: int, first: int = 1) -> Any:
    return lambda chance: f"'{types.moments(chance, digits, first)}'"


def _stamps(digits: int) -> Any:
    def draw(chance: random.Random) -> str:
        at = datetime.fromtimestamp(chance.randint(1, 2**31 - 2) + 86_400)
        return f"'{min(at, datetime(2038, 1, 18))}'"

    return draw


def _times(chance: random.Random) -> str:
    seconds = f"{chance.randrange(60):02}:{chance.randrange(60):02}.{chance.randrange(10**6):06}"
    return f"'{chance.choice(('', '-'))}{chance.randint(0, 837):02}:{seconds}'"


def _long(ddl: str, value: Any = str) -> Type:
    def draw(chance: random.Random) -> str:
        return f"REPEAT({text_of(types.words(chance, 4))}, {chance.choice((0, 1, 500, 5000))})"

    return _plain(ddl, draw, value)


TYPES: tuple[Type, ...] = (
    _plain("tinyint", types.integers(8), int, wider="int"),
    _plain("smallint unsigned", types.integers(16, signed=False), int, wider="int unsigned"),
    _plain("mediumint", types.integers(24), int),
    _plain("int", types.integers(32), int, wider="bigint"),
    _plain("int unsigned", types.integers(32, signed=False), int),
    _plain("bigint", types.integers(64), int),
    _plain("bigint unsigned", types.integers(64, signed=False), int, shown=int),
    _plain("boolean", lambda c: str(c.randrange(2)), int),
    _plain("decimal(10,2)", types.decimals(10, 2), Decimal, wider="decimal(20,2)"),
    _plain("decimal(20,2)", types.decimals(20, 2), Decimal),
    _plain("decimal(38,10)", types.decimals(38, 10), Decimal),
    _plain("decimal(65,30)", types.decimals(65, 30), Decimal, shown=Decimal),
    # A float is shown with six digits unless it is a double.
    _plain("float", lambda c: repr(types.floats(c)), types.single, shown=types.same_float,
           text="HEX(CAST(CAST({} AS DOUBLE) AS CHAR))", wider="double"),
    _plain("double", lambda c: repr(types.doubles(c)), types.double, shown=types.same_float),
    Type("bit(1)", lambda c: f"b'{c.randrange(2)}'", lambda t: t == "1", text="CAST({}+0 AS CHAR)"),
    _plain("year", lambda c: str(c.randint(1901, 2155)), int),
    _plain("date", lambda c: f"'{types.days(c)}'", date.fromisoformat),
    _plain("datetime", _moments(0), datetime.fromisoformat),
    _plain("datetime(3)", _moments(3), datetime.fromisoformat),
    _plain("datetime(6)", _moments(6), datetime.fromisoformat),
    _plain("timestamp null", _stamps(0), types.instant),
    _plain("timestamp(6) null", _stamps(6), types.instant),
    _plain("time(6)", _times, types.micros, shown=types.micros),
    _plain("char(8) character set latin1", _ascii(8), lambda t: t.rstrip(" ")),
    _plain("varchar(20)", lambda c: text_of(types.cut(types.words(c), 20)),
           wider="varchar(200) collate utf8mb4_unicode_ci"),
    _plain("varchar(200) collate utf8mb4_unicode_ci", _texts()),
    # Debezium drops a byte order mark at the beginning of a text in UTF-16.
    _plain("varchar(200) character set utf16", lambda c: text_of(types.words(c).lstrip("\ufeff"))),
    _plain("varchar(40) character set latin1", _ascii(40)),
    _plain("text", _texts()),
    _long("longtext"),
    _long("mediumtext collate utf8mb4_bin"),
    _plain("json", lambda c: f"'{{\"b\": 1.50,  \"a\": [null, {c.random()}]}}'"),
    _bytes("binary(4)", lambda c: f"X'{c.randbytes(4).hex()}'"),
    _bytes("varbinary(40)", _hex(40)),
    _bytes("blob", _hex(200)),
    Type("uuid", lambda c: f"'{uuid.UUID(bytes=c.randbytes(16))}'",
         lambda text: uuid.UUID(text).bytes, text="CAST({} AS CHAR)"),
    _plain("enum('a','b''c','d')", lambda c: c.choice(("'a'", "'b''c'", "'d'"))),
    _plain("set('x','y','z')", lambda c: c.choice(("'z,x'", "'y'", "''", "'x,y,z'"))),
)  # fmt: skip

#: Types of keys with the values that a key takes, which are few, so that records live long.
KEYS: tuple[tuple[Column, ...], ...] = (
    (Column("id", _plain("int", lambda c: str(c.randint(1, 150)), int)),),
    (Column("id", _plain("bigint unsigned", lambda c: str(2**63 + c.randint(1, 99)), int,
                         shown=int)),),
    # What a server of an older default has: an everyday key of another collation.
    (Column("code", _plain("varchar(80) character set utf8mb4 collate utf8mb4_unicode_ci",
                           lambda c: text_of(f"{c.choice('kKé')}{c.randint(1, 60)}"))),),
    (
        Column("tenant", _plain("varchar(20) character set latin1 collate latin1_german1_ci",
                                lambda c: f"'{c.choice(('a', 'b', 'ab'))}'")),
        Column("id", _plain("int", lambda c: str(c.randint(1, 40)), int)),
    ),
    (Column("code", _bytes("varbinary(20)", lambda c: f"X'{c.randint(0, 90):04x}'")),),
    (Column("day", _plain("date", lambda c: f"'2024-01-{c.randint(1, 31):02}'",
                          date.fromisoformat)),),
    (Column("price", _plain("decimal(12,2)", lambda c: f"{c.randint(1, 90)}.25", Decimal)),),
)  # fmt: skip

AUDIT = Audit(TYPES, "JSON_OBJECT", "JSON_ARRAY")


class Session:
    """A session of the superuser."""

    def __init__(self, server: Server) -> None:
        self._link = server.connect()
        for statement in _SESSION if self._there() else _SESSION[1:]:
            self.run(statement)

    def run(self, statement: str) -> Sequence[Sequence[Any]]:
        """Run a statement; its rows."""
        with self._link.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())

    def close(self) -> None:
        """End it."""
        self._link.close()

    def _there(self) -> bool:
        return bool(self.run(f"SHOW DATABASES LIKE '{_DATABASE}'"))


@contextmanager
def _server() -> Iterator[Server]:
    # The default of the server is not that of the keys.
    settings = {"character_set_server": "utf8mb4", "collation_server": "utf8mb4_general_ci"}
    with tempfile.TemporaryDirectory() as folder, mariadb_server(Path(folder), settings) as server:
        yield server


def triggers(
    audit: Audit, name: str, keys: Sequence[Column], columns: Sequence[Column]
) -> dict[str, str]:
    """What writes each change of a row of the table into the log, by the kind of change."""
    differs = audit.differs(keys)
    begin = f"INSERT INTO audit.log (name, op, image) VALUES ('{name}'"
    put, drop = (
        f"{begin}, 'U', {audit.row('NEW', keys, columns)})",
        f"{begin}, 'D', {audit.row('OLD', keys)})",
    )
    return {
        "INSERT": put,
        "UPDATE": f"BEGIN IF {differs} THEN {drop}; END IF; {put}; END",
        "DELETE": drop,
    }


def _audited(name: str, keys: Sequence[Column], columns: Sequence[Column]) -> list[str]:
    return [
        f"CREATE OR REPLACE TRIGGER {name}_{event} AFTER {event} ON {name} FOR EACH ROW {body}"
        for event, body in triggers(AUDIT, name, keys, columns).items()
    ]


MARIADB = Source(
    name="MariaDB",
    kind="mariadb",
    database=_DATABASE,
    include=f"{_DATABASE}.%",
    schema=_DATABASE,
    types=TYPES,
    keys=KEYS,
    setup=SETUP,
    server=_server,
    connect=Session,
    audited=_audited,
    alter="ALTER TABLE {table} MODIFY {column} {type}",
    numbers="(WITH RECURSIVE h (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM h WHERE g < {n})"
    " SELECT g FROM h) AS g",
    errors=(pymysql.err.Error, OSError),
)
