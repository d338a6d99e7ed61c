"""Numbers and times as their source spells them: exact values, or a bad record."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from polynya.formats.batch import WHOLE_FILE, DatasetBatch
from polynya.model.config.settings import Delivery
from tests.formats.helpers import a_dataset, column, json_lines, read, reread, rules, schema, types
from tests.formats.native.splits import by_tasks, exactly, request_for, same

_GERMAN = Delivery(delimiter=";", decimal_separator=",", thousands_separator=".")


def _csv(*fields: str, delivery: Delivery = _GERMAN, **settings: Any) -> DatasetBatch:
    """One column of CSV."""
    lines = [f"{n};1;{field}" for n, field in enumerate(fields)]
    content = "\n".join(["id;n;x", *lines]).encode()
    return read(content, a_dataset("csv", delivery=delivery, **settings))


def _json(*values: Any, delivery: Delivery = _GERMAN, **settings: Any) -> DatasetBatch:
    records = [{"id": n, "n": 1, "x": value} for n, value in enumerate(values)]
    delivery = delivery.model_copy(update={"delimiter": None})
    return read(json_lines(*records), a_dataset(delivery=delivery, **settings))


@pytest.mark.parametrize(
    ("fields", "kind", "values"),
    [
        (["1", "1.234", "-12.345.678"], "bigint", [1, 1234, -12345678]),
        (["1,5", "1.234,25", "7"], "double", [1.5, 1234.25, 7.0]),
        (["1,5", "n/a"], "string", ["1,5", "n/a"]),
        (["1.5", "1,5"], "string", ["1.5", "1,5"]),
        (["1.23", "1.2345"], "string", ["1.23", "1.2345"]),
        (["true", "false"], "boolean", [True, False]),
        (["007", "1"], "string", ["007", "1"]),
        (["1,50"], "string", ["1,50"]),
    ],
)
def test_types_of_csv_are_inferred_in_the_spelling(
    fields: list[str], kind: str, values: list[Any]
) -> None:
    batch = _csv(*fields)

    assert (schema(batch)["x"], column(batch, "x"), rules(batch)) == (kind, values, [])


def test_a_declared_number_is_exact_or_rejected() -> None:
    fields = ["1.234.567,89", "-0,10", ",5", "12", "1.5", "1,234,567", "1 234", "1.23,4", "0,123"]

    for batch in (
        _csv(*fields, columns={"x": "decimal(12,2)"}),
        _json(*fields, columns={"x": "decimal(12,2)"}),
    ):
        expected = [Decimal("1234567.89"), Decimal("-0.10"), Decimal("0.50"), Decimal("12.00")]
        assert column(batch, "x") == expected
        assert rules(batch) == [(n, "bad_value") for n in range(4, 9)]
        assert "is not a number with `,` before the decimal places and `.` between thousands" in (
            batch.rejected[0].error
        )


@pytest.mark.parametrize(
    ("separators", "text", "value"),
    [
        ({"thousands_separator": "'"}, "1'234.5", "1234.50"),
        ({"thousands_separator": " ", "decimal_separator": ","}, "1 234,5", "1234.50"),
        ({"thousands_separator": "\u202f", "decimal_separator": ","}, "1\u202f234,5", "1234.50"),
        ({"decimal_separator": ","}, "1234,5", "1234.50"),
        ({"thousands_separator": ","}, "1,234.5", "1234.50"),
    ],
)
def test_each_country_has_its_separators(separators: dict[str, str], text: str, value: str) -> None:
    delivery = Delivery(delimiter=";", **separators)

    assert column(_csv(text, delivery=delivery, numbers=types(x="decimal(9,2)")["x"]), "x") == [
        Decimal(value)
    ]


def test_numbers_of_json_are_numbers_and_its_nested_texts_are_spelled_alike() -> None:
    batch = _json(
        {"a": 1.5, "b": ["1.234", "2,5"]}, {"b": ["1.5"]},
        columns={"x": "struct<a:double,b:array<decimal(9,1)>>"},
    )  # fmt: skip

    assert column(batch, "x") == [{"a": 1.5, "b": [Decimal("1234.0"), Decimal("2.5")]}]
    assert rules(batch) == [(1, "bad_value")]


def _timed(kind: str, form: str, *values: Any, in_json: bool = True) -> DatasetBatch:
    settings = {"columns": {"x": kind}, "formats": {"x": form}}
    plain = Delivery(delimiter=";")
    return (_json if in_json else _csv)(*values, delivery=plain, **settings)


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("dd.MM.yyyy HH:mm", "31.12.2026 23:59", datetime(2026, 12, 31, 23, 59, tzinfo=UTC)),
        ("MM/dd/yyyy hh:mm a", "12/31/2026 12:30 AM", datetime(2026, 12, 31, 0, 30, tzinfo=UTC)),
        ("d MMM yy HH:mm:ss.SSS XX", "1 Feb 26 00:30:01.250 +0100",
         datetime(2026, 1, 31, 23, 30, 1, 250_000, tzinfo=UTC)),
        ("yyyy-MM-dd[ HH:mm]", "2026-01-01", datetime(2026, 1, 1, tzinfo=UTC)),
        ("epoch_seconds", "1767225600", datetime(2026, 1, 1, tzinfo=UTC)),
        ("epoch_seconds", "-1.5", datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=UTC)),
        ("epoch_milliseconds", "1000", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("epoch_milliseconds", "0.001", datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_times_have_the_format_of_their_column(form: str, text: str, expected: datetime) -> None:
    for in_json in (True, False):
        assert column(_timed("timestamp", form, text, in_json=in_json), "x") == [expected]


def test_numbers_are_times_and_dates_too() -> None:
    assert column(_timed("timestamp", "epoch_seconds", 1, 1.5, 0), "x") == [
        datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
    ]
    assert column(_timed("date", "yyyyMMdd", 20261231, "20260101", None), "x") == [
        date(2026, 12, 31), date(2026, 1, 1), None
    ]  # fmt: skip
    assert column(_timed("date", "epoch_seconds", 86_400), "x") == [date(1970, 1, 2)]
    assert column(_timed("date", "dd.MM.yyyy HH:mm", "01.02.2026 00:00"), "x") == [date(2026, 2, 1)]


@pytest.mark.parametrize(
    ("kind", "form", "value"),
    [
        ("date", "dd.MM.yyyy", "2026-12-31"),
        ("date", "dd.MM.yyyy", "31.02.2026"),
        ("date", "dd.MM.yyyy", "01.01.0000"),
        ("date", "dd.MM.yyyy", 31),
        ("date", "dd.MM.yyyy", True),
        ("date", "dd.MM.yyyy", ["31.12.2026"]),
        ("date", "dd.MM.yyyy HH:mm", "01.02.2026 00:01"),
        ("date", "EEE dd.MM.yyyy", "Mon 31.12.2026"),
        ("timestamp", "dd.MM.yyyy HH:mm", "31.12.2026 24:00"),
        ("timestamp", "dd.MM.yyyy hh:mm a", "31.12.2026 13:00 PM"),
        ("timestamp", "yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "2026-01-01 00:00:00.123456789"),
        ("timestamp", "yyyy-MM-dd HH:mmXXX", "2026-01-01 00:00+19:00"),
        ("timestamp", "[yyyy-]MM-dd", "01-01"),
        ("timestamp", "epoch_seconds", "2026-01-01"),
        ("timestamp", "epoch_seconds", "1_000"),
        ("timestamp", "epoch_seconds", 10**13),
        ("timestamp", "epoch_seconds", 10**400),
        ("timestamp", "epoch_seconds", "0.00000000000000000000000000000000000001"),
        ("timestamp", "epoch_milliseconds", 0.0001),
        ("timestamp", "epoch_milliseconds", True),
    ],
)
def test_a_value_without_the_format_is_a_bad_value(kind: str, form: str, value: Any) -> None:
    batch = _timed(kind, form, value)

    assert rules(batch) == [(0, "bad_value")]
    assert batch.rejected[0].error.startswith("column x: ")


def test_columns_that_are_known_keep_their_format() -> None:
    """The reader of whole columns takes ISO 8601 only."""
    dataset = a_dataset(columns={"at": "timestamp"}, formats={"at": "epoch_milliseconds"})
    known = types(id="bigint", n="bigint", at="timestamp")
    lines = json_lines({"id": 1, "n": 1, "at": 1000}, {"id": 2, "n": 1, "at": "2026-01-01"})

    batch = read(lines, dataset, known)

    assert column(batch, "at") == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]
    assert rules(batch) == [(1, "bad_value")]


def test_a_rejected_record_is_read_again_in_its_spelling() -> None:
    delivery = Delivery(delimiter=";", decimal_separator=",")
    dataset = a_dataset(
        "csv", delivery=delivery, columns={"x": "double", "d": "date"}, formats={"d": "dd.MM.yyyy"}
    )

    batch = reread(b"id;n;x;d\n1;1;2,5;31.12.2026", dataset)

    assert (column(batch, "x"), column(batch, "d")) == ([2.5], [date(2026, 12, 31)])


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_a_load_by_tasks_spells_alike(file_format: str) -> None:
    values = ["1.000", "2,5", "1.234,5", "oops", "7"]
    if file_format == "csv":
        rows = [f"{n};{n};{v};0{n + 1}.02.2026" for n, v in enumerate(values * 3) if n < 9]
        content = "\n".join(["id;seq;x;d", *rows]).encode()
    else:
        content = json_lines(
            *({"id": n, "seq": n, "x": v, "d": f"0{n + 1}.02.2026"} for n, v in enumerate(values))
        )
    landing = {"decimal_separator": ",", "thousands_separator": "."}
    landing |= {"delimiter": ";"} if file_format == "csv" else {}
    columns = {"x": "decimal(9,2)", "d": {"type": "date", "format": "dd.MM.yyyy"}}
    request = request_for({"f": content}, file_format, landing=landing, columns=columns)

    outcome = by_tasks(request, 40)

    assert same(outcome, exactly(request))
    assert outcome[1][2]["x"] == Decimal("1234.50")
    assert outcome[2]


def test_inferred_columns_of_a_load_by_tasks_spell_alike() -> None:
    values = ["1.000", "2.000", "2,5", "1.234,25", "7"]
    rows = [f"{n};{n};{value};{value}x" for n, value in enumerate(values)]
    content = "\n".join(["id;seq;x;y", *rows]).encode()
    landing = {"delimiter": ";", "decimal_separator": ",", "thousands_separator": "."}
    request = request_for({"f": content}, "csv", landing=landing)

    assert same(by_tasks(request, 16), exactly(request))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"id;n;name\n1;1;x\n", 'one column, and 3 if ";" separates them; set `delimiter: ";"`'),
        (b"id\tn\n1\t1\n", '`delimiter: "\\t"`'),
        (b"id|n|name\n", '`delimiter: "|"`'),
    ],
)  # fmt: skip
def test_csv_with_another_delimiter_names_the_setting(content: bytes, reason: str) -> None:
    (one,) = read(content, a_dataset("csv")).rejected

    assert (one.offset, one.rule) == (WHOLE_FILE, "unreadable_file")
    assert reason in one.error


def test_a_load_by_tasks_names_the_delimiter_too() -> None:
    request = request_for({"f": b"id;seq\n1;1\n2;2\n"}, "csv")

    assert same(by_tasks(request, 4), exactly(request))


def test_a_column_of_its_own_may_hold_any_text() -> None:
    one_column = a_dataset("csv", keys=(), sequence_by=())

    assert column(read(b"note\na;b;c\nd|e\n", one_column), "note") == ["a;b;c", "d|e"]
    assert column(read(b'"a;b"\nx\n', one_column), "a;b") == ["x"]
    assert column(reread(b"a;b\nc;d", one_column), "a;b") == ["c;d"]


def test_rows_without_a_header_name_the_delimiter_that_fits() -> None:
    dataset = a_dataset(
        "csv", delivery=Delivery(header=False), columns={"id": "bigint", "n": "bigint"}
    )

    batch = read(b"1\t1\n2,1\n", dataset)

    assert column(batch, "id") == [2]
    assert '`delimiter: "\\t"` under `landing` makes as many' in batch.rejected[0].error
