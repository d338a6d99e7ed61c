"""`polynya compare`: what it says of verdicts, and its exit code."""

from __future__ import annotations

import pytest

from polynya.capture.compare.compare import ComparedTable, ComparisonResult
from polynya.capture.compare.digest import SkippedColumn
from polynya.capture.compare.ranges import DifferingRow, Fault
from polynya.engine.commands import compare as verb
from polynya.engine.commands.compare import NotCompared

PEOPLE = ComparedTable("public.people", "shop.people", ("id",))
ALIKE = ComparisonResult(PEOPLE, "0/1A", 1200, 1200, key=("id",), compared=("id", "mail"))
MASKED = (SkippedColumn("name", "it is masked"),)
UNLIKE = ComparisonResult(
    PEOPLE, "0/1A", 1200, 1199, key=("id",), left_out=MASKED,
    differences=(DifferingRow("7", Fault.MISSING, 1, 0), DifferingRow("9", Fault.DIFFERENT)),
    undecided=("11",),
)  # fmt: skip


@pytest.fixture
def found(monkeypatch, database):
    """What the comparison finds."""
    verdicts = []
    monkeypatch.setattr(verb, "compare_capture", lambda *_, **__: iter(verdicts))
    return verdicts


def test_tables_that_are_alike_are_well(said, found):
    found.append(ALIKE)

    text = said("compare", "shop_db")

    assert (
        "public.people and shop.people: 0 differences at 0/1A, 1,200 rows in the source, "
        "1,200 in Current\n" in text
    )
    assert text.endswith("1 table compared, 0 differences\n")


def test_rows_that_differ_are_named_by_their_keys_and_fail(said, found):
    found.append(UNLIKE)

    text = said("compare", "shop_db", code=1)

    assert "public.people and shop.people: 2 differences at 0/1A" in text
    assert "  missing in Current: id = 7\n  other values: id = 9\n" in text
    assert "  undecided, for they change all the time: 1 row, for example id = 11\n" in text
    assert "  not compared: name: it is masked\n" in text


def test_programs_get_the_same_by_fixed_names(said, found):
    """Names and values that docs/compare.md promises."""
    found += [UNLIKE, NotCompared("public.lines", None, "its load is not complete", fails=True)]

    table, left_out, end = said("compare", "shop_db", "--json", code=1)

    assert table == {
        "type": "table.compared",
        "table": "public.people",
        "view": "shop.people",
        "position": "0/1A",
        "source_rows": 1200,
        "current_rows": 1199,
        "key": ["id"],
        "compared": [],
        "not_compared": [{"column": "name", "why": "it is masked"}],
        "differences": [
            {"key": "7", "fault": "missing in Current", "source": 1, "current": 0},
            {"key": "9", "fault": "other values", "source": 1, "current": 1},
        ],
        "undecided": ["11"],
        "complete": True,
    }
    assert left_out == {
        "type": "table.not_compared",
        "table": "public.lines",
        "view": None,
        "why": "its load is not complete",
        "failed": True,
    }
    assert end == {
        "type": "compare",
        "task": "shop_db",
        "ok": False,
        "tables": 1,
        "differences": 2,
        "complete": True,
        "failed": ["public.lines"],
    }


def test_a_table_that_should_have_been_compared_fails(said, found):
    found += [ALIKE, NotCompared("public.lines", None, "no storage task has made a table of it")]
    assert "public.lines: not compared: no storage task" in said("compare", "shop_db")

    found[-1] = NotCompared("public.lines", None, "its load is not complete: loading", fails=True)
    text = said("compare", "shop_db", code=1)
    assert text.endswith("1 table compared, 0 differences; could not be compared: public.lines\n")


def test_without_any_table_nothing_is_proven(said, found):
    assert "0 tables compared" in said("compare", "shop_db", "--table", "nothing.%", code=1)


def test_only_captures_can_be_compared_and_nobody_waits_less_than_nothing(said, found):
    assert "no capture is called `users`" in said("compare", "users", code=2)
    assert "`--wait` is 0 or more" in said("compare", "shop_db", "--wait", "-1", code=2)


def test_a_project_without_tables_says_what_to_do(said, database):
    text = said("compare", "shop_db", code=1)

    assert "POLYNYA-GTW-092" in text
    assert "nothing has landed" in text
