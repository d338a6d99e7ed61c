"""Runs of a job service as a port: submit one, look at it, find it again, cancel it.

A run has a label that says what it works on and who submitted it. By it a submission whose answer
was lost is found again, and what an earlier process left behind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

#: No run lives longer: a label is not looked for further back, in hours.
MOST_HOURS: Final = 12
_LABEL: Final = re.compile(r"polynya-([0-9a-f]{12})-(\d{1,18})-([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Label:
    """What identifies a submission.

    Attributes:
        scope: 12 hex digits of what it works on.
        epoch: in which; 0 where nodes share nothing.
        token: 16 hex digits, another one for each submission.
    """

    scope: str
    epoch: int
    token: str

    def __str__(self) -> str:
        """At most 64 characters of `[a-z0-9-]`."""
        return f"polynya-{self.scope}-{self.epoch}-{self.token}"


def label_in(text: str) -> Label | None:
    """The label at the start of a text, None when it has none."""
    found = _LABEL.match(text)
    return Label(found[1], int(found[2]), found[3]) if found else None


class RunState(StrEnum):
    """How a run is."""

    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RunSeen:
    """A run as its service shows it. `why` says more of a failure; `exit_code` if it is known."""

    id: str
    label: Label | None
    state: RunState
    why: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: `arguments` of `polynya`, and a title for people."""

    label: Label
    title: str
    arguments: Sequence[str]


class JobRuns(Protocol):
    """Runs of one service. All methods raise DependencyError when it refuses or does not answer."""

    def submit(self, order: Order) -> str:
        """Begin a run and return its id. After an error it may have begun all the same."""
        ...

    def look(self, run: str) -> RunSeen:
        """How a run is now."""
        ...

    def recent(self, scope: str) -> Sequence[RunSeen]:
        """The runs with a label of this scope, finished or not, of the last MOST_HOURS."""
        ...

    def cancel(self, run: str) -> None:
        """Ask it to end. No error when it has ended already."""
        ...


_EXIT_CODE: Final = re.compile(r"(?:exit ?code|SystemExit)\W{1,3}(\d{1,3})\b", re.IGNORECASE)


def exit_code_in(text: str) -> int | None:
    """The exit code of the process that a message of a service names."""
    found = _EXIT_CODE.search(text)
    return int(found[1]) if found else None
