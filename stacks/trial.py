"""`python -m stacks.trial`: let a node of each empty group try the release that was deployed.

After each deployment, from a workstation or a build of the pipeline. A group with nodes has tried
it, and so has one of which a node of this release has booted before: they are left alone.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from polynya.model.error_catalogue.cluster import RELEASE_NOT_BOOTING
from polynya.model.errors import ConfigError, DependencyError, OperationError
from polynya.store.aws.auto_scaling import STOPPED_TAG
from polynya.store.aws.clients import code_of, explained, is_denied
from polynya.store.clock import Clock, SystemClock
from polynya_constructs.functions.figures.boots import HELD_TAG
from polynya_constructs.functions.wake.handler import wake
from polynya_constructs.nodes.boot import boot_variables
from stacks.region import stage_region
from stacks.settings.cluster_checks import PROJECT
from stacks.settings.loader import load_deployment
from stacks.trial_boot import (
    NOTHING_PUSHED,
    FailedBoot,
    GroupSight,
    LaunchState,
    NodeLaunch,
    Release,
    TrialResult,
    Verdict,
    ended,
    judge,
    tried_nodes,
    why_no_trial,
)

T = TypeVar("T")

_NOT_TRIED: Final = (
    "no data was touched; the stage is deployed, and its release was not tried, which `TRIAL=no` "
    "leaves out"
)
_LOOK_SECONDS: Final = 15
_CODE_LENGTH: Final = 16
"""Of the code, as nodes name it that report a failed boot."""

_COUNTED: Final = "FailedBoots"
"""Metric of a failed boot for which the release is to blame."""

_LAUNCHING: Final = "Launching a new EC2 instance"
_INSTANCE: Final = re.compile(r"\bi-[0-9a-f]+\b")
_ENDED: Final[Mapping[str, LaunchState]] = {
    "Successful": LaunchState.IN_SERVICE,
    "Failed": LaunchState.FAILED,
    "Cancelled": LaunchState.FAILED,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the release of each cluster of a stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stacks.trial", description=__doc__)
    parser.add_argument("--stage", required=True, help="name of the stage")
    options = parser.parse_args(arguments)
    try:
        stage = load_deployment(PROJECT / "config").stage(options.stage)
        session = boto3.Session(region_name=stage_region(stage))
        clusters = [cluster.name for cluster in stage.clusters]
        failures = try_releases(stage.name, clusters, session.client, SystemClock())
    except (ConfigError, DependencyError) as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return failures[0].exit_code if failures else 0


def try_releases(
    stage: str, clusters: Iterable[str], client: Callable[[str], Any], clock: Clock
) -> list[OperationError]:
    """Ask each group without nodes for one, wait for all of them, and print what became of each.

    Args:
        stage: its name.
        clusters: their names in it.
        client: makes a client of a service of AWS.
        clock: counts the minutes.

    Returns:
        the error of each release that does not boot.

    Raises:
        DependencyError: AWS refuses, or is not reached.
    """
    failures: list[OperationError] = []
    trials: list[ReleaseTrial] = []
    for cluster in clusters:
        group = TriedGroup(f"polynya-{stage}-{cluster}", client)
        begun = begin(group)
        if isinstance(begun, ReleaseTrial):
            print(f"{group.name}: a node tries the release, for 15 minutes at most", flush=True)
            trials.append(begun)
        else:
            failures += _told(stage, group.name, begun, None)
    start = clock.monotonic()
    while trials:
        for trial in list(trials):
            verdict = trial.look(clock.monotonic() - start)
            if verdict.result is not TrialResult.WAIT:
                failures += _told(stage, trial.group.name, verdict, trial.release.log_group)
                trials.remove(trial)
        if trials:
            clock.sleep(_LOOK_SECONDS)
    return failures


class TriedGroup:
    """A group in EC2 Auto Scaling, and what its nodes report.

    Its methods raise DependencyError where AWS refuses, or is not reached.
    """

    def __init__(self, name: str, client: Callable[[str], Any]) -> None:
        self.name, self._client = name, client

    def glance(self) -> GroupSight | None:
        """The group without its launches; None if it does not exist."""
        found = self._described()
        return sight_of(found) if found is not None else None

    def release(self) -> Release:
        """What the group launches."""
        found = self._described() or {}
        template = found["MixedInstancesPolicy"]["LaunchTemplate"]["LaunchTemplateSpecification"]
        ec2 = self._client("ec2")
        (version,) = self._asked(
            "describe the launch template of the group",
            "ec2:DescribeLaunchTemplateVersions",
            lambda: ec2.describe_launch_template_versions(
                LaunchTemplateId=template["LaunchTemplateId"], Versions=[template["Version"]]
            ),
        )["LaunchTemplateVersions"]
        user_data = base64.b64decode(version["LaunchTemplateData"].get("UserData", ""))
        return release_of(version["CreateTime"], user_data.decode())

    def look(self, release: Release) -> GroupSight:
        """The group with its launches of a release."""
        sight = sight_of(self._described() or {"MaxSize": 0, "Instances": []})
        activities = self._asked(
            "describe the activities of the group",
            "autoscaling:DescribeScalingActivities",
            lambda: self._client("autoscaling").describe_scaling_activities(
                AutoScalingGroupName=self.name, MaxRecords=100
            ),
        )["Activities"]
        return replace(sight, launches=launches_of(activities, release.created))

    def is_pushed(self, release: Release) -> bool:
        """Whether the project of the nodes may have a configuration.

        Without the right to look a node tells it, some minutes later; a boot of the user's needs
        none.
        """
        if release.configuration is None:
            return True
        bucket, prefix = release.configuration
        s3 = self._client("s3")

        def look() -> bool:
            try:
                found = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
            except ClientError as error:
                if is_denied(error):
                    return True
                raise
            return bool(found["KeyCount"])

        return self._asked(
            "look for the configuration of the nodes", f"s3:ListBucket on {bucket}", look
        )

    def failed_boots(self, release: Release, nodes: Iterable[str]) -> dict[str, FailedBoot]:
        """What nodes reported that did not boot."""
        if release.log_group is None:
            return {}
        found = {node: self._failed_boot(release.log_group, node) for node in nodes}
        return {node: boot for node, boot in found.items() if boot is not None}

    def ask(self) -> None:
        """Ask for one node, unless the group wants one already."""
        found = self._described()
        if found is not None:
            self._asked(
                "ask the group for a node",
                "autoscaling:SetDesiredCapacity",
                lambda: wake(self._client("autoscaling"), found),
            )

    def _failed_boot(self, log_group: str, node: str) -> FailedBoot | None:
        logs = self._client("logs")

        def events() -> Sequence[Mapping[str, Any]]:
            try:
                answer = logs.get_log_events(
                    logGroupName=log_group, logStreamName=f"{node}/failed", startFromHead=True
                )
            except ClientError as error:
                if code_of(error) == "ResourceNotFoundException":
                    return ()
                raise
            found: Sequence[Mapping[str, Any]] = answer["events"]
            return found

        told = self._asked("read what a node reported", f"logs:GetLogEvents on {log_group}", events)
        return failed_boot(told[-1]["message"]) if told else None

    def _described(self) -> Mapping[str, Any] | None:
        groups: Sequence[Mapping[str, Any]] = self._asked(
            "describe the group",
            "autoscaling:DescribeAutoScalingGroups",
            lambda: self._client("autoscaling").describe_auto_scaling_groups(
                AutoScalingGroupNames=[self.name]
            ),
        )["AutoScalingGroups"]
        return groups[0] if groups else None

    def _asked(self, action: str, grant: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            said = explained(error, action=action, resource=self.name, grant=grant)
            said.state = _NOT_TRIED
            raise said from error


@dataclass(frozen=True, slots=True)
class ReleaseTrial:
    """A group that was asked for a node.

    Attributes:
        group: the group.
        release: what it launches.
        before: launches that had ended when the trial began.
    """

    group: TriedGroup
    release: Release
    before: frozenset[str]

    def look(self, waited: float) -> Verdict:
        """The verdict after so many seconds. Raises as `TriedGroup`."""
        sight = self.group.look(self.release)
        boots = self.group.failed_boots(self.release, tried_nodes(sight, self.before))
        return judge(self.release, sight, boots, before=self.before, waited=waited)


def begin(group: TriedGroup) -> ReleaseTrial | Verdict:
    """Ask a group for a node; a verdict if it is asked for none.

    Raises:
        DependencyError: AWS refuses, or is not reached.
    """
    glance = group.glance()
    if glance is None:
        return Verdict(TrialResult.NOT_NEEDED, "it is not deployed")
    # Most groups have nodes: who deploys them needs no right to read more.
    if (verdict := why_no_trial(glance)) is not None:
        return verdict
    release = group.release()
    sight = group.look(release)
    if (verdict := why_no_trial(sight, release)) is not None:
        return verdict
    if not group.is_pushed(release):
        return NOTHING_PUSHED
    group.ask()
    return ReleaseTrial(group, release, ended(sight))


def sight_of(group: Mapping[str, Any]) -> GroupSight:
    """A group as Auto Scaling describes it, without its launches."""
    tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())}
    suspended = {each["ProcessName"] for each in group.get("SuspendedProcesses", ())}
    states = {node["InstanceId"]: node["LifecycleState"] for node in group["Instances"]}
    return GroupSight(
        maximum=group["MaxSize"],
        serving=tuple(node for node, state in states.items() if state == "InService"),
        booting=tuple(node for node, state in states.items() if state.startswith("Pending")),
        suspended="Launch" in suspended,
        held_for=tags.get(HELD_TAG),
        stopped=STOPPED_TAG in tags,
    )


def release_of(created: datetime, user_data: str) -> Release:
    """What a launch template launches, by its user data."""
    variables = boot_variables(user_data)
    if not variables:
        return Release(created)
    bucket, _, project = variables["CONFIG"].removeprefix("s3://").partition("/")
    return Release(
        created,
        code=variables["CODE_SHA256"][:_CODE_LENGTH],
        log_group=variables["LOG_GROUP"],
        configuration=(bucket, f"{project}/"),
    )


def launches_of(
    activities: Iterable[Mapping[str, Any]], created: datetime
) -> tuple[NodeLaunch, ...]:
    """The launches since a moment, in the order of the activities: the newest first."""
    found = []
    for one in activities:
        description = one.get("Description", "")
        if description.startswith(_LAUNCHING) and one["StartTime"] >= created:
            named = _INSTANCE.search(description)
            state = _ENDED.get(one["StatusCode"], LaunchState.UNDER_WAY)
            said = str(one.get("StatusMessage", ""))
            found.append(
                NodeLaunch(one["ActivityId"], named.group() if named else None, state, said)
            )
    return tuple(found)


def failed_boot(line: str) -> FailedBoot:
    """What the line of metrics says that a node sent, see `tell_failed_boot` in `boot.sh`."""
    said = json.loads(line)
    metrics = {
        metric["Name"]
        for directive in said["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]
    }
    step, reason = said.get("Step", "boot"), said.get("Reason", "it did not say why")
    return FailedBoot(step, reason.strip(), counted=_COUNTED in metrics)


def _told(
    stage: str, group: str, verdict: Verdict, log_group: str | None
) -> Iterator[OperationError]:
    """Print a verdict at once; yield the error of a release that does not boot."""
    node = f"node {verdict.node} " if verdict.node else ""
    match verdict.result:
        case TrialResult.FAILED:
            streams = f"; streams {verdict.node}/boot and {verdict.node}/agent of {log_group}"
            failure = RELEASE_NOT_BOOTING(
                where=group,
                why=verdict.why + (streams if verdict.node and log_group else ""),
                node=f"node {verdict.node} gave up" if verdict.node else "it gets no node",
                stage=stage,
            )
            print(failure.render(), file=sys.stderr)
            yield failure
        case TrialResult.UNDECIDED:
            print(
                f"warning: {group}: deployed, but it is not known whether the release boots: "
                f"{node}{verdict.why}. Try again: make trial STAGE={stage}",
                file=sys.stderr,
            )
        case TrialResult.NOT_NEEDED:
            print(f"{group}: no trial of the release: {verdict.why}")
        case _:
            print(f"{group}: the release boots: {node}{verdict.why}")


if __name__ == "__main__":
    sys.exit(main())
