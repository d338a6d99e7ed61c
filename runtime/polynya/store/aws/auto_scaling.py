"""Groups of nodes in EC2 Auto Scaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError
from typing_extensions import override

from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.cluster import AUTO_SCALING_REFUSED
from polynya.model.errors import OperationError
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.clock import Retry
from polynya.store.jobs import Bounds, FailedLaunch, GroupFacts, NodeGroups, Refresh, RefreshIs

T = TypeVar("T")

#: Tag of a stopped group; its value is `<minimum>/<maximum>/<desired>` of before.
STOPPED_TAG: Final = "polynya:stopped"
_SCHEDULES: Final = ["ScheduledActions"]
_ENDED: Final[Mapping[str, RefreshIs]] = {
    "Successful": "done",
    "Failed": "failed",
    "Cancelled": "failed",
    "RollbackSuccessful": "failed",
    "RollbackFailed": "failed",
}
_NO_CAPACITY: Final = ("capacity", "max spot instance count exceeded", "spotmaxpricetoolow")
_LAUNCHING: Final = "Launching a new EC2 instance"


class AutoScalingGroups(NodeGroups):
    """The Auto Scaling groups of an account and region. See `NodeGroups`."""

    def __init__(
        self, access: AwsAccess, *, retry: Retry | None = None, autoscaling: Any | None = None
    ) -> None:
        self._retry = retry or Retry(deadline=4.0)
        self._autoscaling: Any = autoscaling or client("autoscaling", access)

    @override
    def facts(self, group: str) -> GroupFacts | None:
        found = self._asked(
            group,
            "describe the group",
            "autoscaling:DescribeAutoScalingGroups",
            lambda: self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group]),
        )["AutoScalingGroups"]
        if not found:
            return None
        (one,) = found
        states = [instance["LifecycleState"] for instance in one["Instances"]]
        tags = {tag["Key"]: tag.get("Value", "") for tag in one.get("Tags", ())}
        suspended = {each["ProcessName"] for each in one.get("SuspendedProcesses", ())}
        return GroupFacts(
            bounds=Bounds(one["MinSize"], one["MaxSize"], one["DesiredCapacity"]),
            in_service=states.count("InService"),
            starting=sum(state.startswith("Pending") for state in states),
            ending=sum(state.startswith("Terminating") for state in states),
            stopped=_bounds_in(tags.get(STOPPED_TAG, "")),
            held=suspended.issuperset(_SCHEDULES),
            refresh=self._newest_refresh(group),
            failed_launch=self._failed_launch(group),
            # Only a group that is being deleted has a status ("AutoScalingGroup", API Reference).
            deleting=bool(one.get("Status")),
            machines=frozenset(
                (each["InstanceType"], each["AvailabilityZone"])
                for each in one["Instances"]
                if each.get("InstanceType")
            ),
        )

    @override
    def remember(self, group: str, bounds: Bounds) -> None:
        value = f"{bounds.minimum}/{bounds.maximum}/{bounds.desired}"
        tag = {**_tag(group), "Value": value, "PropagateAtLaunch": False}
        self._told(
            group,
            "tag the group",
            "autoscaling:CreateOrUpdateTags",
            lambda: self._autoscaling.create_or_update_tags(Tags=[tag]),
        )

    @override
    def forget(self, group: str) -> None:
        self._told(
            group,
            "remove a tag of the group",
            "autoscaling:DeleteTags",
            lambda: self._autoscaling.delete_tags(Tags=[_tag(group)]),
        )

    @override
    def hold(self, group: str) -> None:
        self._told(
            group,
            "suspend the schedules of the group",
            "autoscaling:SuspendProcesses",
            lambda: self._autoscaling.suspend_processes(
                AutoScalingGroupName=group, ScalingProcesses=_SCHEDULES
            ),
        )

    @override
    def release(self, group: str) -> None:
        self._told(
            group,
            "resume the schedules of the group",
            "autoscaling:ResumeProcesses",
            lambda: self._autoscaling.resume_processes(
                AutoScalingGroupName=group, ScalingProcesses=_SCHEDULES
            ),
        )

    @override
    def bound(self, group: str, bounds: Bounds) -> None:
        self._told(
            group,
            "change the bounds of the group",
            "autoscaling:UpdateAutoScalingGroup",
            lambda: self._autoscaling.update_auto_scaling_group(
                AutoScalingGroupName=group,
                MinSize=bounds.minimum,
                MaxSize=bounds.maximum,
                DesiredCapacity=bounds.desired,
            ),
        )

    @override
    def want(self, group: str, desired: int) -> None:
        self._told(
            group,
            "change the desired capacity of the group",
            "autoscaling:SetDesiredCapacity",
            lambda: self._autoscaling.set_desired_capacity(
                AutoScalingGroupName=group, DesiredCapacity=desired, HonorCooldown=False
            ),
        )

    @override
    def roll(self, group: str) -> None:
        """As a deploy does it: the new node first, unless the group may be empty.

        Nodes that already have the newest template are replaced, too: a roll asks for new nodes.
        """
        facts = self.facts(group)
        new_first = facts is not None and facts.bounds.minimum > 0
        wishes = {
            "MinHealthyPercentage": 100 if new_first else 0,
            "MaxHealthyPercentage": 150 if new_first else 100,
            "SkipMatching": False,
            "ScaleInProtectedInstances": "Refresh",
        }

        def start() -> None:
            try:
                self._autoscaling.start_instance_refresh(
                    AutoScalingGroupName=group, Strategy="Rolling", Preferences=wishes
                )
            except ClientError as error:
                if code_of(error) != "InstanceRefreshInProgress":
                    raise

        self._told(
            group, "replace the nodes of the group", "autoscaling:StartInstanceRefresh", start
        )

    def _newest_refresh(self, group: str) -> Refresh | None:
        """The newest one comes first ("DescribeInstanceRefreshes", API Reference)."""
        found = self._asked(
            group,
            "describe the refreshes of the group",
            "autoscaling:DescribeInstanceRefreshes",
            lambda: self._autoscaling.describe_instance_refreshes(
                AutoScalingGroupName=group, MaxRecords=1
            ),
        )["InstanceRefreshes"]
        if not found:
            return None
        one = found[0]
        return Refresh(
            name=one["InstanceRefreshId"],
            state=_ENDED.get(one["Status"], "running"),
            reason=one.get("StatusReason", one["Status"]),
            percent=int(one.get("PercentageComplete", 0)),
            since=one.get("StartTime"),
        )

    def _failed_launch(self, group: str) -> FailedLaunch | None:
        """The newest activity comes first ("DescribeScalingActivities", API Reference)."""
        found = self._asked(
            group,
            "describe the activities of the group",
            "autoscaling:DescribeScalingActivities",
            lambda: self._autoscaling.describe_scaling_activities(
                AutoScalingGroupName=group, MaxRecords=20
            ),
        )["Activities"]
        for one in found:
            if one.get("Description", "").startswith(_LAUNCHING):
                said = str(one.get("StatusMessage", ""))
                failed = one["StatusCode"] in {"Failed", "Cancelled"}
                short = lacks_capacity(said)
                return FailedLaunch(one["StartTime"], said, short) if failed else None
        return None

    def _told(self, group: str, action: str, grant: str, call: Callable[[], object]) -> None:
        """Ask for something. Raises OperationError when AWS says no, DependencyError else."""
        try:
            self._retry.run(call, is_transient)
        except AWS_ERRORS as error:
            if isinstance(error, ClientError) and not is_transient(error):
                raise _refused(error, group, action, grant) from error
            raise explained(error, action=action, resource=group, grant=grant) from error

    def _asked(self, group: str, action: str, grant: str, call: Callable[[], T]) -> T:
        try:
            return self._retry.run(call, is_transient)
        except AWS_ERRORS as error:
            raise explained(error, action=action, resource=group, grant=grant) from error


def lacks_capacity(said: str) -> bool:
    """Whether the status of a failed launch says that EC2 has no capacity, or the quota no room."""
    return any(sign in said.lower() for sign in _NO_CAPACITY)


def _tag(group: str) -> dict[str, str]:
    return {"ResourceId": group, "ResourceType": "auto-scaling-group", "Key": STOPPED_TAG}


def _bounds_in(value: str) -> Bounds | None:
    """The bounds in a tag; a value that nobody of us wrote is as good as none."""
    parts = value.split("/")
    if len(parts) != 3 or not all(part.isdecimal() and part.isascii() for part in parts):
        return None
    bounds = Bounds(*map(int, parts))
    return bounds if bounds.minimum <= bounds.desired <= bounds.maximum else None


def _refused(error: Exception, group: str, action: str, grant: str) -> OperationError:
    why = f"{code_of(error)}: {error}"
    return AUTO_SCALING_REFUSED(where=group, why=why, action=action, grant=grant)
