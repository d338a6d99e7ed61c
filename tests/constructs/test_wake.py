"""The function that wakes an empty group: it looks at the group, whatever event it gets."""

from __future__ import annotations

from typing import Any

import pytest

from polynya_constructs.functions.wake.handler import wake


class Groups:
    """Auto Scaling with at most one group, as far as the function asks."""

    def __init__(self, **group: Any) -> None:
        self.group = group

    def describe_auto_scaling_groups(self, AutoScalingGroupNames: list[str]) -> dict[str, Any]:
        return {"AutoScalingGroups": [self.group] if self.group else []}

    def set_desired_capacity(self, **asked: Any) -> None:
        assert asked["HonorCooldown"] is False
        self.group["DesiredCapacity"] = asked["DesiredCapacity"]


@pytest.mark.parametrize(
    ("desired", "maximum", "said", "then"),
    [(0, 4, "woken", 1), (3, 4, "kept: the group has nodes", 3), (0, 0, "kept: a schedule", 0)],
)
def test_only_an_empty_group_is_woken(desired: int, maximum: int, said: str, then: int) -> None:
    groups = Groups(DesiredCapacity=desired, MaxSize=maximum)

    assert wake(groups, "shop").startswith(said)
    assert groups.group["DesiredCapacity"] == then


def test_a_second_event_changes_nothing() -> None:
    groups = Groups(DesiredCapacity=0, MaxSize=4)

    assert [wake(groups, "shop")[:5] for _ in range(3)] == ["woken", "kept:", "kept:"]
    assert groups.group["DesiredCapacity"] == 1


def test_a_group_that_is_gone_is_an_error() -> None:
    with pytest.raises(LookupError, match="belongs to a deleted one"):
        wake(Groups(), "shop")
