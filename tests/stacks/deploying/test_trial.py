"""A release that was deployed to an empty group is tried by one node, and fails the deployment."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from polynya.model.error_catalogue.cluster import RELEASE_NOT_BOOTING
from polynya.model.errors import DependencyError
from polynya.store.aws.auto_scaling import STOPPED_TAG
from polynya_constructs.functions.figures.boots import HELD_TAG
from polynya_constructs.nodes import boot
from polynya_constructs.nodes.boot import boot_variables
from stacks import trial
from stacks.trial import try_releases
from tests.aws import aws_clients

START = datetime(2026, 11, 28, 23, tzinfo=UTC)
CODE = "0123456789abcdef" * 4
GROUP, LOG = "polynya-dev-main", "polynya-dev-cluster-main-AgentLog1A2B-xyz"
VARIABLES = {
    "CODE_SHA256": CODE,
    "CONFIG": "s3://configuration/project",
    "AGENT_OPTIONS": "--coordination s3://configuration/coordination --stream it's",
    "LOG_GROUP": LOG,
}
ABANDONED = (
    "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token 1 was "
    "abandoned: Lifecycle Action Completed with ABANDON Result"
)
NO_CAPACITY = (
    "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to "
    "your request configuration. Launching EC2 instance failed."
)


def user_data() -> str:
    lines = [f"{name}={shlex.quote(value)}" for name, value in VARIABLES.items()]
    return "\n".join(["#!/bin/bash", *lines, "", boot._SCRIPT.read_text()])


def reported(reason: str, *, counted: bool = True) -> str:
    """The line that `tell_failed_boot` of `boot.sh` sends last."""
    metrics = [{"Name": "FailingAgents"}, *[{"Name": "FailedBoots"}] * counted]
    return json.dumps(
        {
            "_aws": {"CloudWatchMetrics": [{"Namespace": "Polynya", "Metrics": metrics}]},
            "Step": "fetching the runtime",
            "Reason": reason,
        }
    )


@dataclass
class Cloud:
    """A group, its launches and its logs, on a clock that runs while somebody sleeps.

    `boot` is what a node does that has started: after so many minutes it gets into service, or
    reports and is given back. `refused` is what EC2 says instead of starting one.
    """

    desired: int = 0
    maximum: int = 1
    boot: Callable[[int], str | None] = lambda minutes: "ready" if minutes >= 6 else None
    report: str | None = None
    refused: str | None = None
    starts_after: int = 0
    pushed: bool = True
    template_of_the_user: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    suspended: list[str] = field(default_factory=list)
    nodes: dict[str, tuple[float, str]] = field(default_factory=dict)
    activities: list[dict[str, Any]] = field(default_factory=list)
    logged: dict[str, str] = field(default_factory=dict)
    denied: str = ""
    calls: list[str] = field(default_factory=list)
    seconds: float = 0.0

    # The clock.

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self._turn()

    def _turn(self) -> None:
        """Do what Auto Scaling, EC2 and the node do in a moment."""
        for node, (since, state) in list(self.nodes.items()):
            became = self.boot(int(self.seconds - since) // 60) if state == "Pending:Wait" else None
            if became == "ready":
                self.nodes[node] = (since, "InService")
                self._ends(node, "Successful", "")
            elif became is not None:
                if self.report is not None:
                    self.logged[f"{node}/failed"] = self.report
                del self.nodes[node]
                self._ends(node, "Cancelled", became)
        wanted = self.desired > len(self.nodes) and "Launch" not in self.suspended
        if wanted and self.seconds >= self.starts_after * 60:
            node = f"i-{len(self.activities):017x}"
            self.launched("Failed" if self.refused else "MidLifecycleAction", node)
            if self.refused is None:
                self.nodes[node] = (self.seconds, "Pending:Wait")

    def launched(self, status: str, node: str, *, minutes_ago: int = 0) -> None:
        self.activities.insert(
            0,
            {
                "ActivityId": f"launch {len(self.activities)}",
                "Description": "Launching a new EC2 instance"
                + ("" if self.refused else f": {node}"),
                "StartTime": self.now() - timedelta(minutes=minutes_ago),
                "StatusCode": status,
                "StatusMessage": self.refused or "",
            },
        )

    def _ends(self, node: str, status: str, said: str) -> None:
        (one,) = [each for each in self.activities if node in each["Description"]]
        one |= {"StatusCode": status, "StatusMessage": said}

    # What is asked of AWS.

    def client(self, _service: str) -> Cloud:
        return self

    def describe_auto_scaling_groups(self, AutoScalingGroupNames: list[str]) -> dict[str, Any]:
        assert AutoScalingGroupNames == [GROUP]
        template = {"LaunchTemplateId": "lt-1", "Version": "7"}
        group = {
            "AutoScalingGroupName": GROUP,
            "MaxSize": self.maximum,
            "DesiredCapacity": self.desired,
            "MixedInstancesPolicy": {"LaunchTemplate": {"LaunchTemplateSpecification": template}},
            "Instances": [
                {"InstanceId": node, "LifecycleState": state}
                for node, (_, state) in self.nodes.items()
            ],
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
            "SuspendedProcesses": [{"ProcessName": one} for one in self.suspended],
        }
        return {"AutoScalingGroups": [group]}

    def describe_scaling_activities(self, **_asked: Any) -> dict[str, Any]:
        self._called("describe_scaling_activities")
        return {"Activities": self.activities}

    def describe_launch_template_versions(
        self, LaunchTemplateId: str, Versions: list[str]
    ) -> dict[str, Any]:
        assert (LaunchTemplateId, Versions) == ("lt-1", ["7"])
        text = self.template_of_the_user or user_data()
        data = {"UserData": base64.b64encode(text.encode()).decode()}
        version = {"CreateTime": START - timedelta(minutes=10), "LaunchTemplateData": data}
        return {"LaunchTemplateVersions": [version]}

    def list_objects_v2(self, Bucket: str, Prefix: str, MaxKeys: int) -> dict[str, Any]:
        assert (Bucket, Prefix) == ("configuration", "project/")
        self._called("list_objects_v2")
        return {"KeyCount": int(self.pushed)}

    def set_desired_capacity(self, **asked: Any) -> None:
        self._called("set_desired_capacity")
        self.desired = asked["DesiredCapacity"]
        self._turn()

    def get_log_events(self, logGroupName: str, logStreamName: str, **_: Any) -> dict[str, Any]:
        assert logGroupName == LOG
        if logStreamName not in self.logged:
            raise refusal("ResourceNotFoundException", "GetLogEvents")
        return {"events": [{"message": "{}"}, {"message": self.logged[logStreamName]}]}

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name == self.denied:
            raise refusal("AccessDenied", name)


def refusal(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, operation)


def gives_up(minutes: int) -> str | None:
    return ABANDONED if minutes >= 2 else None


def never(_minutes: int) -> str | None:
    return None


def tried(cloud: Cloud) -> list[str]:
    """The errors of a trial, as the user sees them."""
    return [error.render() for error in try_releases("dev", ["main"], cloud.client, cloud)]


pytestmark = pytest.mark.synth


def test_a_release_that_boots_is_tried_by_one_node_which_stays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cloud = Cloud()

    assert tried(cloud) == []

    assert (cloud.desired, len(cloud.nodes)) == (1, 1)
    (node,) = cloud.nodes
    assert f"{GROUP}: the release boots: node {node} is in service" in capsys.readouterr().out
    assert 6 * 60 <= cloud.seconds < 7 * 60


def test_a_release_that_does_not_boot_fails_the_deployment_and_says_which_node_and_why() -> None:
    cloud = Cloud(boot=gives_up, report=reported("failed three times: aws s3 cp s3://a/b"))

    (error,) = tried(cloud)

    node = f"i-{0:017x}"
    assert f"the release that was deployed does not boot: node {node} gave up" in error
    assert f"--> {GROUP}" in error
    assert "fetching the runtime: failed three times: aws s3 cp s3://a/b" in error
    assert f"streams {node}/boot and {node}/agent of {LOG}" in error
    assert "no data was touched" in error
    assert "three of them have failed, then launches of the group are suspended" in error
    assert "fix: deploy the former release (check out its commit, `make deploy STAGE=dev`)" in error
    assert cloud.seconds < 3 * 60


def test_make_sees_that_the_deployment_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud(boot=gives_up, report=reported("no space left"))
    monkeypatch.setattr(trial.boto3, "Session", lambda **_: cloud)
    monkeypatch.setattr(trial, "SystemClock", lambda: cloud)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")

    assert trial.main(["--stage", "dev"]) == RELEASE_NOT_BOOTING.raises.exit_code == 1
    assert trial.main(["--stage", "dev"]) == 1  # a second trial, with a node of its own


def test_a_node_that_gave_up_without_a_report_fails_the_deployment() -> None:
    """It may have failed before it knew its own name."""
    cloud = Cloud(boot=gives_up)

    (error,) = tried(cloud)

    assert f"it reported nothing; {ABANDONED}" in error


def test_a_node_that_spot_takes_back_while_it_boots_says_nothing_of_the_release() -> None:
    boots = iter(["taken out of service: Spot interruption"])
    cloud = Cloud(boot=lambda minutes: next(boots, "ready") if minutes >= 3 else None)

    assert tried(cloud) == []

    assert len(cloud.activities) == 2
    assert cloud.seconds >= 6 * 60


def test_a_market_without_capacity_is_no_fault_of_the_release(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cloud = Cloud(refused=NO_CAPACITY)

    assert tried(cloud) == []

    said = capsys.readouterr().err
    assert f"warning: {GROUP}: deployed, but it is not known whether the release boots" in said
    assert f"EC2 started no node within 15 minutes, for lack of capacity: {NO_CAPACITY}" in said
    assert "make trial STAGE=dev" in said
    assert cloud.seconds == 15 * 60


def test_a_launch_template_from_which_ec2_starts_nothing_fails_the_deployment() -> None:
    cloud = Cloud(refused="The image id '[ami-1]' does not exist. Launching EC2 instance failed.")

    (error,) = tried(cloud)

    assert "does not boot: it gets no node" in error
    assert "EC2 starts no node: The image id '[ami-1]' does not exist" in error


@pytest.mark.parametrize(
    ("cloud", "said"),
    [
        (Cloud(starts_after=60), "Auto Scaling started no node within 15 minutes"),
        (Cloud(starts_after=12, boot=never), "started late, and is not ready after 15 minutes"),
        (
            Cloud(boot=gives_up, report=reported("POLYNYA-BKT-006", counted=False)),
            "its nodes need a first `polynya config push` (fetching the runtime: POLYNYA-BKT-006)",
        ),
    ],
    ids=["no start", "a late start", "nothing was pushed, as the node says"],
)
def test_what_the_trial_cannot_decide_is_a_warning(
    cloud: Cloud, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tried(cloud) == []

    assert said in capsys.readouterr().err
    assert cloud.seconds <= 15 * 60


SERVING = {"i-1": (0.0, "InService")}


@pytest.mark.parametrize(
    ("cloud", "said"),
    [
        (Cloud(desired=1, nodes=SERVING), "no trial of the release: it has nodes"),
        (Cloud(maximum=0), "a schedule allows no node now"),
        (Cloud(maximum=0, tags={STOPPED_TAG: "0/1/0"}), "`polynya cluster stop` stopped it"),
        (Cloud(suspended=["Launch"]), "somebody suspended its process `Launch`"),
        (Cloud(pushed=False), "its nodes need a first `polynya config push`"),
    ],
    ids=["it has nodes", "a schedule", "stopped", "suspended", "nothing was pushed"],
)
def test_a_group_that_cannot_or_need_not_try_is_asked_for_no_node(
    cloud: Cloud, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tried(cloud) == []

    shown = capsys.readouterr()
    assert said in shown.out + shown.err
    assert "set_desired_capacity" not in cloud.calls
    assert cloud.seconds == 0


def test_a_deployer_of_groups_with_nodes_needs_no_right_to_read_more() -> None:
    cloud = Cloud(desired=1, nodes=SERVING)

    tried(cloud)

    assert cloud.calls == []


def test_a_release_that_has_booted_is_not_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    cloud = Cloud()
    cloud.launched("Successful", "i-1", minutes_ago=5)

    assert tried(cloud) == []

    assert "a node of this release has booted before" in capsys.readouterr().out
    assert cloud.desired == 0


def test_boots_of_the_release_before_do_not_count() -> None:
    cloud = Cloud()
    cloud.launched("Successful", "i-1", minutes_ago=20)

    tried(cloud)

    assert cloud.desired == 1


def test_a_failure_of_an_hour_before_does_not_end_the_next_trial() -> None:
    """What kept the release from booting may be repaired without another release."""
    cloud = Cloud()
    cloud.launched("Cancelled", "i-1", minutes_ago=5)
    cloud.activities[0]["StatusMessage"] = ABANDONED
    cloud.logged["i-1/failed"] = reported("no space left")

    assert tried(cloud) == []
    assert len(cloud.nodes) == 1


def test_a_node_that_something_else_asked_for_is_the_one_that_tries() -> None:
    cloud = Cloud(desired=1, boot=gives_up, report=reported("no space left"))
    cloud._turn()

    (error,) = tried(cloud)

    assert "no space left" in error
    assert "set_desired_capacity" not in cloud.calls


def test_launches_that_are_held_for_this_release_fail_the_deployment_at_once() -> None:
    cloud = Cloud(suspended=["Launch"], tags={HELD_TAG: CODE[:16]})

    (error,) = tried(cloud)

    assert "three of its nodes did not boot, and launches of the group are suspended" in error
    assert (cloud.desired, cloud.seconds) == (0, 0)


def test_launches_that_are_held_for_the_release_before_are_waited_for() -> None:
    """The function of figures resumes them within a minute or two."""
    cloud = Cloud(suspended=["Launch"], tags={HELD_TAG: "former"})
    sleep = cloud.sleep

    def resumed(seconds: float) -> None:
        if cloud.seconds >= 60:
            cloud.suspended, cloud.tags = [], {}
        sleep(seconds)

    cloud.sleep = resumed  # type: ignore[method-assign]

    assert tried(cloud) == []
    assert len(cloud.nodes) == 1


def test_a_boot_of_the_user_is_tried_by_its_launch_hook_alone() -> None:
    cloud = Cloud(template_of_the_user="#!/bin/bash\necho 'it's mine\n\nCONFIG=1\n", boot=gives_up)

    (error,) = tried(cloud)

    assert "it reported nothing" in error


def test_a_missing_right_is_named_and_says_that_the_stage_is_deployed() -> None:
    cloud = Cloud(denied="set_desired_capacity")

    with pytest.raises(DependencyError) as raised:
        tried(cloud)

    shown = raised.value.render()
    assert "autoscaling:SetDesiredCapacity" in shown
    assert "the stage is deployed, and its release was not tried" in shown


def test_who_may_not_look_into_the_configuration_lets_the_node_tell() -> None:
    """As the build of a pipeline."""
    cloud = Cloud(pushed=False, denied="list_objects_v2")

    assert tried(cloud) == []
    assert len(cloud.nodes) == 1


def test_the_variables_of_a_boot_are_read_as_they_were_written() -> None:
    assert boot_variables(user_data()) == VARIABLES
    assert boot_variables("#!/bin/bash\nCODE_SHA256=1\n\necho mine\n") == {}


def test_a_stand_in_of_aws_takes_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """It checks them as AWS does; it has no activities, and its nodes are in service at once."""
    with aws_clients() as client:
        template = client("ec2").create_launch_template(
            LaunchTemplateName="node",
            LaunchTemplateData={
                "ImageId": "ami-12c6146b",
                "InstanceType": "m7g.xlarge",
                "UserData": base64.b64encode(user_data().encode()).decode(),
            },
        )["LaunchTemplate"]["LaunchTemplateId"]
        specification = {"LaunchTemplateId": template, "Version": "1"}
        client("autoscaling").create_auto_scaling_group(
            AutoScalingGroupName=GROUP,
            MixedInstancesPolicy={"LaunchTemplate": {"LaunchTemplateSpecification": specification}},
            MinSize=0,
            MaxSize=1,
            DesiredCapacity=0,
            AvailabilityZones=["eu-central-1a"],
        )
        place = {"LocationConstraint": "eu-central-1"}
        client("s3").create_bucket(Bucket="configuration", CreateBucketConfiguration=place)
        client("s3").put_object(Bucket="configuration", Key="project/current/a.yml", Body=b"a")
        client("logs").create_log_group(logGroupName=LOG)
        stream = {"logGroupName": LOG, "logStreamName": "i-1/failed"}
        client("logs").create_log_stream(**stream)
        event = {"timestamp": int(datetime.now(UTC).timestamp() * 1000), "message": reported("a")}
        client("logs").put_log_events(**stream, logEvents=[event])
        monkeypatch.setattr(trial.TriedGroup, "look", lambda self, _release: self.glance())

        group = trial.TriedGroup(GROUP, client)
        release = group.release()

        assert (release.code, release.log_group) == (CODE[:16], LOG)
        assert list(group.failed_boots(release, ["i-1", "i-2"])) == ["i-1"]
        assert try_releases("dev", ["main", "elsewhere"], client, Cloud()) == []
        assert group.glance().serving != ()
