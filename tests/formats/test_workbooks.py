"""Sheets of Excel workbooks: exact values, errors that are seen, and hostile parts."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from polynya.formats import limits
from polynya.formats.batch import DatasetBatch
from polynya.model.config.settings import Delivery
from tests.formats.helpers import a_dataset, column, read, rules
from tests.formats.workbook import number, row, text, workbook

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
NAMES = row(text("id"), text("n"), text("v"))


def opened(content: bytes, *, columns: dict[str, str] | None = None, **how: Any) -> DatasetBatch:
    dataset = a_dataset("excel", columns=columns or {}, delivery=Delivery(**how))
    return read(content, dataset)


def cells(*values: str) -> bytes:
    """A workbook with a value in each of some records."""
    records = (row(number(str(at)), number("1"), value) for at, value in enumerate(values))
    return workbook({"S": NAMES + "".join(records)})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((number("7"), number("-2")), [7, -2]),
        ((number("0.30000000000000004"), number("1E-3")), [0.30000000000000004, 0.001]),
        ((text("León"), text("a_x000A_b"), text("")), ["León", "a\nb", None]),
        (('<c t="b"><v>1</v></c>', '<c t="b"><v>0</v></c>'), [True, False]),
        (('<c t="str"><f>A1</f><v>made</v></c>', "<c/>"), ["made", None]),
        ((number("46053", 1), number("61", 1), number("1", 1)),
         ["2026-01-31", "1900-03-01", "1900-01-01"]),
        ((number("46053.5", 2), number("46053.000005787", 5)),
         ["2026-01-31T12:00:00", "2026-01-31T00:00:00.500000"]),
        ((number("0.75", 3), number("2.5", 4)), ["18:00:00", "60:00:00"]),
        ((number("12", 6),), [12]),
    ],
)  # fmt: skip
def test_values(values: tuple[str, ...], expected: list[object]) -> None:
    batch = opened(cells(*values))

    assert column(batch, "v") == expected
    assert rules(batch) == []


def test_days_may_be_counted_from_1904() -> None:
    book = workbook(
        {"S": NAMES + row(number("1"), number("1"), number("1", 1))},
        book='<workbookPr date1904="1"/>',
    )

    assert column(opened(book), "v") == ["1904-01-02"]


def test_declared_dates_and_shared_texts() -> None:
    rows = row(*(f'<c t="s"><v>{n}</v></c>' for n in range(3))) + row(
        number("1"), number("2"), number("46053", 1)
    )

    batch = opened(workbook({"S": rows}, ("id", "n", "v")), columns={"v": "date"})

    assert [str(day) for day in column(batch, "v")] == ["2026-01-31"]


def test_an_error_is_its_text_and_no_number() -> None:
    error = '<c t="e"><v>#DIV/0!</v></c>'

    declared = opened(cells(number("1"), error), columns={"v": "double"})

    assert rules(declared) == [(1, "bad_value")]
    assert b"#DIV/0!" in declared.rejected[0].raw
    assert column(opened(cells(text("a"), error)), "v") == ["a", "#DIV/0!"]


def test_rows_without_values_are_no_records() -> None:
    rows = (
        NAMES + row() + row(number("1"), number("2")) + row("<c/>") + row(number("2"), number("3"))
    )

    assert column(opened(workbook({"S": rows})), "id") == [1, 2]


def test_a_sheet_is_named_where_there_are_several() -> None:
    one = NAMES + row(number("1"), number("2"))
    two = NAMES + row(number("5"), number("6"))
    book = workbook({"A": one, "B & C": two})

    assert column(opened(book, sheet="B & C"), "id") == [5]
    (refused,) = opened(book).rejected
    assert "2 visible sheets: set `sheet` to one of them, `A`, `B & C`" in refused.error
    (refused,) = opened(book, sheet="D").rejected
    assert "no visible sheet `D`" in refused.error
    assert column(opened(workbook({"A": one, "B": two}, hidden="A")), "id") == [5]


def test_rows_above_the_names_are_skipped() -> None:
    book = workbook({"S": row(text("Report")) + row() + NAMES + row(number("1"), number("2"))})

    assert column(opened(book, skip_lines=2), "id") == [1]
    (refused,) = opened(book).rejected
    assert "row 3 has a value in column B, which has no name in row 1" in refused.error


def test_the_column_of_row_names_needs_no_name() -> None:
    rows = row("<c/>", text("id"), text("n")) + row(text("a"), number("1"), number("2"))

    batch = opened(workbook({"S": rows}))

    assert (column(batch, "column_A"), column(batch, "id")) == (["a"], [1])


def test_cells_far_apart_take_no_room() -> None:
    far = '<row r="1048576"><c r="A1048576"><v>3</v></c><c r="B1048576"><v>4</v></c></row>'

    assert column(opened(workbook({"S": NAMES + far})), "id") == [3]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (workbook({"S": row(text("id"), text("id"))}), "names two columns `id`"),
        (workbook({"S": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}), "it has a document type"),
        (workbook({"S": "<row><c"}), "broken workbook: `xl/worksheets/s0.xml`"),
        (workbook({"S": row('<c r="XFE1"><v>1</v></c>')}), "more columns than a sheet has"),
        (workbook({"S": row('<c t="s"><v>9</v></c>')}), "broken workbook"),
        (b"\xd0\xcf\x11\xe0" + bytes(99), "an old Office file: save it as .xlsx"),
        (b"id,n\n1,2\n", "not excel: it starts with b'id,n"),
    ],
    ids=range(7),
)
def test_other_files_are_refused_whole(content: bytes, reason: str) -> None:
    batch = opened(content)

    assert rules(batch) == [(-1, "unreadable_file")]
    assert reason in batch.rejected[0].error


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SMALL_BYTES", 1 << 20)
    book = workbook({"S": NAMES + row(number("1"), number("2")) * 40_000})

    (refused,) = opened(book).rejected

    assert "a workbook of" in refused.error


@pytest.mark.parametrize("at", range(40))
def test_damage_anywhere_is_a_refusal_or_the_same_rows(at: int) -> None:
    choice = random.Random(f"{SEED} {at}")
    content = bytearray(workbook({"S": NAMES + row(number("1"), number("2"))}))
    for _ in range(choice.randint(1, 4)):
        content[choice.randrange(4, len(content))] = choice.randrange(256)

    batch = opened(bytes(content))

    assert column(batch, "id") == [1] or rules(batch)
