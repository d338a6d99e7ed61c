"""PostgreSQL under the random workload: its types, and triggers that write down what happens."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pg8000.native

from examples.servers.postgresql import PostgresServer, postgres_server
from tests.random_capture import types
from tests.random_capture.source import Audit, Column, Source
from tests.random_capture.types import Type

SETUP = (
    "CREATE EXTENSION hstore",
    "CREATE EXTENSION citext",
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s, \"odd\"')",
    "CREATE DOMAIN price AS numeric(10, 2)",
    "CREATE SCHEMA audit",
    (
        "CREATE TABLE audit.log (seq bigserial PRIMARY KEY, name text NOT NULL, op text NOT NULL,"
        " at timestamptz NOT NULL DEFAULT clock_timestamp(), image json)"
    ),
)


def _text(value: str) -> str:
    return f"convert_from('\\x{value.encode().hex()}'::bytea, 'UTF8')"


def _texts(most: int = 12) -> Any:
    return lambda chance: _text(types.words(chance, most))


def _moments(digits: int) -> Any:
    def draw(chance: random.Random) -> str:
        if chance.random() < 0.1:
            return chance.choice(("'infinity'", "'-infinity'"))
        return f"'{types.moments(chance, digits)}'"

    return draw


def _days(chance: random.Random) -> str:
    if chance.random() < 0.1:
        return chance.choice(("'infinity'", "'-infinity'"))
    return f"'{types.days(chance)}'"


def _day(text: str) -> date:
    return {"infinity": date.max, "-infinity": date.min}.get(text) or date.fromisoformat(text)


def _moment(text: str) -> datetime:
    known = {"infinity": datetime.max, "-infinity": datetime.min}
    return known.get(text) or datetime.fromisoformat(text)


def _instant(text: str) -> datetime:
    at = _moment(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _plain(ddl: str, draw: Any, value: Any = str, **more: Any) -> Type:
    return Type(ddl, draw, value, **{"text": "({})::text", **more})


def _many(ddl: str, element: str, value: Any, rows: int, **more: Any) -> Type:
    """A list that is stored out of line, or a short one."""

    def draw(chance: random.Random) -> str:
        if chance.random() < 0.3:
            return f"ARRAY[NULL]::{ddl}"
        count = chance.choice((0, 1, rows, rows))
        return f"(SELECT coalesce(array_agg({element}), '{{}}') FROM generate_series(1, {count}))"

    def read(text: str) -> Any:
        return [None if one is None else value(one) for one in types.numbers_as_text(text)]

    # What Debezium cannot mark as not sent has to be in the log.
    is_marked = ddl in {"integer[]", "bigint[]", "text[]", "uuid[]", "date[]"}
    apart, whole = "ALTER {column} SET STORAGE EXTERNAL", "REPLICA IDENTITY FULL"
    return Type(
        ddl, draw, read, text="array_to_json({})::text",
        after=f"ALTER TABLE {{table}} {apart if is_marked else whole}", **more,
    )  # fmt: skip


def _long(ddl: str, drawn: str, value: Any = str, text: str = "({})::text", **more: Any) -> Type:
    """A value that is stored out of line, or a short one."""

    def draw(chance: random.Random) -> str:
        return drawn.format(n=chance.choice((0, 1, 120, 300)))

    return Type(
        ddl, draw, value, text=text,
        after="ALTER TABLE {table} ALTER {column} SET STORAGE EXTERNAL", **more,
    )  # fmt: skip


def _hashes(n: str = "{n}") -> str:
    return f"(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, {n}))"


_INTERVAL = (
    "(extract(year from {0}) * 12 + extract(month from {0}))::int || '|' || extract(day from {0})"
    " || '|' || (extract(hour from {0}) * 3600000000 + extract(minute from {0}) * 60000000"
    " + extract(microseconds from {0}))::bigint"
)


def _interval(chance: random.Random) -> str:
    return (
        f"make_interval(years => {chance.randint(-9, 9)}, months => {chance.randint(-30, 30)},"
        f" days => {chance.randint(-99, 99)}, hours => {chance.randint(-99, 99)},"
        f" secs => {chance.randint(-(10**9), 10**9)}::float8 / 1000)"
    )


def _iso_interval(text: str) -> str:
    """`P1Y2M3DT4H5M6.5S` as the parts of the source: months, days, microseconds."""
    months = days = 0
    micros = Decimal(0)
    day, _, time = text.removeprefix("P").partition("T")
    for part, units in ((day, {"Y": 12, "M": 1}), (time, {"H": 3600, "M": 60, "S": 1})):
        number = ""
        for letter in part:
            if letter not in "YMDHS":
                number += letter
            elif part is day and letter == "D":
                days, number = days + int(number), ""
            elif part is day:
                months, number = months + units[letter] * int(number), ""
            else:
                micros, number = micros + units[letter] * Decimal(number) * 10**6, ""
    return f"{months}|{days}|{int(micros)}"


def _pairs(text: str) -> list[tuple[str, str | None]]:
    return sorted((name, value) for name, value in types.numbers_as_text(text).items())


def _float(ddl: str) -> Any:
    one = types.doubles if ddl == "float8" else types.floats

    def draw(chance: random.Random) -> str:
        if chance.random() < 0.1:
            return f"'{chance.choice(('NaN', 'Infinity', '-Infinity', '-0'))}'::{ddl}"
        return f"'{one(chance)!r}'::{ddl}"

    return draw


TYPES: tuple[Type, ...] = (
    _plain("boolean", lambda c: c.choice(("true", "false")), lambda t: t == "true"),
    _plain("smallint", types.integers(16), int, wider="integer"),
    _plain("integer", types.integers(32), int, wider="bigint"),
    _plain("bigint", types.integers(64), int),
    _plain("oid", types.integers(32, signed=False), int),
    _plain("real", _float("float4"), types.single, shown=types.same_float, wider="float8"),
    _plain("float8", _float("float8"), types.double, shown=types.same_float),
    _plain("numeric(10,2)", types.decimals(10, 2), Decimal, wider="numeric(20,2)"),
    _plain("numeric(20,2)", types.decimals(20, 2), Decimal),
    _plain("numeric(38,10)", types.decimals(38, 10), Decimal),
    _plain("numeric(50,2)", types.decimals(50, 2), Decimal, shown=Decimal),
    _plain("numeric", types.decimals(60, 30), Decimal, shown=Decimal),
    _plain("text", _texts()),
    _plain("varchar(20)", lambda c: _text(types.cut(types.words(c), 20)), wider="varchar(200)"),
    _plain("varchar(200)", _texts()),
    _plain("char(5)", lambda c: _text(types.cut(types.words(c), 5).rstrip(" ")),
           lambda t: t.ljust(5)),
    _plain("citext", _texts()),
    _plain("mood", lambda c: c.choice(("'sad'", "'ok'", "'it''s, \"odd\"'"))),
    _plain("price", types.decimals(10, 2), Decimal),
    _plain("bytea", lambda c: f"'\\x{c.randbytes(c.randint(0, 40)).hex()}'", bytes.fromhex,
           text="encode({}, 'hex')"),
    _plain("date", _days, _day),
    _plain("time", lambda c: f"'{types.moments(c)[11:]}'", types.micros, shown=types.micros),
    _plain("timestamp", _moments(6), _moment),
    _plain("timestamp(3)", _moments(3), _moment),
    _plain("timestamp(0)", _moments(0), _moment),
    _plain("timestamptz", _moments(6), _instant),
    _plain("interval", _interval, text=_INTERVAL, shown=_iso_interval),
    _plain("uuid", lambda c: f"'{uuid.UUID(bytes=c.randbytes(16))}'"),
    _plain("json", lambda c: f"'{{\"b\": 1.50,  \"a\": [null, {c.random()}]}}'"),
    _plain("jsonb", lambda c: f"jsonb_build_object('n', {c.random()}, 't', {_text(types.words(c))}"
           "::text)"),
    _plain("inet", lambda c: f"'10.0.{c.randrange(256)}.1/{c.randint(8, 32)}'",
           text="CASE WHEN {0} IS NOT NULL THEN format('%s', {0}) END"),
    _plain("int4range", lambda c: f"'[{c.randint(0, 9)},{c.randint(10, 99)})'"),
    _plain("bit(1)", lambda c: f"B'{c.randrange(2)}'", lambda t: t == "1"),
    _plain("hstore", lambda c: f"hstore({_text(types.words(c) + 'k')}, {_text(types.words(c))})",
           _pairs, text="hstore_to_json({})::text", shown=sorted),
    _long("text", _hashes()),
    _long("varchar", _hashes()),
    _long("bytea", f"decode({_hashes()}, 'hex')", bytes.fromhex, "encode({}, 'hex')"),
    _long("jsonb", f"jsonb_build_object('h', {_hashes()})"),
    _long("json", f"json_build_object('h', {_hashes()})"),
    _long("hstore", f"hstore('h', {_hashes()})", _pairs, "hstore_to_json({})::text", shown=sorted),
    _many("integer[]", "(random() * 2e9)::int", int, 1000),
    _many("bigint[]", "(random() * 9e18)::bigint", int, 600),
    _many("text[]", "md5(random()::text)", str, 120),
    _many("uuid[]", "gen_random_uuid()", str, 250),
    _many("date[]", "date '2000-01-01' + (random() * 9999)::int", _day, 1000),
    _many("float8[]", "random()", types.double, 600,
          shown=lambda v: v and [one if one is None else types.same_float(one) for one in v]),
    _many("timestamptz[]", "timestamptz '2000-01-01' + random() * interval '9999 days'", _instant,
          600),
    _many("numeric(10,2)[]", "round((random() * 1e6)::numeric, 2)", Decimal, 600),
)  # fmt: skip

#: Types of keys with the values that a key takes, which are few, so that records live long.
KEYS: tuple[tuple[Column, ...], ...] = (
    (Column("id", _plain("integer", lambda c: str(c.randint(1, 150)), int)),),
    (Column("id", _plain("bigint", lambda c: str(10**15 + c.randint(1, 99)), int)),),
    (Column("code", _plain("text", lambda c: _text(types.words(c, 2)))),),
    (
        Column("tenant", _plain("varchar(40)", lambda c: _text(types.words(c, 1)))),
        Column("id", _plain("integer", lambda c: str(c.randint(1, 9)), int)),
    ),
    # Equal whatever the case, so that a key may change and be the same to the server.
    (Column("code", _plain("citext", lambda c: f"'{c.choice('kK')}{c.randint(1, 80)}'")),),
    (Column("day", _plain("date", lambda c: f"'2024-01-01'::date + {c.randint(0, 90)}", _day)),),
    (Column("price", _plain("numeric(12,2)", lambda c: f"{c.randint(1, 90)}.25", Decimal)),),
)

AUDIT = Audit(TYPES, "json_build_object", "json_build_array")


class Session:
    """A session of the superuser."""

    def __init__(self, server: PostgresServer) -> None:
        self._link = server.connect()
        for one in ("lock_timeout = '60s'", "timezone = 'UTC'", "extra_float_digits = 1"):
            self._link.run(f"SET {one}")

    def run(self, statement: str) -> Sequence[Sequence[Any]]:
        """Run a statement; its rows."""
        return self._link.run(statement) or []

    def close(self) -> None:
        """End it."""
        self._link.close()


@contextmanager
def _server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def _audited(name: str, keys: Sequence[Column], columns: Sequence[Column]) -> list[str]:
    """A trigger that writes each change of a row of the table into the log."""
    differs = AUDIT.differs(keys)
    insert = "INSERT INTO audit.log (name, op, image) VALUES (TG_TABLE_NAME"
    return [
        f"""CREATE OR REPLACE FUNCTION audit.{name}() RETURNS trigger LANGUAGE plpgsql
        SET timezone = 'UTC' SET extra_float_digits = 1 SET datestyle = 'ISO' AS $body$ BEGIN
        IF TG_OP = 'DELETE' THEN {insert}, 'D', {AUDIT.row("OLD", keys)}); RETURN NULL; END IF;
        IF TG_OP = 'UPDATE' AND ({differs}) THEN {insert}, 'D', {AUDIT.row("OLD", keys)}); END IF;
        {insert}, 'U', {AUDIT.row("NEW", keys, columns)}); RETURN NULL; END $body$""",
        f"DROP TRIGGER IF EXISTS audit_rows ON {name}",
        (
            f"CREATE TRIGGER audit_rows AFTER INSERT OR UPDATE OR DELETE ON {name}"
            f" FOR EACH ROW EXECUTE FUNCTION audit.{name}()"
        ),
    ]


POSTGRESQL = Source(
    name="PostgreSQL",
    kind="postgresql",
    database="postgres",
    include="public.%",
    schema="public",
    types=TYPES,
    keys=KEYS,
    setup=SETUP,
    server=_server,
    connect=Session,
    audited=_audited,
    alter="ALTER TABLE {table} ALTER {column} TYPE {type}",
    numbers="generate_series(1, {n}) AS g (g)",
    errors=(pg8000.native.Error, OSError),
)
