"""The function that wakes an empty group: it looks at the group, whatever event it gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya_constructs.functions.wake import handler
from polynya_constructs.functions.wake.handler import landed_bytes, look, wake


class Groups:
    """Auto Scaling with at most one group, as far as the function asks."""

    def __init__(self, **group: Any) -> None:
        self.group = group and {"AutoScalingGroupName": "shop", "Instances": [], **group}

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

    assert wake(groups, look(groups, "shop")).startswith(said)
    assert groups.group["DesiredCapacity"] == then


def test_a_second_event_changes_nothing() -> None:
    groups = Groups(DesiredCapacity=0, MaxSize=4)

    assert [wake(groups, look(groups, "shop"))[:5] for _ in range(3)] == ["woken", "kept:", "kept:"]
    assert groups.group["DesiredCapacity"] == 1


def test_a_group_that_is_gone_is_an_error() -> None:
    with pytest.raises(LookupError, match="belongs to a deleted one"):
        look(Groups(), "shop")


def landed(bucket: str, size: int) -> dict[str, Any]:
    """The event of S3."""
    return {"detail": {"bucket": {"name": bucket}, "object": {"key": "a.json", "size": size}}}


@pytest.mark.parametrize(
    ("event", "size"),
    [
        (landed("landing", 700), 700),
        (landed("configuration", 700), 0),
        ({"source": "aws.cloudwatch", "alarmData": {}}, 0),
        ({"detail": None}, 0),
    ],
    ids=["data", "a task", "an alarm", "nothing"],
)
def test_only_data_is_counted(event: dict[str, Any], size: int) -> None:
    assert landed_bytes(event, "landing") == size
    assert landed_bytes(event, None) == 0


@pytest.mark.parametrize(
    ("state", "counted"), [("InService", False), ("Pending:Wait", True), (None, True)]
)
def test_what_lands_is_counted_while_no_node_serves(
    state: str | None,
    counted: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler._autoscaling.cache_clear()
    nodes = [{"LifecycleState": state}] if state else []
    groups = Groups(DesiredCapacity=len(nodes), MaxSize=4, Instances=nodes)
    monkeypatch.setattr("boto3.client", lambda _service: groups)
    monkeypatch.setenv("GROUP_NAME", "shop")
    monkeypatch.setenv("LANDING_BUCKET", "landing")

    handler.handle(landed("landing", 700), None)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["Cluster"], one["LandedBytes"]) for one in lines] == [("shop", 700)] * counted
    handler._autoscaling.cache_clear()


def test_a_hundred_thousand_objects_are_some_looks_at_the_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first load: what Auto Scaling is asked it cannot answer to the nodes that boot."""
    handler._autoscaling.cache_clear()
    groups = Groups(DesiredCapacity=0, MaxSize=4)
    looks: list[list[str]] = []
    describe = groups.describe_auto_scaling_groups

    def counted(AutoScalingGroupNames: list[str]) -> dict[str, Any]:
        looks.append(AutoScalingGroupNames)
        return describe(AutoScalingGroupNames)

    monkeypatch.setattr(groups, "describe_auto_scaling_groups", counted)
    monkeypatch.setattr("boto3.client", lambda _service: groups)
    monkeypatch.setenv("GROUP_NAME", "shop")
    monkeypatch.setenv("LANDING_BUCKET", "landing")
    message = {"body": json.dumps(landed("landing", 700))}
    # Lambda hands on at most 6 MB; an event has 1,500 bytes with what SQS adds.
    most = 6_000_000 // 1_500

    left = 100_000
    while left:
        batch = min(left, most, 10_000)
        handler.handle({"Records": [message] * batch}, None)
        left -= batch

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(one["LandedBytes"] for one in lines) == 100_000 * 700
    assert len(looks) <= 25
    assert groups.group["DesiredCapacity"] == 1
    handler._autoscaling.cache_clear()
