"""Lines that are put together here are those that the server would write."""

from __future__ import annotations

import json

import pytest

from polynya.capture.postgresql import copied_lines
from polynya.capture.postgresql.copied_lines import FORMAT, CopiedLines
from polynya.capture.postgresql.session import PostgresSession
from polynya.capture.postgresql.snapshot import line, line_parts, source_of, value
from polynya.capture.postgresql.tables import read_tables
from tests.capture.postgresql.shop import Shop

SOURCE = source_of(database="shop", prefix="shop", lsn=7, micros=1_700_000_000_000_000, version="3")


@pytest.mark.parametrize("text_bytes", [1, 64 << 20], ids=["row by row", "at once"])
def test_the_lines_of_a_copy_are_those_of_the_server(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, text_bytes: int
) -> None:
    monkeypatch.setattr(copied_lines, "_TEXT_BYTES", text_bytes)
    shop.run(
        'CREATE TABLE odd (id int PRIMARY KEY, "a""b\'\\c,:" text, at timestamptz, n numeric(9,2))',
        r"INSERT INTO odd VALUES (1, E'x\n\r\t\x01\x02\x7f\\"
        "', 'infinity', 'NaN'),"
        " (2, NULL, NULL, NULL), (3, 'null', '0044-03-15 12:00 BC', -0.01),"
        " (4, '', '0999-02-03 04:05:06.7Z', 1), (5, repeat('ä', 500000), '20000-01-01', 9)",
        "CREATE TABLE nothing ()",
        "INSERT INTO nothing DEFAULT VALUES",
        "INSERT INTO nothing DEFAULT VALUES",
    )
    with PostgresSession(shop.access()) as session:
        for table in read_tables(session):
            expected: list[bytes] = []
            whole = f"SELECT {line(table, SOURCE)} FROM {table.sql} t ORDER BY t"
            session.copy(f"COPY ({whole}) TO STDOUT {FORMAT}", expected.append)
            lines = CopiedLines(table.columns, line_parts(table, SOURCE))
            values = ", ".join(map(value, table.columns))
            session.copy(
                f"COPY (SELECT {values} FROM {table.sql} t ORDER BY t) TO STDOUT {FORMAT}",
                lines.write,
            )

            assert lines.content() == b"".join(expected)
            assert lines.rows == len(expected) > 1
            assert all(json.loads(one)["value"]["op"] == "r" for one in expected)
