"""How many virtual processors stages may ask for at once, against the quotas of their account."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from polynya_constructs.cluster.instance_types import vcpus
from stacks.settings.cluster import ClusterSettings
from stacks.settings.stage import StageConfig


@dataclass(frozen=True, slots=True)
class Need:
    """Virtual processors at the busiest moment, which is a refresh of all nodes."""

    spot: int = 0
    on_demand: int = 0

    def __add__(self, other: Need) -> Need:
        return Need(self.spot + other.spot, self.on_demand + other.on_demand)


def need(stage: StageConfig) -> Need:
    """What the clusters, the network agent and the server of a stage may run at once.

    On-Demand stands in for Spot when there is none, so it is counted for both.
    """
    total = Need()
    for cluster in stage.clusters:
        total += _need_of(cluster)
    if agent := stage.network_agent:
        total += Need(on_demand=vcpus(agent.instance_type))
    if (server := stage.server) and server.node == "own":
        size = vcpus(server.instance_type)
        total += Need(spot=size) if server.spot else Need(on_demand=size)
    return total


def quota_warnings(stages: Iterable[StageConfig]) -> Iterator[tuple[StageConfig, str]]:
    """Yield, for each stage of an account and region whose quota is too small, what to ask for."""
    together = [*stages]
    for stage in together:
        mine = [each for each in together if _place(each) == _place(stage)]
        total = sum((need(each) for each in mine), Need())
        has = stage.quotas
        if need(stage) == Need():
            continue
        names = ", ".join(each.name for each in mine if need(each) != Need())
        for kind, wanted, quota, called in (
            ("spot_vcpus", total.spot, has.spot_vcpus, "All Standard Spot Instance Requests"),
            (
                "on_demand_vcpus",
                total.on_demand,
                has.on_demand_vcpus,
                "Running On-Demand Standard instances",
            ),
        ):
            if wanted > quota:
                said = f"the stages {names} may need {wanted} vCPU at once of the quota `{called}`"
                fix = f"ask AWS for more, then write the number to `quotas.{kind}`"
                yield stage, f"{said}, and `quotas.{kind}` is {quota}. fix: {fix}"


def _place(stage: StageConfig) -> tuple[str | None, str | None]:
    return stage.account, stage.region


def _need_of(cluster: ClusterSettings) -> Need:
    capacity = cluster.capacity
    size = max(vcpus(name) for name in capacity.instance_types)
    # A group that may be empty ends its nodes first, any other starts the new ones first.
    nodes = math.ceil(capacity.maximum * 1.5) if capacity.minimum else capacity.maximum
    fixed = min(capacity.on_demand_base, nodes)
    spot = (nodes - fixed) * (100 - capacity.on_demand_percentage) // 100
    return Need(spot * size, (nodes - spot) * size if spot < nodes else 0) + Need(
        on_demand=spot * size
    )
