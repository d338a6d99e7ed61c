"""Whether a release that was deployed to an empty group boots: facts in, verdict and reason out.

A group with nodes tries a new release while it is deployed: its instance refresh fails. An empty
group has nothing to refresh, so its deployment succeeds whatever it ships. One node is asked for
then, and `judge` says what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from polynya.store.aws.auto_scaling import lacks_capacity

MOST_SECONDS: Final = 15 * 60
"""How long a trial waits; a node has ten minutes for its boot (`_LAUNCH_SECONDS` of a cluster)."""

_GAVE_UP: Final = "failed to complete user's lifecycle action"
"""In the status of a launch whose hook was abandoned, or timed out, in lower case (AWS knowledge
center, lifecycle-actions-code-deploy)."""


@dataclass(frozen=True, slots=True)
class Release:
    """What a group launches.

    Attributes:
        created: when this version of the launch template was; nodes before it ran another one.
        code: beginning of the code, as failed boots are counted; None of a boot of the user's.
        log_group: where nodes log; None of a boot of the user's.
        configuration: bucket and prefix of the project; None of a boot of the user's.
    """

    created: datetime
    code: str | None = None
    log_group: str | None = None
    configuration: tuple[str, str] | None = None


class LaunchState(StrEnum):
    """What became of a launch."""

    UNDER_WAY = "under way"
    IN_SERVICE = "in service"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NodeLaunch:
    """An attempt of Auto Scaling to start a node.

    Attributes:
        activity: its id.
        node: instance that it started; None without one.
        state: what became of it.
        said: why, in the words of Auto Scaling.
    """

    activity: str
    node: str | None
    state: LaunchState
    said: str = ""


@dataclass(frozen=True, slots=True)
class FailedBoot:
    """What a node reported that did not boot.

    Attributes:
        step: in which step of the boot.
        reason: what failed.
        counted: whether the release is to blame; not while the project has no configuration.
    """

    step: str
    reason: str
    counted: bool = True


@dataclass(frozen=True, slots=True)
class GroupSight:
    """What is seen of a group at one moment.

    Attributes:
        maximum: nodes that it may have.
        serving: nodes in service.
        booting: nodes that start.
        launches: of this release, the newest first.
        suspended: whether the process `Launch` is suspended.
        held_for: the code for which the function of figures did so; None if it did not.
        stopped: whether `polynya cluster stop` stopped the group.
    """

    maximum: int
    serving: tuple[str, ...] = ()
    booting: tuple[str, ...] = ()
    launches: tuple[NodeLaunch, ...] = ()
    suspended: bool = False
    held_for: str | None = None
    stopped: bool = False


class TrialResult(StrEnum):
    """What is known about a release."""

    WAIT = "wait"
    NOT_NEEDED = "not needed"
    BOOTED = "booted"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known, why, and by which node."""

    result: TrialResult
    why: str
    node: str | None = None


NOTHING_PUSHED: Final = Verdict(
    TrialResult.UNDECIDED, "its nodes need a first `polynya config push`"
)
_HELD: Final = Verdict(
    TrialResult.FAILED, "three of its nodes did not boot, and launches of the group are suspended"
)


def why_no_trial(sight: GroupSight, release: Release | None = None) -> Verdict | None:
    """The verdict on a group that is asked for no node; None: a node is to try the release.

    Args:
        sight: the group.
        release: what it launches; None while that is not known yet.
    """
    if sight.serving:
        return Verdict(TrialResult.NOT_NEEDED, "it has nodes, which the deployment replaced")
    if any(launch.state is LaunchState.IN_SERVICE for launch in sight.launches):
        return Verdict(TrialResult.NOT_NEEDED, "a node of this release has booted before")
    if _is_held(release, sight):
        return _HELD
    if sight.stopped:
        return Verdict(TrialResult.UNDECIDED, "`polynya cluster stop` stopped it")
    if sight.maximum < 1:
        return Verdict(TrialResult.UNDECIDED, "a schedule allows no node now")
    if sight.suspended and sight.held_for is None:
        return Verdict(TrialResult.UNDECIDED, "somebody suspended its process `Launch`")
    return None


def ended(sight: GroupSight) -> frozenset[str]:
    """The launches that had ended when a trial began: they say nothing about it."""
    return frozenset(
        launch.activity for launch in sight.launches if launch.state is not LaunchState.UNDER_WAY
    )


def tried_nodes(sight: GroupSight, before: Set[str]) -> tuple[str, ...]:
    """The nodes that may have reported since then; `before` are launches that do not count."""
    launched = [each.node for each in sight.launches if each.activity not in before]
    return tuple(dict.fromkeys(node for node in [*launched, *sight.booting] if node is not None))


def judge(
    release: Release,
    sight: GroupSight,
    failed_boots: Mapping[str, FailedBoot],
    *,
    before: Set[str],
    waited: float,
) -> Verdict:
    """What a group says about a release of which it was asked for a node.

    Args:
        release: what the group launches.
        sight: the group now.
        failed_boots: by node, what `tried_nodes` reported.
        before: launches that do not count: those of `ended` when the trial began.
        waited: seconds since then.
    """
    if sight.serving:
        return Verdict(TrialResult.BOOTED, "is in service", sight.serving[0])
    launches = [launch for launch in sight.launches if launch.activity not in before]
    for launch in launches:
        if launch.state is LaunchState.IN_SERVICE:
            return Verdict(TrialResult.BOOTED, "was in service", launch.node)
    for node in tried_nodes(sight, before):
        if (boot := failed_boots.get(node)) is not None:
            return _reported(boot, node)
    for launch in launches:
        if launch.state is LaunchState.FAILED and _GAVE_UP in launch.said.lower():
            return Verdict(TrialResult.FAILED, f"it reported nothing; {launch.said}", launch.node)
    if _is_held(release, sight):
        return _HELD
    if waited < MOST_SECONDS:
        return Verdict(TrialResult.WAIT, "no node is ready yet")
    return _too_late(sight, launches)


def _is_held(release: Release | None, sight: GroupSight) -> bool:
    """Whether launches are suspended for this release; for another one they are soon resumed."""
    code = release.code if release is not None else None
    return code is not None and sight.suspended and sight.held_for == code


def _reported(boot: FailedBoot, node: str) -> Verdict:
    why = f"{boot.step}: {boot.reason}"
    if boot.counted:
        return Verdict(TrialResult.FAILED, why, node)
    return Verdict(TrialResult.UNDECIDED, f"{NOTHING_PUSHED.why} ({why})", node)


def _too_late(sight: GroupSight, launches: list[NodeLaunch]) -> Verdict:
    """The verdict when the time is over: no node has booted, and none has failed to."""
    minutes = MOST_SECONDS // 60
    if sight.booting:
        why = f"started late, and is not ready after {minutes} minutes"
        return Verdict(TrialResult.UNDECIDED, why, sight.booting[0])
    refused = next((one for one in launches if one.state is LaunchState.FAILED), None)
    if refused is None:
        why = f"Auto Scaling started no node within {minutes} minutes"
        return Verdict(TrialResult.UNDECIDED, why)
    if lacks_capacity(refused.said):
        why = f"EC2 started no node within {minutes} minutes, for lack of capacity: {refused.said}"
        return Verdict(TrialResult.UNDECIDED, why)
    return Verdict(TrialResult.FAILED, f"EC2 starts no node: {refused.said}", refused.node)
