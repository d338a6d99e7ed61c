"""When to copy what has landed: a pure function from facts to a decision with its reason.

A commit costs much the same for one record as for a thousand. So while records trickle the number
of commits follows `batch.freshness`, not how often somebody looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polynya.engine.work.turns.unit import Turn
from polynya.formats.batch import FileProgress
from polynya.formats.files.discovery import Discovery
from polynya.model.config.settings import BatchSettings


@dataclass(frozen=True, slots=True)
class WaitingFacts:
    """What waits for a dataset, or for all that share its files.

    Attributes:
        size_bytes: size of the files that are not read, or not to their end.
        left_over: the last copy ended at a limit and left some of what had landed then.
        since_copy: seconds since the last copy of this process, None before the first.
    """

    size_bytes: int
    left_over: bool = False
    since_copy: float | None = None


@dataclass(frozen=True, slots=True)
class CopyDecision:
    """Whether to copy now, and why. `wait` is the seconds after which it will be time."""

    copy: bool
    reason: str
    wait: float = 0.0


def decide_copy(facts: WaitingFacts, batch: BatchSettings) -> CopyDecision:
    """Decide whether waiting files are copied now, or wait for more."""
    freshness, since = batch.freshness.total_seconds(), facts.since_copy
    if since is None:
        return CopyDecision(copy=True, reason="the first copy of this process")
    if facts.left_over:
        return CopyDecision(copy=True, reason="the last copy left some of what had landed")
    if facts.size_bytes >= batch.max_bytes:
        return CopyDecision(
            copy=True, reason=f"{facts.size_bytes} bytes are a batch of {batch.max_bytes}"
        )
    if since >= freshness:
        return CopyDecision(copy=True, reason=f"the last copy was {since:.0f} s ago")
    return CopyDecision(
        copy=False,
        reason=f"copied {since:.1f} s ago, and {facts.size_bytes} bytes may wait {freshness:g} s",
        wait=freshness - since,
    )


class Pace:
    """When a unit last copied, and whether that left something. Times in monotonic seconds."""

    def __init__(self, batch: BatchSettings) -> None:
        self._batch = batch
        self._copied_at: float | None = None
        self._left_over = False

    def decide(self, found: Discovery, turn: Turn, now: float) -> CopyDecision:
        """Whether to copy now what was found."""
        if turn.at_once:
            return CopyDecision(copy=True, reason="asked to copy all at once")
        since = None if self._copied_at is None else now - self._copied_at
        facts = WaitingFacts(found.size_bytes, self._left_over, since)
        return decide_copy(facts, self._batch)

    def copied(self, found: Discovery, files: Mapping[str, FileProgress], now: float) -> None:
        """Take note of a copy of what was found; `files` is how far each was read by now."""
        done = {path for path, progress in files.items() if progress.complete}
        self._copied_at = now
        self._left_over = any(part.path not in done for part in found.files)
