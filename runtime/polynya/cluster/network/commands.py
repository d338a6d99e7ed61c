"""Commands for a group of machines: the next step of each, and the phase of the group. Pure.

`decide` gets a command and the present state of its group, again and again until the command has
ended. So a crash between a request to AWS and its record needs no repair: the group shows whether
the request arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from polynya.cluster.network.documents import KINDS, TAKEN_WITHIN, ClusterCommand
from polynya.store.jobs import Bounds, GroupFacts, NodeGroups


class GroupRequest(StrEnum):
    """A request to the group. The values are the steps that a command has stored."""

    REMEMBER = "remember"
    FORGET = "forget"
    HOLD = "hold"
    RELEASE = "release"
    BOUND = "bound"
    WANT = "want"
    ROLL = "roll"


_NO_NODES: Final = Bounds(0, 0, 0)

#: A command that was taken ends after so long in any case. A large group takes its time to roll.
_DONE_WITHIN: Final = timedelta(hours=1)
#: A node that is there for so long after a wake has looked for what waits; nodes do so every 10 s.
_SURELY_SEEN: Final = timedelta(seconds=30)
_ROLLED_WITHIN: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Take:
    """Take the command; `refresh` is the newest one of the group before any request."""

    refresh: str | None
    reason: str = "a network agent has taken it"


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this request to the group, with the `bounds` or the `desired` number that it takes."""

    request: GroupRequest
    reason: str
    bounds: Bounds = _NO_NODES
    desired: int = 0

    def send(self, groups: NodeGroups, group: str) -> None:
        """Send it. Raises what `NodeGroups` raises."""
        match self.request:
            case GroupRequest.REMEMBER:
                groups.remember(group, self.bounds)
            case GroupRequest.FORGET:
                groups.forget(group)
            case GroupRequest.HOLD:
                groups.hold(group)
            case GroupRequest.RELEASE:
                groups.release(group)
            case GroupRequest.BOUND:
                groups.bound(group, self.bounds)
            case GroupRequest.WANT:
                groups.want(group, self.desired)
            case GroupRequest.ROLL:
                groups.roll(group)


@dataclass(frozen=True, slots=True)
class Wait:
    """There is nothing to do now."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """The command has ended."""

    state: Literal["done", "failed", "refused"]
    reason: str


Next: TypeAlias = Take | Ask | Wait | End


def decide(
    command: ClusterCommand, facts: GroupFacts | None, newer: ClusterCommand | None, now: datetime
) -> Next:
    """What is next.

    Args:
        command: an open one.
        facts: its group, None when there is none.
        newer: the newest later `stop` or `start` that was taken.
        now: the wall clock.
    """
    if command.state == "pending":
        return _of_pending(command, facts, newer, now)
    if facts is None or facts.deleting:
        return End("failed", "the group no longer exists")
    if newer is not None and _overtakes(newer, command):
        return End("failed", f"{newer.text()} by {newer.by} came before it was through")
    step = _STEPS[command.kind](command, facts)
    if command.kind == "wake" and isinstance(step, End) and now - command.since < _SURELY_SEEN:
        step = Wait(f"{step.reason}; it may go before it looks")
    if isinstance(step, Ask) and step.request in command.steps:
        step = Wait(f"the group does not show it yet: {step.reason}")
    return _within(command, step, now)


def _overtakes(newer: ClusterCommand, command: ClusterCommand) -> bool:
    """A stop ends whatever was before it, a start only what it contradicts."""
    return newer.kind == "stop" or command.kind in ("stop", "start")


def _within(command: ClusterCommand, step: Next, now: datetime) -> Next:
    longest = _ROLLED_WITHIN if command.kind == "roll" else _DONE_WITHIN
    began = command.taken_at or command.since
    if isinstance(step, End) or now - began < longest:
        return step
    hours = longest // timedelta(hours=1)
    return End("failed", f"not through after {hours} hour{'s' * (hours > 1)}: {step.reason}")


def _of_pending(
    command: ClusterCommand, facts: GroupFacts | None, newer: ClusterCommand | None, now: datetime
) -> Next:
    if command.kind not in KINDS:
        known = ", ".join(KINDS)
        return End("refused", f"unknown to this network agent, which knows {known}: upgrade it")
    if now - command.since > TAKEN_WITHIN:
        return End("refused", f"no network agent took it within {TAKEN_WITHIN}; give it again")
    if facts is None:
        return End("refused", "the cluster has no Auto Scaling group of its name")
    if facts.deleting:
        return End("refused", "the group is being deleted")
    if newer is not None and _overtakes(newer, command):
        return End("refused", f"{newer.text()} by {newer.by} came later")
    why = _impossible(command, facts)
    if why is not None:
        return End("refused", why)
    return Take(facts.refresh.name if facts.refresh is not None else None)


def _impossible(command: ClusterCommand, facts: GroupFacts) -> str | None:
    bounds, refresh = facts.bounds, facts.refresh
    if command.kind in ("roll", "scale", "wake") and facts.is_stopped:
        return "the cluster is stopped: start it first"
    if command.kind == "roll":
        if bounds.desired == 0 and facts.in_service == 0:
            return "it has no node; its next one has the newest template anyway"
        if refresh is not None and refresh.state == "running":
            return f"its nodes are being replaced already, {refresh.percent} % so far"
    if command.kind == "scale":
        if command.nodes is None:
            return "it does not say how many nodes"
        if not bounds.minimum <= command.nodes <= bounds.maximum:
            allowed = f"{bounds.minimum} to {bounds.maximum}"
            return f"the group may have {allowed} nodes: change the stage file and deploy"
    if command.kind == "wake" and bounds.maximum == 0:
        return "its group may have no nodes now"
    if command.kind == "start" and bounds.maximum == 0 and facts.stopped is None:
        return (
            "it was not stopped, and its group may have no nodes: change the stage file and deploy"
        )
    return None


def _stop(_command: ClusterCommand, facts: GroupFacts) -> Next:
    if not facts.is_stopped:
        now, kept = facts.bounds, facts.stopped
        if kept is None or (kept.minimum, kept.maximum) != (now.minimum, now.maximum):
            if now.maximum == 0:
                return End("done", "the group may have no nodes already")
            kept_text = f"{now.minimum} to {now.maximum} nodes"
            reason = f"its bounds are kept for a start: {kept_text}"
            return Ask(GroupRequest.REMEMBER, reason, bounds=now)
        if not facts.held:
            return Ask(GroupRequest.HOLD, "no schedule starts it")
        return Ask(GroupRequest.BOUND, "it may have no nodes", bounds=_NO_NODES)
    left = facts.in_service + facts.starting + facts.ending
    if left:
        return Wait(f"{left} node{'s' * (left > 1)} hand their work over and end")
    return End("done", "no node is left")


def _start(command: ClusterCommand, facts: GroupFacts) -> Next:
    bounds, kept = facts.bounds, facts.stopped
    if kept is not None and bounds.maximum == 0:
        again = Bounds(kept.minimum, kept.maximum, max(kept.desired, 1))
        reason = f"it may have {kept.minimum} to {kept.maximum} nodes again"
        return Ask(GroupRequest.BOUND, reason, bounds=again)
    if facts.held:
        return Ask(GroupRequest.RELEASE, "schedules hold again")
    if kept is not None:
        return Ask(GroupRequest.FORGET, "it is not stopped")
    if bounds.desired == 0:
        if {GroupRequest.WANT, GroupRequest.BOUND} & set(command.steps):
            return End("done", "it was started; its strategy has taken its nodes away since")
        return Ask(GroupRequest.WANT, "it had no node", desired=1)
    return _until(facts, bounds.desired)


def _wake(command: ClusterCommand, facts: GroupFacts) -> Next:
    if facts.is_stopped:
        return End("failed", "the cluster was stopped")
    desired = facts.bounds.desired
    if desired == 0:
        if GroupRequest.WANT in command.steps:
            return End("done", "it was woken; its strategy has taken its nodes away since")
        return Ask(GroupRequest.WANT, "it had no node", desired=1)
    return _until(facts, desired)


def _scale(command: ClusterCommand, facts: GroupFacts) -> Next:
    desired, wanted = facts.bounds.desired, command.nodes
    if wanted is None:
        return End("failed", "it does not say how many nodes")
    if desired != wanted:
        if GroupRequest.WANT in command.steps:
            return End("done", f"it was set; since then it was changed to {desired}")
        reason = f"{desired} nodes were wanted, {wanted} are now"
        return Ask(GroupRequest.WANT, reason, desired=wanted)
    return _until(facts, wanted)


def _roll(command: ClusterCommand, facts: GroupFacts) -> Next:
    refresh = facts.refresh
    if refresh is None or refresh.name == command.refresh:
        return Ask(GroupRequest.ROLL, "each node is replaced")
    if refresh.state == "running":
        return Wait(f"{refresh.percent} % are replaced")
    if refresh.state == "failed":
        return End("failed", f"the replacement ended: {refresh.reason}")
    return End("done", "all nodes are replaced")


def _until(facts: GroupFacts, wanted: int) -> Next:
    if facts.in_service != wanted:
        failed = facts.failed_launch
        why = f"; the newest launch failed: {failed.reason}" if failed is not None else ""
        return Wait(f"{facts.in_service} of {wanted} nodes are in service{why}")
    return End("done", f"{wanted} node{'s' * (wanted != 1)} in service")


_STEPS: Final = {"stop": _stop, "start": _start, "scale": _scale, "roll": _roll, "wake": _wake}


Phase: TypeAlias = Literal[
    "serving", "empty", "deploying", "deploy-failed", "pending", "short", "stopping", "stopped",
    "deleting",
]  # fmt: skip


def phase_of(facts: GroupFacts) -> tuple[Phase, str]:
    """The phase of a group, and why.

    `pending`: AWS has no machines; `short`: launches fail for another reason while nodes serve;
    `deploy-failed`: none serves, or a replacement ended too early, and an operator has to act.
    """
    left = facts.in_service + facts.starting + facts.ending
    if facts.deleting:
        return "deleting", f"the group is being deleted, it has {_nodes(left)}"
    if facts.is_stopped:
        if left:
            return "stopping", f"{_nodes(left)} hand their work over and end"
        return "stopped", "an operator stopped it"
    wanted, refresh = facts.bounds.desired, facts.refresh
    if refresh is not None and refresh.state == "running":
        return "deploying", f"its nodes are being replaced, {refresh.percent} % so far"
    if wanted == 0:
        return "empty", "its strategy wants no node now"
    if facts.in_service >= wanted:
        return "serving", f"{_nodes(wanted)} in service"
    return _missing(facts, f"{facts.in_service} of {_nodes(wanted)} in service")


def _missing(facts: GroupFacts, served: str) -> tuple[Phase, str]:
    failed, refresh = facts.failed_launch, facts.refresh
    if failed is not None and failed.capacity:
        return "pending", f"{served}; AWS has no more: {failed.reason}"
    if refresh is not None and refresh.state == "failed":
        return "deploy-failed", f"{served}; the replacement of nodes ended: {refresh.reason}"
    if failed is not None:
        phase: Phase = "short" if facts.in_service else "deploy-failed"
        return phase, f"{served}; the newest launch failed: {failed.reason}"
    return ("serving" if facts.in_service else "deploying"), f"{served}, the others are starting"


def _nodes(number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'}"
