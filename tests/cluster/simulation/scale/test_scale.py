"""A cluster with many nodes loses a tenth of them. The figures of 1,000 are made by hand."""

from __future__ import annotations

import pytest

from tests.cluster.simulation.scale.__main__ import measured
from tests.cluster.simulation.scale.fleet import Sizes


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(nodes=10, units=200, lost_share=0.2),
        pytest.param(Sizes(nodes=100, units=10_000), marks=pytest.mark.slow),
    ],
)
def test_what_lost_nodes_had_is_owned_soon_evenly_and_without_needless_moves(sizes: Sizes) -> None:
    assert [str(figure) for figure in measured(sizes) if not figure.holds] == []
