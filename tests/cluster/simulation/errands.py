"""What people ask of units, as a process meets it: real wishes, and what a supervisor does."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.cluster.control.requests import FinishedRequest, PendingRequest, UnitRequests
from polynya.cluster.unit import JobKey
from tests.cluster.simulation.work import Job


class Errands:
    """Of one process. What is asked is begun by `due`, and settled once."""

    def __init__(self, requests: UnitRequests) -> None:
        self._requests = requests
        self._asked: Mapping[JobKey, PendingRequest] = {}
        self._settled: dict[JobKey, str] = {}

    def read(self) -> None:
        """Tell what became of them, and see what is asked by now."""
        self._requests()

    def confirm(self, grants: Mapping[JobKey, int]) -> None:
        """See what is asked of the units that are ours."""
        self._asked = self._requests.confirmed(grants)

    def due(self, unit: JobKey) -> PendingRequest | None:
        """What is to be done with a unit before its work goes on."""
        asked = self._asked.get(unit)
        return None if asked is None or asked.nonce == self._settled.get(unit) else asked

    def takes_turns(self, job: Job, *, held: bool) -> bool:
        """Whether a job ends for what is asked, or because that was withdrawn."""
        due = self.due(job.unit)
        return due is None if job.asked is not None else due is not None and not held

    def ended(self, job: Job) -> None:
        """A job did what was asked, or cannot, or neither."""
        if job.asked is None or job.carried_out is None:
            return
        self._settled[job.unit] = job.asked.nonce
        text = "done" if job.carried_out else "it cannot be"
        self._requests.settle(
            FinishedRequest(job.unit, job.asked, job.carried_out, text, job.epoch)
        )
