"""A cluster with many nodes starts, and loses a tenth. The figures of 1,000 are made by hand."""

from __future__ import annotations

import pytest

from polynya.cluster.coordination.member_state import CoordinationPace
from tests.cluster.simulation.scale.__main__ import measured
from tests.cluster.simulation.scale.fleet import CONFIGURED, Fleet, Sizes


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(nodes=10, units=200, lost_share=0.2),
        pytest.param(Sizes(nodes=100, units=10_000), marks=pytest.mark.slow),
    ],
)
def test_what_lost_nodes_had_is_owned_soon_evenly_and_without_needless_moves(sizes: Sizes) -> None:
    assert [str(figure) for figure in measured(sizes) if not figure.holds] == []


def test_while_all_nodes_claim_at_once_they_stay_below_the_limits_of_the_store() -> None:
    # A tenth of the usual pace for a tenth of 200 nodes: each claims as one of 200 does.
    pace = CoordinationPace(claims_per_second=250)
    fleet = Fleet(Sizes(nodes=20, units=1500), pace=pace)

    owned = fleet.run(60, lambda: len(fleet.owner) == fleet.sizes.units)

    # In one second a fifth above the pace, besides leases and plans.
    assert max(fleet.store.writes.values()) <= 1.2 * pace.claims_per_second + 25
    # And no more slowly than the pace asks for.
    assert owned - CONFIGURED <= 1500 / 250 + 2 * pace.turn
