"""What the source did not send, in the names of mapped columns."""

from __future__ import annotations

import pyarrow as pa

from polynya.lake.copy.mapping import unsent_columns

READS = {"name": frozenset({"first", "last"}), "note": frozenset({"note"}), "city": frozenset()}


def named(*rows: list[str] | None) -> list[list[str] | None]:
    given = pa.array(rows, pa.list_(pa.string()))
    return unsent_columns(given, READS, also=frozenset())[0].to_pylist()


def test_a_column_was_not_sent_when_one_that_it_reads_was_not() -> None:
    assert named(None, ["last"], ["note", "other"]) == [None, ["name"], ["note"]]


def test_a_row_that_was_read_stays_one() -> None:
    assert named(["hdr__read"], ["hdr__read", "first"]) == [["hdr__read"], ["hdr__read", "name"]]
