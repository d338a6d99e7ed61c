"""What a batch changes in the shape of its dataset: act on it before the batch is copied."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.engine.work.context import EngineContext
from polynya.engine.work.views import publish
from polynya.formats.batch import DatasetBatch
from polynya.formats.values.reshape import reshaped, truncates, without_truncates
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.reshape import reshape
from polynya.lake.table.state import Suspension
from polynya.lake.table.suspension import suspend
from polynya.model.config.evolution import SchemaChange, blocking, schema_changes
from polynya.model.errors import OperationError, TaskStoppedError
from polynya.observe.events import Event


def evolve(context: EngineContext, target: DatasetTable, batch: DatasetBatch) -> DatasetBatch:
    """The batch in the shape that its dataset has from now on.

    Raises SuspendedError or TaskStoppedError when a policy says that nothing of it may be copied.
    """
    changes = _changes(target, batch)
    if not changes:
        return batch
    halt = blocking(changes)
    if halt is not None:
        raise _halted(context, target, batch, halt)
    _tell(context, target, changes)
    done = [change for change in changes if change.policy == "apply"]
    renames = {str(c.old): str(c.new) for c in done if c.kind == "rename_column"}
    drops = [change.column for change in done if change.kind == "drop_column"]
    if renames or drops:
        reshape(target, renames, drops)
        publish(context, target, target.shape())
        batch = reshaped(batch, renames, drops)
    if any(c.kind == "truncate" and c.policy == "ignore" for c in changes):
        batch = without_truncates(batch)
    return batch


def _changes(target: DatasetTable, batch: DatasetBatch) -> list[SchemaChange]:
    policies = target.reading.policies.schema_evolution
    found = list(batch.changes)
    before = target.state.copy.declared
    if batch.declared is not None and before:
        found = schema_changes(
            before,
            batch.declared,
            known=target.known_schema(),
            now=batch.schema,
            keys=target.state.copy.keys,
            policies=policies,
            changes=found,
        )
    if truncates(batch):
        view = target.dataset.relations.view
        found.append(SchemaChange("truncate", view, policies.policy("truncate")))
    return found


def suspend_new(context: EngineContext, target: DatasetTable, source: str) -> None:
    """Let the dataset of a new source table wait for a decision."""
    change = SchemaChange("new_dataset", source, "suspend")
    suspend(target, Suspension(change.kind, str(change), source, context.clock.now().isoformat()))


def _halted(
    context: EngineContext, target: DatasetTable, batch: DatasetBatch, change: SchemaChange
) -> OperationError:
    where = ", ".join(list(batch.files)[:3])
    if change.policy == "suspend":
        since = context.clock.now().isoformat()
        suspension = Suspension(change.kind, str(change), where, since)
        return suspend(target, suspension, called=batch.called)
    dataset = target.dataset
    return TaskStoppedError(
        "POLYNYA-LAKE-018",
        f"{dataset.relations.current}: {change}, and its policy for that is `stop`",
        where=where,
        state="nothing of this batch was copied; its files stay where they are",
        fix=f"change the source back, or `schema_evolution.{change.kind}` of the dataset",
    )


def _tell(context: EngineContext, target: DatasetTable, changes: Sequence[SchemaChange]) -> None:
    """Say what changed; of what is ignored only once, since it comes with every batch."""
    subject = target.dataset.relations.current
    for change in changes:
        key = f"{subject} {change}"
        if change.kind == "truncate" or (change.policy == "ignore" and key in context.waiting):
            continue
        context.waiting[key] = change.policy
        fields = {"change": change.kind, "policy": change.policy, "says": str(change)}
        context.sink(Event("schema.changed", subject, fields))
