"""Which jobs a node may run, and why not: pure functions of what its member knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from polynya.cluster.coordination.standing import Standing
from polynya.cluster.unit import JobKey

#: `elsewhere`: another node has the job, or will have; `stopped`: a person stopped its task;
#: `waiting`: this node does not know.
Where: TypeAlias = Literal["here", "elsewhere", "stopped", "waiting"]


@dataclass(frozen=True, slots=True)
class Right:
    """Whether a job may run here: in `epoch`, or not at all (None); and why."""

    where: Where
    reason: str
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of all jobs of a node.

    Attributes:
        grants: epoch by unit.
        reasons: why a unit was given to this node, or what it waits for.
        owners: the node that has a unit, as far as the others told.
        stopped: why a task stands still, by task.
        lapsed: why there are no grants at all, None when they hold.
    """

    grants: Mapping[JobKey, int] = field(default_factory=dict)
    reasons: Mapping[JobKey, str] = field(default_factory=dict)
    owners: Mapping[JobKey, str] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    lapsed: str | None = None

    def of(self, job: JobKey) -> Right:
        """The right of one job."""
        if job.task in self.stopped:
            return Right("stopped", self.stopped[job.task])
        if self.lapsed is not None:
            return Right("waiting", self.lapsed)
        reason = self.reasons.get(job)
        if job in self.grants:
            return Right("here", reason or "the cluster gave it to this node", self.grants[job])
        if job in self.owners:
            return Right("elsewhere", f"node {self.owners[job]} has it")
        return Right("elsewhere", reason or "another node has it, or will have it")


_NOT_YET: Final = "this node has no place in the cluster yet"
_LAPSED: Final = "the lease of this node could not be renewed: others may have its units"


def rights(
    standing: Standing | None,
    now: float,
    *,
    reasons: Mapping[JobKey, str],
    owners: Mapping[JobKey, str],
    stopped: Mapping[str, str],
) -> Rights:
    """The rights that follow from what the member knew last; `now` in seconds of its clock.

    A node that could not renew its lease for too long must believe that others have its units.
    """
    if standing is None or standing.state is None:
        return Rights(stopped=stopped, lapsed=_NOT_YET)
    if now >= standing.grants_until:
        return Rights(stopped=stopped, lapsed=_LAPSED)
    return Rights(
        grants=standing.grants,
        reasons={**reasons, **standing.waiting},
        owners=owners,
        stopped=stopped,
    )
