"""Whether what a look at the sources of an empty cluster found is worth a node. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

_FIRST_PAUSE = timedelta(hours=1)
_LONGEST_PAUSE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found at one source, or for one schedule.

    Attributes:
        task: whose it is.
        waits: something waits there; None: it could not be looked at.
        why: for people.
        evidence: what waits: the same text as long as it is the same.
    """

    task: str
    waits: bool | None
    why: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Woken:
    """What a group was woken for last: a digest of the evidence, when, how often in a row."""

    evidence: str
    at: datetime
    times: int = 1

    @property
    def pause(self) -> timedelta:
        """How long the same evidence wakes it no more."""
        return min(_FIRST_PAUSE * (1 << min(self.times - 1, 5)), _LONGEST_PAUSE)

    def text(self) -> str:
        """As the value of a tag."""
        return f"{self.evidence} {self.times} {self.at.isoformat(timespec='seconds')}"

    @classmethod
    def of(cls, text: str) -> Woken | None:
        """What a tag says; None where it is damaged."""
        try:
            evidence, times, moment = text.split(" ")
            at, number = datetime.fromisoformat(moment), int(times)
        except ValueError:
            return None
        return None if at.tzinfo is None else cls(evidence, at, max(1, number))


@dataclass(frozen=True, slots=True)
class WakeDecision:
    """Whether to start a node, and why; `woken` is what to remember then."""

    reason: str
    woken: Woken | None = None


def decide(findings: Sequence[Finding], before: Woken | None, now: datetime) -> WakeDecision:
    """Decide for an empty group.

    A node that was started for something takes it, so that it does not wait any more. If it waits
    all the same, such as behind a task that fails, the next try comes after a pause, which grows. A
    source that could not be looked at starts no node.
    """
    waiting = [finding for finding in findings if finding.waits]
    if not waiting:
        return WakeDecision("none: nothing waits")
    reason = "; ".join(f"{finding.task}: {finding.why}" for finding in waiting)
    evidence = digest(waiting)
    again = before is not None and before.evidence == evidence
    if before is not None and again and now < before.at + before.pause:
        return WakeDecision(f"kept: a node was there for it, the next try comes later: {reason}")
    times = before.times + 1 if before is not None and again else 1
    return WakeDecision(reason, Woken(evidence, now, times))


def digest(waiting: Iterable[Finding]) -> str:
    """Sixteen hex digits that stand for what waits."""
    lines = sorted(f"{finding.task}\n{finding.evidence}" for finding in waiting)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def due_findings(due: Mapping[str, datetime], now: datetime) -> list[Finding]:
    """The schedules that are due."""
    return [
        Finding(task, waits=True, why=f"due since {moment.isoformat()}", evidence=str(moment))
        for task, moment in sorted(due.items())
        if moment <= now
    ]
