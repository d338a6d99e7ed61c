"""Auto Scaling groups as the network agent sees and changes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.stub import Stubber
from moto import mock_aws

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError, OperationError, PolynyaError
from polynya.store.aws.auto_scaling import STOPPED_TAG, AutoScalingGroups
from polynya.store.clock import Retry
from polynya.store.jobs import Bounds, FailedLaunch, Refresh
from polynya.testing.fakes import FakeClock

AT = datetime(2026, 1, 1, tzinfo=UTC)
ACCESS = AwsAccess(region="eu-central-1")
NO_PATIENCE = Retry(deadline=0.0, clock=FakeClock())
GROUP = "polynya-dev-main"


class WithRefreshes:
    """The stand-in's client; what of refreshes it lacks is answered from here."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.refreshes: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_instance_refreshes(self, **asked: Any) -> dict[str, Any]:
        assert asked == {"AutoScalingGroupName": GROUP, "MaxRecords": 1}
        return {"InstanceRefreshes": self.refreshes[:1]}


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[AutoScalingGroups]:
    """A group of two nodes, of one to four, in a stand-in for AWS."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        client = boto3.client("autoscaling", "eu-central-1")
        client.create_launch_configuration(
            LaunchConfigurationName="node", ImageId="ami-12c6146b", InstanceType="t4g.small"
        )
        client.create_auto_scaling_group(
            AutoScalingGroupName=GROUP,
            LaunchConfigurationName="node",
            MinSize=1,
            MaxSize=4,
            DesiredCapacity=2,
            AvailabilityZones=["eu-central-1a"],
        )
        yield AutoScalingGroups(ACCESS, retry=NO_PATIENCE, autoscaling=WithRefreshes(client))


def test_a_group_is_stopped_and_started(groups: AutoScalingGroups) -> None:
    before = groups.facts(GROUP)
    assert before is not None
    assert (before.bounds, before.in_service) == (Bounds(1, 4, 2), 2)
    groups.remember(GROUP, before.bounds)
    groups.hold(GROUP)
    groups.bound(GROUP, Bounds(0, 0, 0))
    stopped = groups.facts(GROUP)
    assert stopped is not None
    assert (stopped.bounds, stopped.stopped) == (Bounds(0, 0, 0), Bounds(1, 4, 2))
    assert (stopped.held, stopped.is_stopped, stopped.in_service) == (True, True, 0)
    groups.bound(GROUP, before.bounds)
    groups.release(GROUP)
    groups.forget(GROUP)

    assert groups.facts(GROUP) == before


def test_a_group_is_scaled_within_its_bounds(groups: AutoScalingGroups) -> None:
    groups.want(GROUP, 3)
    found = groups.facts(GROUP)
    assert found is not None
    assert found.bounds.desired == 3
    assert groups.facts("polynya-dev-other") is None


@pytest.mark.parametrize("tag", ["", "1/2", "a/b/c", "3/2/1", "1/4/9", "-1/4/2"])
def test_a_tag_that_nobody_of_us_wrote_is_none(tag: str) -> None:
    aws = Answers()
    aws.described([], [], Tags=[{"Key": STOPPED_TAG, "Value": tag}])

    found = aws.groups.facts(GROUP)
    assert found is not None
    assert found.stopped is None


class Answers:
    """A client whose requests and answers are checked against the service's own model."""

    def __init__(self) -> None:
        self.client = boto3.client(
            "autoscaling", "eu-central-1", aws_access_key_id="x", aws_secret_access_key="x"
        )
        self.stub = Stubber(self.client)
        self.groups = AutoScalingGroups(ACCESS, retry=NO_PATIENCE, autoscaling=self.client)

    def described(
        self, refreshes: list[dict[str, Any]], activities: list[dict[str, Any]], **group: Any
    ) -> None:
        one = {
            "AutoScalingGroupName": GROUP,
            "MinSize": 0,
            "MaxSize": 4,
            "DesiredCapacity": 2,
            "DefaultCooldown": 0,
            "AvailabilityZones": [],
            "HealthCheckType": "EC2",
            "CreatedTime": AT,
            "Instances": [],
            **group,
        }
        self.stub.add_response("describe_auto_scaling_groups", {"AutoScalingGroups": [one]})
        self.stub.add_response("describe_instance_refreshes", {"InstanceRefreshes": refreshes})
        self.stub.add_response("describe_scaling_activities", {"Activities": activities})
        self.stub.activate()


def activity(status: str, what: str, said: str = "it ended") -> dict[str, Any]:
    return {
        "ActivityId": "a",
        "AutoScalingGroupName": GROUP,
        "Cause": "c",
        "Description": what,
        "StartTime": AT,
        "StatusCode": status,
        "StatusMessage": said,
    }


def test_states_refreshes_and_launches_as_aws_describes_them() -> None:
    aws = Answers()
    states = ["InService", "Pending:Wait", "Terminating:Wait", "Terminating:Proceed"]
    instances = [
        {
            "InstanceId": f"i-{number}",
            "AvailabilityZone": "a",
            "LifecycleState": state,
            "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": False,
        }
        for number, state in enumerate(states)
    ]
    refresh = {"InstanceRefreshId": "r", "Status": "Baking", "PercentageComplete": 100}
    spot = "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity"
    activities = [
        activity("Successful", "Terminating EC2 instance: i-9"),
        activity("Failed", "Launching a new EC2 instance.  Status Reason: …", spot),
        activity("Successful", "Launching a new EC2 instance: i-0"),
    ]
    aws.described([refresh], activities, Instances=instances, Status="Delete in progress")

    found = aws.groups.facts(GROUP)
    assert found is not None
    assert (found.in_service, found.starting, found.ending, found.deleting) == (1, 1, 2, True)
    assert found.refresh == Refresh("r", "running", "Baking", 100, None)
    assert found.failed_launch == FailedLaunch(AT, spot, capacity=True)


def test_a_launch_that_succeeded_ends_the_trouble() -> None:
    aws = Answers()
    aws.described(
        [
            {
                "InstanceRefreshId": "r",
                "Status": "Cancelled",
                "StatusReason": "by a person",
                "StartTime": AT,
                "PercentageComplete": 40,
            }
        ],
        [
            activity("Successful", "Launching a new EC2 instance: i-0"),
            activity("Failed", "Launching a new EC2 instance", "no capacity"),
        ],
    )

    found = aws.groups.facts(GROUP)
    assert found is not None
    assert found.failed_launch is None
    assert found.refresh == Refresh("r", "failed", "by a person", 40, AT)


@pytest.mark.parametrize(("minimum", "healthy"), [(0, (0, 100)), (1, (100, 150))])
def test_a_roll_starts_new_nodes_first_where_there_always_is_one(
    minimum: int, healthy: tuple[int, int]
) -> None:
    aws = Answers()
    aws.described([], [], MinSize=minimum)
    aws.stub.add_response(
        "start_instance_refresh",
        {"InstanceRefreshId": "r"},
        {
            "AutoScalingGroupName": GROUP,
            "Strategy": "Rolling",
            "Preferences": {
                "MinHealthyPercentage": healthy[0],
                "MaxHealthyPercentage": healthy[1],
                "SkipMatching": False,
                "ScaleInProtectedInstances": "Refresh",
            },
        },
    )
    aws.groups.roll(GROUP)

    aws.stub.assert_no_pending_responses()


def test_a_roll_that_is_under_way_is_none_again() -> None:
    aws = Answers()
    aws.described([], [])
    aws.stub.add_client_error("start_instance_refresh", "InstanceRefreshInProgress")
    aws.groups.roll(GROUP)

    aws.stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ClientError({"Error": {"Code": "AccessDenied"}}, "x"), OperationError),
        (ClientError({"Error": {"Code": "Throttling"}}, "x"), DependencyError),
        (EndpointConnectionError(endpoint_url="https://…"), DependencyError),
    ],
)
def test_a_no_is_told_from_no_answer(error: Exception, kind: type[PolynyaError]) -> None:
    class Fails:
        def set_desired_capacity(self, **_asked: Any) -> None:
            raise error

    groups = AutoScalingGroups(ACCESS, retry=NO_PATIENCE, autoscaling=Fails())
    with pytest.raises(kind) as caught:
        groups.want(GROUP, 1)

    if kind is OperationError:
        assert caught.value.code == "POLYNYA-AGT-060"
        assert "allow autoscaling:SetDesiredCapacity" in caught.value.fix
