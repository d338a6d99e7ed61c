"""Types of columns out of all of their values."""

from __future__ import annotations

from collections import Counter

import pytest

from polynya.proposal.column_types import (
    NumberStyle,
    json_column,
    null_word,
    number_style,
    text_column,
)


def value_of(name: str, *texts: str, style: NumberStyle | None = None) -> object:
    found = text_column(name, Counter(texts), style)
    return None if found is None else found.value


@pytest.mark.parametrize(
    ("columns", "style"),
    [
        ([["1.234,50", "3,00"]], NumberStyle(",", ".")),
        ([["12,5", "3"]], NumberStyle(",", None)),
        ([["12,5"], ["1.234", "987"]], NumberStyle(",", ".")),
        ([["1'234.50"]], NumberStyle(".", "'")),
        ([["1,250,000"]], NumberStyle(".", ",")),
        ([["1,250.5"], ["7"]], NumberStyle(".", ",")),
        # Nothing proves which: 1250 or 1.25.
        ([["1,250"]], None),
        ([["1.5", "2"]], None),
        # One column says that a point begins the fraction.
        ([["12,5"], ["1.25"]], None),
        ([["1.250"], ["a,b"]], None),
    ],
)
def test_the_style_of_numbers_needs_a_proof(
    columns: list[list[str]], style: NumberStyle | None
) -> None:
    assert number_style(columns) == style


@pytest.mark.parametrize(
    ("texts", "pattern"),
    [
        (("31.12.2026", "01.02.2026"), "dd.MM.yyyy"),
        (("1.2.2026",), "d.M.yyyy"),
        (("12/31/2026", "01/02/2026"), "MM/dd/yyyy"),
        (("31/12/2026", "01/02/2026"), "dd/MM/yyyy"),
        (("2026/12/31",), "yyyy/MM/dd"),
        (("31-12-2026",), "dd-MM-yyyy"),
        (("20261231",), "yyyyMMdd"),
        (("31.12.26",), "dd.MM.yy"),
        (("31-Dec-2026", "1-Jan-2026"), "d-MMM-yyyy"),
        (("31 Dec 2026",), "dd MMM yyyy"),
    ],
)
def test_dates_of_a_style(texts: tuple[str, ...], pattern: str) -> None:
    assert value_of("day_of_date", *texts) == {"type": "date", "format": pattern}


def test_times_of_a_style() -> None:
    assert value_of("t", "31.12.2026 23:59:59") == {
        "type": "timestamp",
        "format": "dd.MM.yyyy HH:mm:ss",
    }
    assert value_of("t", "12/31/2026 1:00 PM", "01/01/2026 11:30 am") == {
        "type": "timestamp",
        "format": "MM/dd/yyyy h:mm a",
    }
    assert value_of("created_at", "1767225600000") == {
        "type": "timestamp",
        "format": "epoch_milliseconds",
    }
    assert value_of("created", "1767225600") == {"type": "timestamp", "format": "epoch_seconds"}
    assert value_of("count", "1767225600000") is None


@pytest.mark.parametrize(
    "texts",
    [
        ("01/02/2026", "03/04/2026"),
        ("31.12.2026", "12/31/2026"),
        ("31/12/2026", "12/31/2026"),
        ("32.12.2026",),
        ("31-12-26",),
        ("31-Abc-2026",),
        ("12/31/2026 13:00 PM",),
    ],
)
def test_doubtful_dates_stay_text(texts: tuple[str, ...]) -> None:
    assert value_of("day", *texts) in {None, "string"}


def test_numbers_in_a_style() -> None:
    european = NumberStyle(",", ".")

    assert value_of("n", "1.234,5", "7", style=european) == "decimal(18,1)"
    assert value_of("n", "1.234", "7", style=european) == "bigint"
    assert value_of("price", "1.234,50", style=european) == "decimal(18,4)"


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (("1", "2"), None),
        (("-1", "0"), None),
        (("+1", "2"), "bigint"),
        (("007", "12"), "string"),
        ((str(2**63), "1"), "string"),
        (("1.5", "2.25"), None),
        (("1.5", "2"), "double"),
        (("1.50", "2"), "decimal(18,2)"),
        (("1e5", "2"), "decimal(18,0)"),
        (("0.1234567890123456789", "2"), "string"),
        (("1e-30", "2"), "double"),
        (("true", "false"), None),
        (("TRUE", "false"), "boolean"),
        (("true", "maybe"), "string"),
        (("a", "b"), None),
        (("1", "b"), "string"),
        (("9" * 5000, "1"), "string"),
        (("1e999", "1"), "double"),
        (("2026-01-01", "2026-02-30"), None),
    ],
)
def test_texts_that_inference_would_take_for_something_else(
    texts: tuple[str, ...], kind: str | None
) -> None:
    assert value_of("column", *texts) == kind


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ([["1", "NA", "2"]], "NA"),
        ([["a", "NA"]], None),
        ([["a", r"\N"]], r"\N"),
        ([["1", "NA", None]], None),
        ([["1", "NA", "x"]], None),
        ([["1", "-"], ["2", "-"], ["3", "NA"]], "-"),
    ],
)
def test_a_word_means_null_where_it_stands_among_values(
    columns: list[list[str | None]], word: str | None
) -> None:
    assert null_word(map(Counter, columns)) == word


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("a", [1, 2], None),
        ("a", [1, 1.5], "double"),
        ("a", [1.5], None),
        ("a", [2**70, 1], "decimal(38,0)"),
        ("price", [1, 2], "decimal(18,4)"),
        ("created", [1767225600000], "timestamp"),
        ("a", ["2026-01-01", None], "date"),
        ("a", ["2026-01-01", 7], "string"),
        ("a", [{"b": 1}, [1]], "string"),
        ("a", [{"b": 1}], None),
        ("a", [None], None),
        ("a", [1, float("nan")], None),
    ],
)
def test_json_values(name: str, values: list[object], kind: str | None) -> None:
    found = json_column(name, values)

    value = None if found is None else found.value
    assert (value["type"] if isinstance(value, dict) else value) == kind
