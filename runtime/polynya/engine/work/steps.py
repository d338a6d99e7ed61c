"""The steps of a dataset, each with its event: copy one batch, apply if it is worth it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from polynya.engine.work.context import EngineContext
from polynya.engine.work.evolution import evolve
from polynya.engine.work.policy import ApplyDecision, PendingFacts, decide
from polynya.engine.work.truce import wait_for_quiet
from polynya.engine.work.views import publish
from polynya.formats.batch import DatasetBatch, FileProgress
from polynya.formats.files.discovery import Discovery
from polynya.lake.apply.applier import ApplyResult
from polynya.lake.copy.copy import CopyResult, copy_batch
from polynya.lake.table import positions
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.replayed import Replayed
from polynya.lake.table.suspension import refuse_suspended
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import ApplyPolicy
from polynya.model.contract.headers import Partition
from polynya.model.errors import SuspendedError
from polynya.observe.events import Event


def subject_of(target: DatasetTable) -> str:
    """Name of a dataset in events: `schema.view`."""
    return target.dataset.relations.current


def opened(context: EngineContext, dataset: ResolvedDataset) -> DatasetTable:
    """The table of a dataset, with the views that it should have.

    The process before may have been killed between a commit and its views. If it was killed between
    a change of columns and the commit of the state, the next batch makes both.

    Raises ConflictError while another process that took the table over goes on with it.
    """
    target = DatasetTable.open(context.spark, dataset, context.owner)
    wait_for_quiet(context, target)
    shape = target.shape()
    if shape.data and set(shape.data) <= set(target.table.field_ids()):
        publish(context, target, shape)
    return target


def copy_step(
    context: EngineContext,
    target: DatasetTable,
    batch: DatasetBatch,
    live_files: Iterable[str] | None = None,
    replayed: Replayed | None = None,
) -> CopyResult:
    """Commit one batch and bring the views up to date.

    Raises SuspendedError or TaskStoppedError when a policy says that it may not be copied.
    """
    started = context.clock.monotonic()
    refuse_suspended(target)
    batch = evolve(context, target, batch)
    result = copy_batch(
        target,
        batch,
        context.applier,
        now=context.clock.now(),
        live_files=live_files,
        replayed=replayed,
    )
    if target.state.copy.schema:
        publish(context, target, target.shape())
    fields = {
        "rows_in": result.rows_in,
        "rows_out": result.rows_out,
        "rows_filtered": result.rows_filtered,
        "rows_quarantined": result.rows_quarantined,
        "files": len(batch.files),
        "seconds": round(context.clock.monotonic() - started, 3),
    }
    context.sink(Event("batch.copied", subject_of(target), fields))
    if result.applied is not None:
        tell_applied(context, target, result.applied)
    return result


def bring_up(
    context: EngineContext, target: DatasetTable, policy: ApplyPolicy, copy_all: Callable[[], None]
) -> None:
    """Copy what has landed, then apply what is worth it.

    A dataset that is suspended, or that `copy_all` suspends, is still applied as far as it was
    copied; then SuspendedError is raised.
    """
    suspended = None
    try:
        refuse_suspended(target)
        copy_all()
    except SuspendedError as error:
        suspended = error
    if not context.stop.is_set():
        apply_step(context, target, policy)
    if suspended is not None:
        raise suspended


def looked_at_again(context: EngineContext, target: DatasetTable) -> DatasetTable:
    """The table as it is now if it was suspended: somebody may have resumed it meanwhile."""
    if target.state.copy.suspended is None:
        return target
    return opened(context, target.dataset)


def tell_found(context: EngineContext, target: DatasetTable, found: Discovery) -> None:
    """Say what waits, and which files changed after they were copied.

    The new content of these is not read.
    """
    context.backlog.found(subject_of(target), found.files, context.clock.monotonic())
    for file in found.changed:
        fields = {"file": file.path, "size_bytes": file.size, "copied_bytes": file.was}
        context.sink(Event("file.changed", subject_of(target), fields))


def progress_of(target: DatasetTable) -> dict[str, FileProgress]:
    """Position of a dataset: how far each landed file was read."""
    return positions.read(target.state.copy.files)


def apply_step(context: EngineContext, target: DatasetTable, policy: ApplyPolicy) -> ApplyDecision:
    """Apply pending changes if the policy says so."""
    decision = decide(pending_facts(target, context.clock.now()), policy, context.apply_mode)
    if decision.apply and target.state.copy.reloading is not None:
        decision = ApplyDecision(
            apply=False, reason="a reload is under way, `polynya reload` ends it"
        )
    if not decision.apply:
        subject = subject_of(target)
        if context.waiting.get(subject) != decision.reason:
            context.waiting[subject] = decision.reason
            context.sink(Event("apply.skipped", subject, {"reason": decision.reason}))
        return decision
    result = context.applier.apply(
        target, target.shape(), reason=decision.reason, now=context.clock.now()
    )
    tell_applied(context, target, result)
    return decision


def tell_applied(context: EngineContext, target: DatasetTable, result: ApplyResult) -> None:
    """Say that an apply was committed, and what it did."""
    fields = {"reason": result.reason, "seconds": result.seconds, **result.rows}
    context.sink(Event("dataset.applied", subject_of(target), fields))


def pending_facts(target: DatasetTable, now: datetime) -> PendingFacts:
    """Facts about the pending changes of a dataset, out of file statistics."""
    pending = target.table.files(Partition.CHANGES, target.state.snapshot)
    if not pending:
        return PendingFacts(0, 0, 0, 0)
    current = target.table.files(Partition.CURRENT, target.state.snapshot)
    since = target.state.copy.pending_since
    return PendingFacts(
        rows=sum(file.rows for file in pending),
        size_bytes=sum(file.size_bytes for file in pending),
        files=len(pending),
        current_rows=sum(file.rows for file in current),
        age=max(now - datetime.fromisoformat(since), timedelta()) if since else None,
    )
