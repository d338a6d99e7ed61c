"""The Lambda function of the Spot fallback, against the SDK's checks of each request and answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from polynya_constructs.functions.spot_fallback import handler
from polynya_constructs.functions.spot_fallback.decision import Action, Intention
from polynya_constructs.functions.spot_fallback.handler import INTENTION_TAG, parse_intention

GROUP = "polynya-dev-main"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SHORTAGE = "There is no Spot capacity available that matches your request."


class Account:
    """One group, as three calls describe it; every other call has to be expected."""

    def __init__(self) -> None:
        where = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "testing")
        self.autoscaling: Any = boto3.client("autoscaling", "eu-central-1", **where)
        self.ec2: Any = boto3.client("ec2", "eu-central-1", **where)
        self.group_calls, self.node_calls = Stubber(self.autoscaling), Stubber(self.ec2)

    def has(
        self,
        *,
        base: int,
        states: list[str],
        on_demand: list[str],
        tag: str = "",
        failed: dict[datetime, str] | None = None,
    ) -> None:
        """Answer the three calls: nodes are i-0, i-1 …; EC2 knows those of `on_demand` and i-0."""
        group = {
            "AutoScalingGroupName": GROUP, "MinSize": 0, "MaxSize": 9, "DesiredCapacity": 4,
            "DefaultCooldown": 300, "AvailabilityZones": ["a"], "HealthCheckType": "EC2",
            "CreatedTime": NOW,
            "MixedInstancesPolicy": {"InstancesDistribution": distribution(base)},
            "Instances": [
                {
                    "InstanceId": f"i-{number}", "LifecycleState": state, "AvailabilityZone": "a",
                    "HealthStatus": "Healthy", "ProtectedFromScaleIn": False,
                }
                for number, state in enumerate(states)
            ],
            "Tags": [{"Key": "Name", "Value": "x"}, {"Key": INTENTION_TAG, "Value": tag}],
        }  # fmt: skip
        self.group_calls.add_response(
            "describe_auto_scaling_groups",
            {"AutoScalingGroups": [group]},
            {"AutoScalingGroupNames": [GROUP]},
        )
        known = [{"InstanceId": name} for name in on_demand]
        self.node_calls.add_response(
            "describe_instances",
            {
                "Reservations": [
                    {"Instances": [{"InstanceId": "i-0", "InstanceLifecycle": "spot"}, *known]}
                ]
            },
            {"Filters": [{"Name": "tag:aws:autoscaling:groupName", "Values": [GROUP]}]},
        )
        activities = [
            {
                "ActivityId": "a", "AutoScalingGroupName": GROUP, "Cause": "c", "StartTime": start,
                "StatusCode": "Failed", "StatusMessage": message,
            }
            for start, message in (failed or {}).items()
        ]  # fmt: skip
        self.group_calls.add_response(
            "describe_scaling_activities",
            {"Activities": activities},
            {"AutoScalingGroupName": GROUP, "MaxRecords": 100},
        )

    def expect_tag(self, value: str) -> None:
        tag = {
            "ResourceId": GROUP, "ResourceType": "auto-scaling-group", "Key": INTENTION_TAG,
            "Value": value, "PropagateAtLaunch": False,
        }  # fmt: skip
        self.group_calls.add_response("create_or_update_tags", {}, {"Tags": [tag]})

    def expect_base(self, base: int) -> None:
        self.group_calls.add_response(
            "update_auto_scaling_group",
            {},
            {
                "AutoScalingGroupName": GROUP,
                "MixedInstancesPolicy": {"InstancesDistribution": distribution(base)},
            },
        )


def distribution(base: int) -> dict[str, Any]:
    return {
        "OnDemandAllocationStrategy": "prioritized",
        "OnDemandBaseCapacity": base,
        "OnDemandPercentageAboveBaseCapacity": 0,
        "SpotAllocationStrategy": "price-capacity-optimized",
    }


@pytest.fixture
def account() -> Iterator[Account]:
    account = Account()
    with account.group_calls, account.node_calls:
        yield account
        account.group_calls.assert_no_pending_responses()
        account.node_calls.assert_no_pending_responses()


def test_a_shortage_is_read_decided_and_written_intention_first(account: Account) -> None:
    """i-1 is On-Demand, i-2 ends, i-3 is so new that EC2 does not know it: two are Spot."""
    account.has(
        base=1,
        states=["InService", "InService", "Terminating:Wait", "Pending:Wait"],
        on_demand=["i-1"],
        failed={NOW: "no such image", NOW - timedelta(minutes=1): SHORTAGE},
    )
    account.expect_tag("2@2026-11-21T12:00:00+00:00")
    account.expect_base(2)

    decided = handler.reconcile(account.autoscaling, account.ec2, GROUP, 1, NOW)

    assert (decided.action, decided.intention) == (Action.RAISE, Intention(2, NOW))


def test_a_change_that_a_refresh_forbids_is_made_by_a_later_run(account: Account) -> None:
    """Auto Scaling may refuse it while it replaces nodes; the intention stays in the tag."""
    short = {NOW - timedelta(minutes=1): SHORTAGE}
    account.has(base=0, states=["InService"], on_demand=[], tag="", failed=short)
    account.expect_tag("3@2026-11-21T12:00:00+00:00")
    account.group_calls.add_client_error("update_auto_scaling_group", "ValidationError")

    with pytest.raises(ClientError):
        handler.reconcile(account.autoscaling, account.ec2, GROUP, 0, NOW)

    tag = "3@2026-11-21T12:00:00+00:00"
    account.has(base=0, states=["InService"], on_demand=[], tag=tag, failed=short)
    account.expect_base(3)
    later = NOW + timedelta(minutes=1)
    decided = handler.reconcile(account.autoscaling, account.ec2, GROUP, 0, later)

    assert decided.intention == Intention(3, NOW)


def test_other_failures_than_of_spot_change_nothing(account: Account) -> None:
    tag = "1@2026-11-21T11:00:00+00:00"
    account.has(base=1, states=["InService"], on_demand=[], tag=tag, failed={NOW: "no such image"})

    decided = handler.reconcile(account.autoscaling, account.ec2, GROUP, 1, NOW)

    assert decided.action is Action.KEEP


def test_the_function_restores_a_base_and_says_so_in_a_line_that_is_a_metric(
    account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = (datetime.now(UTC) - timedelta(minutes=1)).isoformat(timespec="seconds")
    account.has(
        base=0, states=["InService"] * 4, on_demand=["i-2", "i-3"], tag=f"2@{changed}"
    )  # a deploy has set the base to 0; the tag is as it was
    account.expect_base(2)
    monkeypatch.setattr(boto3, "client", lambda service: getattr(account, service))
    monkeypatch.setenv("GROUP_NAME", GROUP)
    monkeypatch.setenv("CONFIGURED_BASE", "0")

    answer = handler.handle({"detail-type": "Scheduled Event"}, None)

    assert (answer["action"], answer["base"]) == ("restore", 2)
    line = json.loads(capsys.readouterr().out)
    assert (line["FallbackNodes"], line["level"], line["base"]) == (2, "warning", 2)
    (metric,) = line["_aws"]["CloudWatchMetrics"]
    assert line.keys() >= {metric["Metrics"][0]["Name"], *metric["Dimensions"][0]}


def test_a_group_that_is_gone_is_an_error(account: Account) -> None:
    account.group_calls.add_response("describe_auto_scaling_groups", {"AutoScalingGroups": []})

    with pytest.raises(LookupError, match="no Auto Scaling group polynya-dev-main"):
        handler.reconcile(account.autoscaling, account.ec2, GROUP, 0, NOW)


@pytest.mark.parametrize(
    "text", ["", "3", "x@2026-11-21T11:00:00+00:00", "3@noon", "3@2026-11-21T11:00:00",
             "3@2027-01-01T00:00:00+00:00", "-1@2026-11-21T11:00:00+00:00"],
)  # fmt: skip
def test_a_tag_that_nobody_of_us_wrote_is_as_good_as_none(text: str) -> None:
    assert parse_intention(text, NOW) is None
    assert parse_intention("3@2026-11-21T11:00:00+00:00", NOW) is not None
