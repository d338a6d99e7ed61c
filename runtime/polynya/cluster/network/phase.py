"""How a group is, in a word and a reason: a pure function of what AWS says of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from polynya.store.node_groups import GroupFacts

Phase: TypeAlias = Literal[
    "serving", "empty", "deploying", "deploy-failed", "pending", "short", "stopping", "stopped",
    "deleting",
]  # fmt: skip


def phase_of(facts: GroupFacts) -> tuple[Phase, str]:
    """The phase of a group, and why.

    `pending`: AWS has no machines; `short`: launches fail for another reason while nodes serve;
    `deploy-failed`: none serves, or a replacement ended too early, and somebody has to act.
    """
    left = facts.in_service + facts.starting + facts.ending
    if facts.deleting:
        return "deleting", f"the group is being deleted, it has {_nodes(left)}"
    if facts.is_stopped:
        if left:
            return "stopping", f"{_nodes(left)} hand their work over and end"
        return "stopped", "somebody stopped it"
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
