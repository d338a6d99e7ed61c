"""Events of work that an agent submits to a service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from polynya.model.errors import PolynyaError
from polynya.observe.events import Event, Level, line, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunStarted(Event):
    """A run was submitted, and the service has it. `label` is its name there."""

    type: ClassVar[str] = "job_run.started"
    service: str
    run: str
    label: str

    def text(self) -> str:
        """See `Event`."""
        return line("submit", self.subject, f"run {self.run} of {self.service}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunEnded(Event):
    """A run has ended: `succeeded`, `failed` or `cancelled`, so long after it was submitted."""

    type: ClassVar[str] = "job_run.ended"
    service: str
    run: str
    state: str
    why: str
    seconds: float

    def text(self) -> str:
        """See `Event`."""
        why = f": {self.why}" if self.why else ""
        return line("submit", self.subject, f"run {self.run} {self.state}{why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunCancelled(Event):
    """The service was asked to end a run."""

    type: ClassVar[str] = "job_run.cancelled"
    service: str
    run: str
    reason: str

    def text(self) -> str:
        """See `Event`."""
        return line("submit", self.subject, f"run {self.run} is cancelled: {self.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunTrouble(Event):
    """The service refuses, or does not answer; said once."""

    type: ClassVar[str] = "job_run.trouble"
    service: str
    error: PolynyaError

    @property
    def level(self) -> Level:
        """See `Event`."""
        return Level.WARNING

    def figures(self) -> Mapping[str, Any]:
        """The service, and code and message of the error."""
        return {"service": self.service, "code": self.error.code, "message": str(self.error)}

    def text(self) -> str:
        """See `Event`."""
        return line("submit", self.subject, one_line(self.error))
