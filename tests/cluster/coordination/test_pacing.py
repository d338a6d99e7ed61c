"""How many units each node claims at once, so that a large cluster stays below a store's limits."""

from __future__ import annotations

import pytest

from polynya.cluster.coordination.member_state import SHORTEST, CoordinationPace
from polynya.cluster.coordination.ownership import Allowance, allowance

#: Of one prefix of Amazon S3, a second.
WRITES, READS = 3500, 5500
#: Of a turn, besides those of claims.
REQUESTS = 5


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(3, Allowance(20, saved=100, hurries=True), id="few: so many in a turn"),
        pytest.param(100, Allowance(20, saved=25, hurries=True), id="soon again"),
        pytest.param(250, Allowance(10, saved=10, hurries=True), id="a turn is just worth it"),
        pytest.param(500, Allowance(5, saved=20, hurries=False), id="many in a usual turn"),
        pytest.param(1000, Allowance(2.5, saved=10, hurries=False), id="not so many"),
        pytest.param(10_000, Allowance(0.25, saved=1, hurries=False), id="one in a while"),
    ],
)
def test_the_more_nodes_the_less_each_claims_and_the_less_it_hurries(
    nodes: int, expected: Allowance
) -> None:
    assert allowance(CoordinationPace(), nodes) == expected


@pytest.mark.parametrize("nodes", [1, 10, 25, 50, 100, 125, 200, 250, 251, 500, 1000, 2500])
def test_when_all_nodes_begin_to_claim_within_a_turn_the_store_does_not_refuse(nodes: int) -> None:
    pace = CoordinationPace()
    each = allowance(pace, nodes)
    usual = pace.turn * (1 + SHORTEST) / 2
    turn = pace.soon * SHORTEST if each.hurries else usual

    # In the last second of that turn: some begin, and the others go on if they do not wait for
    # their usual turn.
    claims = nodes * (each.saved / usual + each.hurries * each.per_second)
    requests = nodes * REQUESTS / turn

    assert claims + nodes / pace.renew <= WRITES
    assert claims + requests <= READS
