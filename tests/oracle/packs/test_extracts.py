"""The reference of full extracts gives the expected rows of every case; a wrong one does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.oracle.packs.extracts import ExtractCase, extract_cases
from tests.oracle.values import bag

CASES = [pytest.param(case, id=case.id) for case in extract_cases()]


@pytest.mark.parametrize("case", CASES)
def test_the_reference_gives_the_expected_rows(case: ExtractCase) -> None:
    assert case.expected is not None
    assert bag(case.rows()) == bag(case.expected)
    for count, rows in case.expected_after.items():
        assert bag(case.rows(count)) == bag(rows)


def test_the_cases_catch_an_engine_that_does_not_retire_or_takes_them_in_no_order() -> None:
    kept = [replace(case, absent="keep") for case in extract_cases()]
    backwards = [replace(case, extracts=case.extracts[::-1]) for case in extract_cases()]

    for wrong in (kept, backwards):
        assert any(bag(case.rows()) != bag(case.expected or ()) for case in wrong)
