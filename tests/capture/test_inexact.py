"""Columns whose types have values without an exact form, and how the page calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polynya.capture.inexact import EXPLAINED, of_mysql, of_postgresql
from polynya.capture.landing.position import CapturePosition, ResumePoint, TableProgress
from polynya.capture.source import SourceColumn, SourceTable

DECIMAL = "org.apache.kafka.connect.data.Decimal"


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "int64", "name": f"io.debezium.{name}", **more}


@pytest.mark.parametrize(
    ("type_name", "schema", "words"),
    [
        ("integer", {"type": "int32"}, ()),
        ("text", {"type": "string"}, ()),
        ("numeric(10,2)", {"type": "bytes", "name": DECIMAL}, ("not_a_number",)),
        ("money", {"type": "bytes", "name": DECIMAL}, ()),
        ("date", named("time.Date"), ("infinite_dates",)),
        ("interval", named("time.Interval"), ("infinite_intervals",)),
        ("bit(9)", named("data.Bits"), ("bit_length",)),
        ("integer[]", {"type": "array", "items": {"type": "int32", "optional": True}},
         ("array_bounds",)),
        ("character varying(9)[]", {"type": "array", "items": {"type": "string", "optional": True}},
         ("array_bounds",)),
        ("mood[]", {"type": "array", "items": {"type": "string", "optional": False}},
         ("array_bounds", "array_nulls")),
        ("time[]", {"type": "array", "items": named("time.MicroTime", optional=True)},
         ("array_bounds", "array_times")),
    ],
)  # fmt: skip
def test_a_column_of_postgresql(
    type_name: str, schema: dict[str, Any], words: tuple[str, ...]
) -> None:
    assert of_postgresql(type_name, schema) == words


@pytest.mark.parametrize(
    ("type_name", "charset", "words"),
    [("int", None, ()), ("varchar", "utf8mb4", ()), ("varchar", "utf16", ("byte_order_mark",)),
     ("datetime", None, ("zero_dates",)), ("json", None, ("json_parts",)),
     ("longtext", "utf8mb4", ())],
)  # fmt: skip
def test_a_column_of_mariadb_or_mysql(
    type_name: str, charset: str | None, words: tuple[str, ...]
) -> None:
    assert of_mysql(type_name, charset) == words


def test_the_progress_of_a_table_remembers_the_words_of_its_columns() -> None:
    columns = (
        SourceColumn("a", "date", True, {}, ("zero_dates",)),
        SourceColumn("b", "datetime", True, {}, ("zero_dates",)),
        SourceColumn("c", "year", True, {}, ("zero_years",)),
    )
    progress = TableProgress().of_table(SourceTable("shop.t", columns, ("a",)))
    stored = CapturePosition(ResumePoint({}), {"shop.t": progress}).as_dict()

    assert progress.inexact == ("zero_dates", "zero_years")
    assert CapturePosition.of(stored).tables["shop.t"] == progress


def test_the_page_of_types_has_each_sentence() -> None:
    page = (Path(__file__).parents[2] / "docs" / "data-types.md").read_text("utf-8")
    rows = page.partition("## Values that are not kept exactly")[2].partition("\nAll types")[0]

    assert {text for text in EXPLAINED.values() if text not in rows} == set()
