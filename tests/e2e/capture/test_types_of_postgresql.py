"""Each type of PostgreSQL in an Iceberg table: loaded and streamed rows have the value it had."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.oracle.packs.read_back import READERS, internal_table
from tests.postgresql import postgres_server
from tests.projects import write_project

pytestmark = pytest.mark.slow

STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: debezium}
"""
SETUP = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE DOMAIN price AS numeric(10, 2)",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE EXTENSION hstore",
    "CREATE EXTENSION citext",
)
#: Type, value in SQL, and what the table has.
KINDS: tuple[tuple[str, str, Any], ...] = (
    ("boolean", "true", True),
    ("smallint", "-32768", -32768),
    ("integer", "-2147483648", -2147483648),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("oid", "4294967295", 4294967295),
    ("real", "1.1", pytest.approx(1.1)),
    ("double precision", "0.1", 0.1),
    ("double precision", "'-Infinity'", float("-inf")),
    ("numeric(10,2)", "-1.5", Decimal("-1.50")),
    ("numeric(38,10)", "1234567890123456789012345678.0123456789",
     Decimal("1234567890123456789012345678.0123456789")),
    ("numeric(50,2)", "123456789012345678901234567890123456789012345678.25",
     "123456789012345678901234567890123456789012345678.25"),
    ("numeric", "123.4500", "123.45"),
    ("numeric", "'NaN'", None),
    ("money", "'$1,234.56'", Decimal("1234.56")),
    ("text", "E'q\"\\\\n\\n\\té€𝄞'", 'q"\\n\n\té€𝄞'),
    ("char(5)", "'ab'", "ab   "),
    ("citext", "'CiText'", "CiText"),
    ("mood", "'ok'", "ok"),
    ("bytea", "'\\xdeadbeef00'", b"\xde\xad\xbe\xef\x00"),
    ("date", "'2024-02-29'", date(2024, 2, 29)),
    ("date", "'infinity'", date.max),
    ("date", "'-infinity'", date.min),
    ("time", "'12:34:56.789012'", "12:34:56.789012"),
    ("timetz", "'12:34:56+02'", "10:34:56Z"),
    ("timestamp", "'2024-02-29 12:34:56.789012'", datetime(2024, 2, 29, 12, 34, 56, 789012)),
    ("timestamp", "'infinity'", datetime.max),
    ("timestamp(3)", "'-infinity'", datetime.min),
    ("timestamp(0)", "'1969-12-31 23:59:59'", datetime(1969, 12, 31, 23, 59, 59)),
    ("timestamptz", "'2024-02-29 12:34:56.789012+02'",
     datetime(2024, 2, 29, 10, 34, 56, 789012, UTC)),
    ("timestamptz", "'infinity'", datetime.max.replace(tzinfo=UTC)),
    ("interval", "'1 year 2 mons 3 days 04:05:06.5'", "P1Y2M3DT4H5M6.5S"),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("json", "'{\"b\":1,  \"a\":null}'", '{"b":1,  "a":null}'),
    ("jsonb", "'{\"b\":1,  \"a\":1.10}'", '{"a": 1.10, "b": 1}'),
    ("bit(1)", "B'1'", True),
    ("bit(9)", "B'100000001'", b"\x01\x01"),
    ("point", "'(1.5,-2)'",
     {"x": 1.5, "y": -2.0, "srid": None,
      "wkb": bytes.fromhex("0101000000000000000000f83f00000000000000c0")}),
    ("circle", "'<(1,2),3>'", b"<(1.0,2.0),3.0>"),
    ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    ("int4range", "'[1,5)'", "[1,5)"),
    ("tsvector", "'a:1 b:2'", "'a':1 'b':2"),
    ("hstore", "'a=>1,b=>NULL'", [("a", "1"), ("b", None)]),
    ("price", "1.5", Decimal("1.50")),
    ("pair", "'(1,x)'", b"(1,x)"),
    ("int4multirange", "'{[1,5),[7,9)}'", b"{[1,5),[7,9)}"),
    ("integer[]", "'{1,NULL}'", [1, None]),
    ("text[]", "'{a,NULL,\"b,c\"}'", ["a", None, "b,c"]),
    ("numeric(10,2)[]", "'{1.5}'", [Decimal("1.50")]),
    ("timestamptz[]", "'{2024-02-29 12:00:00+02}'", [datetime(2024, 2, 29, 10, tzinfo=UTC)]),
    ("text", f"repeat('long ', {2**20})", "long " * 2**20),
)  # fmt: skip


def insert(number: int, *, lacks: frozenset[str] = frozenset()) -> str:
    """A row with the value of each type, NULL for the literals that it lacks."""
    values = ", ".join(
        f"({'NULL' if literal in lacks else literal})::{kind}" for kind, literal, _ in KINDS
    )
    return f"INSERT INTO kinds VALUES ({number}, {values})"


def captured(folder: Path) -> None:
    """Capture a row that was there before, and one that came later."""
    columns = ", ".join(f"c{number} {kind}" for number, (kind, _, _) in enumerate(KINDS))
    with postgres_server() as server:
        shop = Shop(server, "postgres")
        shop.run(*SETUP, f"CREATE TABLE kinds (id int PRIMARY KEY, {columns})", insert(1))
        capture = CaptureProcess(folder / "landing", shop.access())
        capture.start()
        capture.wait_for("loaded")
        capture.wait_for("streaming")
        # A change with NaN is an error: `tests/capture/postgresql/test_table_faults.py`.
        shop.run(insert(2, lacks=frozenset({"'NaN'"})))
        capture.wait_for_line("kinds", id=2)
        capture.end()


def test_each_type_has_its_value_whether_it_was_loaded_or_streamed(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", shop=STORAGE)
    (project / "landing").mkdir()
    captured(project)

    assert main(["run", "--once", "--apply", "always", "--project", str(project)]) == 0

    namespace, table = internal_table("shop", "kinds")
    for name, read in READERS.items():
        where = "hdr__partition = 'current'"
        rows = {row["id"]: row for row in read(project, namespace, table, where=where)}
        assert sorted(rows) == [1, 2]
        for number, (kind, literal, expected) in enumerate(KINDS):
            for row in rows.values():
                assert _shown(row[f"c{number}"]) == expected, (name, kind, literal[:60])


def _shown(value: Any) -> Any:
    """Maps have no order, and readers have them as pairs or as a dictionary."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted(value)
    return value
