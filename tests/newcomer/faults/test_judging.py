"""The judge of what a command says: a good error passes, each planted fault is found."""

from __future__ import annotations

import pytest

from tests.newcomer.faults.judging import Wanted, named_fixes, problems
from tests.oracle.packs.driver import Printed

GOOD = """\
start    shop: target local, 1 task
error[POLYNYA-LAKE-041]: the catalog is missing, and its warehouse holds tables
  --> shop/warehouse/catalog.db
  why: state of the data: nothing was started; the tables are unchanged
  fix: put it back, or `polynya doctor --repair`; more: polynya explain POLYNYA-LAKE-041
done     shop: nothing was copied, in 0.7 s
"""
WANTED = Wanted(1, ("POLYNYA-LAKE-041",), says=("done ",))


def test_an_error_as_the_pages_promise_it_passes() -> None:
    assert problems(Printed(1, "", GOOD), WANTED) == []
    assert problems(Printed(0, "all well\n", ""), Wanted(0)) == []


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (Printed(70, "", GOOD), "exit code 70, not 1"),
        (Printed(1, "", GOOD.replace("LAKE-041", "LAKE-040")), "not said: POLYNYA-LAKE-041"),
        (Printed(1, "", GOOD.replace("LAKE-041", "BUG-001")), "called a bug"),
        (Printed(1, "", "POLYNYA-LAKE-041\ndone \nPOLYNYA-BUG-001"), "called a bug"),
        (Printed(1, "", GOOD.replace("done ", "over ")), "not said: 'done '"),
        (Printed(1, "", GOOD.replace("  fix: ", "  or: ")), "no fix: error[POLYNYA-LAKE-041]"),
        (Printed(1, "", GOOD.replace("polynya explain ", "")), "no page: error"),
        (Printed(1, "", f"{GOOD}\tat org.apache.spark.Foo.bar(Foo.scala:1)\n"), "internals: at"),
        (Printed(1, "", f"{GOOD}java.io.IOException: no\n"), "internals: java.io.IOException"),
        (Printed(1, "", f"{GOOD}py4j.protocol.Py4JJavaError: An error\n"), "internals: py4j"),
        (Printed(1, "", f"Traceback (most recent call last):\n{GOOD}"), "internals: Traceback"),
    ],
)
def test_planted_faults_are_found(printed: Printed, found: str) -> None:
    assert found in "\n".join(problems(printed, WANTED))


def test_an_error_where_none_is_wanted_is_found() -> None:
    assert "an error was said: ['POLYNYA-LAKE-041']" in problems(Printed(0, "", GOOD), Wanted(0))


def test_a_page_that_is_only_pointed_to_is_not_the_code_of_an_error() -> None:
    hint = "look at it: polynya explain POLYNYA-LAKE-041\n"

    assert problems(Printed(0, hint, ""), Wanted(0)) == []
    assert "no code" in problems(Printed(1, f"{hint}done \n", ""), WANTED)[0]


def test_the_fix_is_taken_as_it_stands() -> None:
    two = GOOD + GOOD.replace("`polynya doctor --repair`", "`polynya adopt --project 'my shop'`")

    assert named_fixes(GOOD) == [["doctor", "--repair"]]
    assert named_fixes(two) == [["doctor", "--repair"], ["adopt", "--project", "my shop"]]
    assert named_fixes(GOOD.replace("`", "")) == []
