"""What no template checker looks at is refused where it is written down."""

from __future__ import annotations

from typing import Any

import pytest

from polynya_constructs.cluster.capacity import Capacity, CapacityError
from polynya_constructs.cluster.instance_types import (
    DEFAULT_INSTANCE_TYPES,
    Architecture,
    architecture_of,
    known_instance_types,
)
from polynya_constructs.cluster.strategies import STRATEGIES, StrategyName

LOW_LATENCY = STRATEGIES[StrategyName.LOW_LATENCY]


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("architecture", Architecture)
def test_a_strategy_and_a_maximum_are_enough(strategy: Any, architecture: Architecture) -> None:
    capacity = Capacity.of(strategy, maximum=4, architecture=architecture)

    assert capacity.minimum == strategy.minimum
    assert capacity.instance_types == DEFAULT_INSTANCE_TYPES[architecture]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"minimum": 5}, "minimum 5 is not between 0 and maximum 4"),
        ({"minimum": 0}, "minimum is 0, and strategy low_latency never starts a first node"),
        ({"minimum": -1}, "minimum -1 is not between 0"),
        ({"maximum": 0}, "maximum is 0; it has to be 1 to 200"),
        ({"maximum": 5000}, "maximum is 5000; it has to be 1 to 200"),
        ({"on_demand_base": 5}, "on_demand_base 5 is not between 0 and maximum 4"),
        ({"on_demand_percentage": 150}, "on_demand_percentage is 150; it has to be 0 to 100"),
        ({"architecture": "arm"}, "architecture is 'arm'; it has to be one of arm64, x86_64"),
        ({"spot_allocation": "lowest-price"}, "has to be one of price-capacity-optimized"),
        ({"instance_types": ["m7g.nonsense"]}, "there is no instance type 'm7g.nonsense'"),
        ({"instance_types": ["m7g.xlarg"]}, "'m7g.xlarg'; did you mean m7g.xlarge?"),
        ({"instance_types": ["m7i.xlarge"]}, "instance type m7i.xlarge is x86_64, the cluster arm"),
        ({"instance_types": ["m7g.xlarge", "m7g.xlarge"]}, "m7g.xlarge is named twice"),
    ],
)
def test_what_cannot_be_is_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(CapacityError) as refused:
        Capacity.of(LOW_LATENCY, **{"maximum": 4, **wrong})

    assert said in str(refused.value)
    assert refused.value.setting in wrong


def test_the_architecture_of_a_family_is_read_from_its_name() -> None:
    arm = {"a1.large", "t4g.small", "m7gd.xlarge", "c7gn.large", "im4gn.large", "g5g.xlarge"}
    x86 = {"m7i.xlarge", "m7i-flex.large", "g5.xlarge", "c5n.large", "r7iz.large", "hpc7a.12xlarge"}
    assert arm | x86 <= known_instance_types()
    assert {architecture_of(name) for name in arm} == {Architecture.ARM64}
    assert {architecture_of(name) for name in x86} == {Architecture.X86_64}
