"""When keys are looked up, and when an index is built."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polynya.lake.apply.key_index import IndexAction, IndexFacts, decide

FILE = IndexFacts(
    rows=6_000_000, read=6_000_000, touched=10_000, columns=1, far=False, indexed=False, missed_ns=0
)
SECOND = 10**9


@pytest.mark.parametrize(
    ("facts", "action", "reason"),
    [
        (replace(FILE, indexed=True), IndexAction.LOOK_UP, "10,000 keys of 6,000,000"),
        (FILE, IndexAction.READ, "would have saved 19% of what it costs"),
        (replace(FILE, missed_ns=2 * SECOND), IndexAction.BUILD, "what it costs"),
        # Where files are far away, reading them again is most of what a build costs.
        (replace(FILE, far=True), IndexAction.READ, "would have saved 65% of what it costs"),
        (replace(FILE, far=True, missed_ns=2 * SECOND), IndexAction.BUILD, "what it costs"),
        (replace(FILE, rows=99_999, read=99_999, indexed=True), IndexAction.READ, "are few"),
        (replace(FILE, touched=2_000_000, indexed=True), IndexAction.READ, "sooner by reading"),
        # Ranges of keys in the footer say that no other row group holds a touched key.
        (replace(FILE, read=20_000, indexed=True), IndexAction.READ, "sooner by reading 20,000"),
        (replace(FILE, columns=3, indexed=True), IndexAction.LOOK_UP, "10,000 keys"),
    ],
)
def test_what_is_done_and_why(facts: IndexFacts, action: IndexAction, reason: str) -> None:
    decision = decide(facts)

    assert (decision.action, reason in decision.reason) == (action, True), decision


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("rows", [100_000, 6_000_000])
def test_reading_and_building_cost_no_more_than_twice_the_build(rows: int, far: bool) -> None:
    facts = replace(FILE, rows=rows, read=rows, touched=100, far=far)
    applies = 0
    while (decision := decide(facts)).action == IndexAction.READ:
        facts = replace(facts, missed_ns=facts.missed_ns + decision.saved_ns)
        applies += 1

    assert decision.action == IndexAction.BUILD
    assert applies <= (1 if far else 10)
