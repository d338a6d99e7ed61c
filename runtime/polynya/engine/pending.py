"""The pending changes of a dataset: facts, whether to apply, and why copies wait for an apply."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from polynya.engine.context import EngineContext
from polynya.engine.policy import (
    ApplyDecision,
    PendingFacts,
    decide,
    goes_with_a_copy,
    wait_for_apply,
    with_spread_age,
)
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.settings import ApplyPolicy
from polynya.model.headers import Partition
from polynya.observe.engine import ApplySkipped
from polynya.observe.events import CopyWaiting


def pending_facts(table: DatasetTable, now: datetime) -> PendingFacts:
    """Facts about the pending changes of a dataset, from file statistics."""
    state = table.state
    pending = table.table.files(Partition.CHANGES, state.snapshot)
    if not pending:
        return PendingFacts(0, 0, 0, 0, history=table.dataset.kept.history)
    current = table.table.files(Partition.CURRENT, state.snapshot)
    since = state.copy.pending_since(state.apply)
    return PendingFacts(
        rows=sum(file.rows for file in pending),
        size_bytes=sum(file.size_bytes for file in pending),
        files=len(pending),
        current_rows=sum(file.rows for file in current),
        current_bytes=sum(file.size_bytes for file in current),
        age=max(now - since, timedelta()) if since else None,
        history=table.dataset.kept.history,
    )


def reason_to_apply(
    context: EngineContext, table: DatasetTable, policy: ApplyPolicy, rows: int, size_bytes: int
) -> str | None:
    """Why all that is pending is applied by the commit that copies a batch, None when it is not.

    `rows` and `size_bytes`, in memory, are those of the batch. None too where the apply is a long
    step, which gets a time slice of its own.
    """
    facts = pending_facts(table, context.clock.now())
    current = table.table.files(Partition.CURRENT, table.state.snapshot)
    facts = replace(
        facts,
        current_rows=sum(file.rows for file in current),
        current_bytes=sum(file.size_bytes for file in current),
    )
    if table.state.copy.reloading is not None or not goes_with_a_copy(facts, rows, size_bytes):
        return None
    facts = replace(facts, rows=facts.rows + rows, files=facts.files + 1)
    policy = with_spread_age(policy, table.dataset.relations.current)
    decision = decide(facts, policy, context.apply_mode)
    return decision.reason if decision.apply else None


def apply_decision(
    context: EngineContext, table: DatasetTable, policy: ApplyPolicy
) -> ApplyDecision:
    """Whether to apply pending changes now; a reason against it is reported once."""
    facts, name = pending_facts(table, context.clock.now()), table.dataset.relations.current
    context.backlog.pending(name, facts.rows)
    decision = decide(facts, policy, context.apply_mode)
    reloading = table.state.copy.reloading
    if decision.apply and reloading is not None:
        reason = "a reload is under way, `polynya reload` ends it"
        if reloading.scheduled is not None:
            reason = "a scheduled load of the table is under way"
        decision = ApplyDecision(apply=False, reason=reason)
    reason = decision.reason
    if not decision.apply and context.is_news(f"{name} is not applied", reason):
        context.sink(ApplySkipped(subject=name, reason=reason))
    return decision


def why_copies_wait(context: EngineContext, table: DatasetTable, policy: ApplyPolicy) -> str | None:
    """Why the next copy waits for an apply, None when it need not; reported once.

    A reload holds the apply up, and is not held up by what waits for that.
    """
    why, name = None, table.dataset.relations.current
    if table.state.copy.reloading is None:
        facts = pending_facts(table, context.clock.now())
        context.backlog.pending(name, facts.rows)
        why = wait_for_apply(facts, policy, context.apply_mode)
    if context.is_news(f"{name} waits for its apply", "yes" if why else "no") and why:
        context.sink(CopyWaiting(subject=name, reason=why))
    return why
