"""What is submitted for a unit: the arguments of `polynya`, and the labels by which it is known."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from polynya.cluster.unit import JobKey
from polynya.engine.verbs.unread import Unread
from polynya.store.job_runs import JobRuns, Label, Order

#: Without news a unit is run all the same after so many seconds: maintenance, retention.
IDLE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Submission:
    """The work of one unit for one owner.

    Attributes:
        job: the unit.
        runs: the service.
        service: its name for people.
        arguments: of `polynya`.
        warehouse: where its tables are: with the unit's name it says what a run works on.
        owner: who submits; different processes have different ones.
        epoch: that was granted, None where nodes share nothing.
        number: of this start of the job in the process.
        every_seconds: pause between two runs.
        look_seconds: time between two looks at a run.
        landed: something that changes when files land; None where each run is wanted.
        unread: the unread files of its datasets; None where nobody can tell.
        away: a service does the work, and more nodes make it no faster.
    """

    job: JobKey
    runs: JobRuns
    service: str
    arguments: tuple[str, ...]
    warehouse: str
    owner: str
    epoch: int | None
    number: int
    every_seconds: float
    look_seconds: float
    landed: Callable[[], str] | None = None
    unread: Callable[[], Unread] | None = None
    away: bool = False

    def label(self, ordinal: int) -> Label:
        """The label of the run with this ordinal: the same one whenever it is submitted again."""
        scope = _digest(self.warehouse, self.job.task, self.job.name)
        token = _digest(self.owner, str(self.number), str(ordinal), scope)
        return Label(scope[:12], self.epoch or 0, token[:16])

    def order(self, ordinal: int) -> Order:
        """What the service is asked for."""
        return Order(self.label(ordinal), f"{self.job.task}/{self.job.name}", self.arguments)


def arguments_of(
    job: JobKey, *, config: str, target: str, owner: str, epoch: int | None
) -> tuple[str, ...]:
    """The arguments by which `polynya` does the work of one unit."""
    granted = () if epoch is None else ("--epoch", str(epoch))
    where = ("--config", config, "--target", target)
    return ("run", job.task, "--unit", job.name, "--owner", owner, *granted, *where, "--json")


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
