"""The oracle passes every covered conformance case, in every arrival order."""

from __future__ import annotations

import json

import pytest

from tests.oracle.arrivals import VARIATIONS
from tests.oracle.cases import DATA, Case, covered, raw_cases
from tests.oracle.expect import current_rows, history_rows
from tests.oracle.fold import fold
from tests.oracle.not_covered import NOT_COVERED
from tests.oracle.packs.extracts import extract_cases
from tests.oracle.values import bag, to_time


def test_every_case_is_either_covered_or_has_a_reason() -> None:
    known = {raw["id"] for raw in raw_cases()}

    tested = {case.id for case in (*covered(), *extract_cases())}
    assert known == tested | set(NOT_COVERED)
    assert not tested & set(NOT_COVERED)


@pytest.mark.parametrize("variation", VARIATIONS)
@pytest.mark.parametrize("case", covered(), ids=lambda case: case.id)
def test_the_oracle_gives_the_expected_rows(case: Case, variation: str) -> None:
    rows = [row for batch in VARIATIONS[variation](case.batches) for row in batch]
    events = [case.event(row, load=True) for row in case.seed] + [case.event(row) for row in rows]

    folded = fold(events)

    got = history_rows(case, folded) if case.history else current_rows(case, folded)
    assert bag(got) in [bag(wanted) for wanted in case.wanted()]
    assert folded.rejected == case.quarantined


@pytest.mark.parametrize("case", [c for c in covered() if c.expected_after], ids=lambda c: c.id)
def test_the_oracle_gives_the_expected_rows_after_each_batch(case: Case) -> None:
    for number, rows in case.expected_after.items():
        landed = [row for batch in case.batches[:number] for row in batch]

        folded = fold(map(case.event, landed))

        got = history_rows(case, folded) if case.history else current_rows(case, folded)
        assert bag(case.timed(rows)) == bag(got)


def test_the_oracle_agrees_with_spark_on_random_histories() -> None:
    """Expected rows come from Spark's own reconciler, after each of the four batches."""
    corpora = json.loads((DATA / "random_histories.json").read_text("utf-8"))["corpora"]
    for corpus in corpora:
        case = Case.of_corpus(corpus)
        for number, wanted in enumerate(corpus["expected_after_each_batch"], start=1):
            landed = [row for batch in case.batches[:number] for row in batch]
            rows = [(*row[:3], to_time(row[3]), to_time(row[4])) for row in wanted]

            assert bag(rows) == bag(history_rows(case, fold(map(case.event, landed))))
