"""When to apply, and when copies wait for that: from facts to a decision with its reason, purely.

Semantics section 8.

An apply costs a scan of the keys of Current, so it should be worth it; a query pays for pending
changes, so they should not pile up. Sources of the default figures: docs/adr/0010-when-to-apply.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from polynya.model.config.settings import ApplyPolicy

#: Landed text is so many times as large as the pending changes that it becomes. An apply folds and
#: writes each of them.
_LANDED_OF_PENDING: Final = 4
#: Of Current an apply reads the keys, and what matched.
_STORED_OF_READ: Final = 16

ApplyMode = Literal["policy", "always", "never"]


@dataclass(frozen=True, slots=True)
class PendingFacts:
    """Pending Changes of one dataset and the size of its Current.

    `age` is None without pending changes.
    """

    rows: int
    size_bytes: int
    files: int
    current_rows: int
    age: timedelta | None = None
    current_bytes: int = 0

    @property
    def work_bytes(self) -> int:
        """Landed bytes that a copy takes in about the time that the apply takes."""
        return self.size_bytes * _LANDED_OF_PENDING + self.current_bytes // _STORED_OF_READ


@dataclass(frozen=True, slots=True)
class ApplyDecision:
    """Whether to apply, and why or why not."""

    apply: bool
    reason: str


def decide(facts: PendingFacts, policy: ApplyPolicy, mode: ApplyMode = "policy") -> ApplyDecision:
    """Decide whether pending changes are applied now."""
    if facts.rows == 0:
        return ApplyDecision(apply=False, reason="nothing is pending")
    if mode == "always":
        return ApplyDecision(apply=True, reason="asked to apply always")
    if mode == "never":
        return ApplyDecision(apply=False, reason="asked to apply never")
    enough = _enough_rows(facts, policy)
    limits = [
        (facts.rows >= enough, f"{facts.rows} pending rows reached {enough}"),
        (
            facts.size_bytes >= policy.max_pending_bytes,
            f"{facts.size_bytes} pending bytes reached {policy.max_pending_bytes}",
        ),
        (
            facts.files >= policy.max_pending_files,
            f"{facts.files} pending files reached {policy.max_pending_files}",
        ),
        (
            facts.age is not None and facts.age >= policy.max_pending_age,
            f"the oldest pending change is {_seconds(facts.age)} old",
        ),
    ]
    for reached, reason in limits:
        if reached:
            return ApplyDecision(apply=True, reason=reason)
    return ApplyDecision(
        apply=False,
        reason=f"{facts.rows} pending rows of {enough}, "
        f"{facts.files} files of {policy.max_pending_files}",
    )


def wait_for_apply(
    facts: PendingFacts, policy: ApplyPolicy, mode: ApplyMode = "policy"
) -> str | None:
    """Why copies wait for the apply, which cannot follow; None: they go on.

    An apply and a query pay for each pending change, so they are not to pile up without end. Where
    nothing is ever applied there is nothing to wait for.
    """
    if mode == "never":
        return None
    times = policy.copies_wait_at
    limits = [
        ("rows", facts.rows, _enough_rows(facts, policy)),
        ("bytes", facts.size_bytes, policy.max_pending_bytes),
        ("files", facts.files, policy.max_pending_files),
    ]
    for name, pending, limit in limits:
        if pending >= times * limit:
            return f"{pending:,} pending {name} are {times} times {limit:,}"
    return None


def _enough_rows(facts: PendingFacts, policy: ApplyPolicy) -> int:
    return max(policy.max_pending_rows, int(policy.min_fraction * facts.current_rows))


def _seconds(age: timedelta | None) -> str:
    return f"{age.total_seconds():.0f} s" if age is not None else "unknown"
