"""The errors that Polynya raises on purpose. Any other exception is a bug (exit code 70).

    PolynyaError
    ├── ConfigError        the user edits a file                 exit 2
    │   └── ConfigErrors   several of them at once
    ├── OperationError     a task, a check or a query failed     exit 1
    │   ├── SuspendedError   one dataset waits for a decision
    │   ├── TaskStoppedError a policy ended the task
    │   └── RefusedError     a server refuses a request
    ├── DataError          rows break an invariant               exit 1
    ├── DependencyError    Java, jars, catalog, source           exit 4, worth a retry
    ├── ConflictError      another owner moved the state         exit 5, worth a retry
    │   ├── FencedError      a newer owner has the table
    │   └── StaleStepError   another engine did; the step is retried
    └── InternalError      a bug in Polynya                      exit 70

Codes are stable; `polynya explain CODE` prints the page of a code
(`polynya.model.error_catalogue.codes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Self

# What programs may catch; the errors of single shards stay inside.
__all__ = [
    "ConfigError",
    "ConfigErrors",
    "ConflictError",
    "DataError",
    "DependencyError",
    "FencedError",
    "InternalError",
    "OperationError",
    "PolynyaError",
    "StaleStepError",
    "SuspendedError",
    "TaskStoppedError",
]


class PolynyaError(Exception):
    """An error with a code, a location, the state of the data and a fix.

    Args:
        code: stable identifier such as `POLYNYA-CFG-007`.
        message: what failed, in one sentence.
        where: `file:line:col`, or the name of the task, dataset or file concerned.
        state: what this means for the data: what is written, what is not.
        fix: the command or the edit that helps.
        why: the cause, when the message does not say it.
    """

    exit_code: ClassVar[int] = 1
    retryable: bool = False

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: str | None = None,
        state: str | None = None,
        fix: str | None = None,
        why: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.state = state
        self.fix = fix
        self.why = why

    def __str__(self) -> str:
        """One line: `file:line:col: message; fix`."""
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.message}" + (f"; {self.fix}" if self.fix else "")

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling: the keyword arguments live in `__dict__`."""
        return type(self), (self.code, self.message), self.__dict__

    def render(self) -> str:
        """Return the error as up to four lines for the user, without the empty ones."""
        lines = [f"error[{self.code}]: {self.message}"]
        if self.where:
            lines.append(f"  --> {self.where}")
        reasons = [self.why] if self.why else []
        if self.state:
            reasons.append(f"state of the data: {self.state}")
        if reasons:
            lines.append(f"  why: {'; '.join(reasons)}")
        page = f"polynya explain {self.code}"
        lines.append(f"  fix: {self.fix}; more: {page}" if self.fix else f"  more: {page}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return the error as one JSON-ready object; absent parts are left out."""
        parts = {
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "why": self.why,
            "state": self.state,
            "fix": self.fix,
        }
        shown: dict[str, object] = {key: value for key, value in parts.items() if value is not None}
        shown["retryable"] = self.retryable
        return shown


class ConfigError(PolynyaError):
    """Raised when the configuration or the command line is wrong; nothing was written."""

    exit_code = 2


class ConfigErrors(ConfigError):  # noqa: N818 - several of them, and says so
    """Raised with every error of a project at once, so that one round of editing fixes them all."""

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        self.errors: tuple[ConfigError, ...] = tuple(errors)
        if not self.errors:
            raise ValueError("ConfigErrors needs at least one error")
        noun = "error" if len(self.errors) == 1 else "errors"
        message = f"{len(self.errors)} {noun} in the configuration"
        super().__init__(self.errors[0].code, message)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.errors,)

    def render(self) -> str:
        """Return every error in the four-line form, then the count."""
        return "\n".join([*(error.render() for error in self.errors), self.message])


class OperationError(PolynyaError):
    """Raised when a task, a check or a query failed although the configuration is right."""


class SuspendedError(OperationError):
    """Raised for a dataset that waits for a decision; the others of its task continue."""


class TaskStoppedError(OperationError):
    """Raised when a policy of a dataset ends its whole task."""


class RefusedError(OperationError):
    """Raised when a server refuses a request for who sent it, or how.

    Attributes:
        status: the HTTP status of the answer.
        headers: headers of the answer.
    """

    status: int = 403
    headers: Mapping[str, str] = MappingProxyType({})

    def by(self, status: int, **headers: str) -> Self:
        """Return this error with its status and headers; `_` in a name of one stands for `-`."""
        self.status = status
        self.headers = {name.replace("_", "-"): text for name, text in headers.items()}
        return self


class DataError(PolynyaError):
    """Raised when rows break an invariant and cannot go to quarantine instead."""


class DependencyError(PolynyaError):
    """Raised when something outside cannot be reached: Java, jars, catalog, source."""

    exit_code = 4
    retryable = True


class ConflictError(PolynyaError):
    """Raised when another owner moved the state first; drop the task's state and reload it."""

    exit_code = 5
    retryable = True


class FencedError(ConflictError):
    """Raised when a newer owner has the table: drop all cached state of it.

    Attributes:
        epoch: the epoch that the table has now.
        owner: the owner that took it.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        epoch: int = 0,
        owner: str = "",
        where: str | None = None,
        state: str | None = None,
        fix: str | None = None,
        why: str | None = None,
    ) -> None:
        super().__init__(code, message, where=where, state=state, fix=fix, why=why)
        self.epoch = epoch
        self.owner = owner

    def by(self, *, epoch: int, owner: str = "") -> Self:
        """Return this error with the epoch and the owner that the table has now."""
        self.epoch = epoch
        self.owner = owner
        return self


class StaleStepError(ConflictError):
    """Raised when another engine's maintenance came between a step and its commit.

    The table has no other owner, and nothing of the step was written: retry it with the current
    state of the table.
    """


class InternalError(PolynyaError):
    """Raised when Polynya contradicts itself: a bug, to be reported."""

    exit_code = 70
