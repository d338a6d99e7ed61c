"""Who should have which unit: what must move moves at once, what may move moves sparingly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polynya.cluster.placement.balance import balance
from polynya.cluster.placement.facts import NodeFacts, Proposal, Rules, UnitFacts
from polynya.cluster.placement.fleet import Fleet
from polynya.cluster.placement.settle import settle
from polynya.cluster.unit import JobKey


def propose(
    nodes: Sequence[NodeFacts],
    units: Sequence[UnitFacts],
    current: Mapping[JobKey, str],
    rules: Rules,
) -> Proposal:
    """Propose a node for every unit.

    Units without a ready node, and those that a person wants elsewhere, are placed at once. Then
    nodes far above the mean load give to nodes below it, within the limits of the rules. The same
    facts give the same proposal, whatever their order; n units take O(n log n).

    Args:
        nodes: with a living session.
        units: that the configuration wants, each once.
        current: incarnation that each unit is planned for now; may name dead nodes.
        rules: how eager to be.
    """
    units = sorted(units, key=lambda each: each.unit)
    fleet = Fleet(nodes, units, rules)
    settle(fleet, nodes, units, current, rules)
    if fleet.places:
        balance(fleet, units, rules)
    return Proposal(fleet.assignment(), tuple(fleet.moves))
