"""How many nodes of which kind a cluster may have: checked when it is written down. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from polynya_constructs.cluster.instance_types import (
    DEFAULT_INSTANCE_TYPES,
    Architecture,
    check_node_types,
)
from polynya_constructs.cluster.strategies import Strategy

_Kind = TypeVar("_Kind", bound=StrEnum)

_MOST_NODES = 200
"""More is a typing error; one Auto Scaling group is meant for this order of size."""


class CapacityError(ValueError):
    """Numbers or names that cannot be; `setting` is the one to change."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(message)
        self.setting = setting


class SpotAllocation(StrEnum):
    """From which Spot pools nodes are taken. `lowest-price` is not offered: AWS advises against."""

    PRICE_CAPACITY_OPTIMIZED = "price-capacity-optimized"
    CAPACITY_OPTIMIZED = "capacity-optimized"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Bounds and kinds of the nodes of one cluster.

    Attributes:
        minimum: nodes at least.
        maximum: nodes at most; the Spot market may add one for the minutes of a replacement.
        on_demand_base: nodes that are always On-Demand.
        on_demand_percentage: part of the nodes above the base that is On-Demand, 0 to 100.
        architecture: of all nodes.
        instance_types: in the order in which On-Demand prefers them.
        spot_allocation: how Spot pools are chosen.
    """

    minimum: int
    maximum: int
    on_demand_base: int
    on_demand_percentage: int
    architecture: Architecture
    instance_types: tuple[str, ...]
    spot_allocation: SpotAllocation

    def __post_init__(self) -> None:
        """Check everything that neither CloudFormation nor its linters look at."""
        bounds = f"is not between 0 and maximum {self.maximum}"
        if not 1 <= self.maximum <= _MOST_NODES:
            message = f"maximum is {self.maximum}; it has to be 1 to {_MOST_NODES}"
            raise CapacityError("maximum", message)
        if not 0 <= self.minimum <= self.maximum:
            raise CapacityError("minimum", f"minimum {self.minimum} {bounds}")
        if not 0 <= self.on_demand_base <= self.maximum:
            raise CapacityError("on_demand_base", f"on_demand_base {self.on_demand_base} {bounds}")
        if not 0 <= self.on_demand_percentage <= 100:
            message = f"on_demand_percentage is {self.on_demand_percentage}; it has to be 0 to 100"
            raise CapacityError("on_demand_percentage", message)
        try:
            check_node_types(self.instance_types, self.architecture)
        except ValueError as wrong:
            raise CapacityError("instance_types", str(wrong)) from None

    @staticmethod
    def of(
        strategy: Strategy,
        *,
        maximum: int,
        minimum: int | None = None,
        on_demand_base: int | None = None,
        on_demand_percentage: int | None = None,
        architecture: str = Architecture.ARM64,
        instance_types: Sequence[str] | None = None,
        spot_allocation: str = SpotAllocation.PRICE_CAPACITY_OPTIMIZED,
    ) -> Capacity:
        """Complete what the owner said with the strategy's numbers and the default types.

        Raises:
            CapacityError: when it cannot be.
        """
        if minimum == 0 and not strategy.starts_from_zero:
            message = f"minimum is 0, and strategy {strategy.name} never starts a first node"
            raise CapacityError("minimum", message)
        chosen = _member(Architecture, "architecture", architecture)
        return Capacity(
            minimum=strategy.minimum if minimum is None else minimum,
            maximum=maximum,
            on_demand_base=strategy.on_demand_base if on_demand_base is None else on_demand_base,
            on_demand_percentage=strategy.on_demand_percentage
            if on_demand_percentage is None
            else on_demand_percentage,
            architecture=chosen,
            instance_types=tuple(instance_types or DEFAULT_INSTANCE_TYPES[chosen]),
            spot_allocation=_member(SpotAllocation, "spot_allocation", spot_allocation),
        )


def _member(kind: type[_Kind], setting: str, text: str) -> _Kind:
    try:
        return kind(text)
    except ValueError:
        message = f"{setting} is {text!r}; it has to be one of {', '.join(kind)}"
        raise CapacityError(setting, message) from None
