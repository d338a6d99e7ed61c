"""What a batch changes in the shape of its dataset, and what the policies say to that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from polynya.engine.work.context import EngineContext
from polynya.formats.batch import DatasetBatch
from polynya.formats.sources.key_names import key_columns
from polynya.formats.values.reshape import reshaped, truncates, without_truncates
from polynya.lake.iceberg.user_layout import columns_in_use
from polynya.lake.table.column_changes import change_columns
from polynya.lake.table.copy_state import SourceColumns, Suspension
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.suspension import suspend
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.evolution import SchemaChange, blocking, schema_changes
from polynya.model.config.mapping.columns import ColumnMapping
from polynya.model.datatypes import DataType, is_in_place, parse_type, widen
from polynya.model.errors import OperationError, TaskStoppedError
from polynya.observe.data import SchemaChanged
from polynya.transform.unnesting import columns_read


@dataclass(frozen=True, slots=True)
class Evolution:
    """The changes that a batch brings, each with its policy."""

    changes: tuple[SchemaChange, ...] = ()

    @property
    def halt(self) -> SchemaChange | None:
        """The change because of which nothing of the batch may be copied."""
        return blocking(self.changes)

    @property
    def renames(self) -> dict[str, str]:
        """Columns that get a new name, by their old one."""
        return {str(c.old): str(c.new) for c in self._applied("rename_column")}

    @property
    def drops(self) -> list[str]:
        """Columns that go."""
        return [change.column for change in self._applied("drop_column")]

    def batch_after(self, batch: DatasetBatch) -> DatasetBatch:
        """The batch in the shape that its dataset has once these changes are made."""
        if self.renames or self.drops:
            batch = reshaped(batch, self.renames, self.drops)
        if any(c.kind == "truncate" and c.policy == "ignore" for c in self.changes):
            batch = without_truncates(batch)
        return batch

    def _applied(self, kind: str) -> list[SchemaChange]:
        return [c for c in self.changes if c.kind == kind and c.policy == "apply"]


def evolved(
    context: EngineContext, table: DatasetTable, batch: DatasetBatch
) -> tuple[DatasetBatch, bool]:
    """Take over what a batch changes in the shape of its dataset.

    Returns the batch in that shape, and whether columns of the table were renamed or dropped.
    Raises SuspendedError or TaskStoppedError when a policy says that nothing of it may be copied,
    and BeingAppliedError when it has to wait for the end of an apply.
    """
    found = evolution_of(batch, table.reading, table.state.copy.columns, table.known_schema())
    if found.drops:
        found = _without_drops_in_use(table, found)
    if found.halt is not None:
        raise _halted(table, batch, found.halt, context.clock.now())
    if any(change.policy != "ignore" for change in found.changes):
        table.refuse_beside_apply()
    _tell(context, table.dataset.relations.current, found)
    if found.renames or found.drops:
        change_columns(table, found.renames, found.drops)
    return found.batch_after(batch), bool(found.renames or found.drops)


def evolution_of(
    batch: DatasetBatch,
    reading: ResolvedDataset,
    columns: SourceColumns,
    known: Mapping[str, DataType],
) -> Evolution:
    """Compare a batch with what its dataset has met so far.

    `reading` is the dataset with the policies that are in force, `known` has the types of all
    columns so far.
    """
    policies = reading.policies.schema_evolution
    found = list(batch.changes)
    excluded = reading.events.except_columns
    mapping, now = reading.mapping, batch.schema
    if batch.source is not None:
        # What a source declares are its own columns.
        known = {name: parse_type(text) for name, text in columns.of_source.items()}
        now = batch.source
    if batch.declared is not None and columns.declared:
        found = schema_changes(
            [name for name in columns.declared if name not in excluded],
            [name for name in batch.declared if name not in excluded],
            known=known,
            now=now,
            keys=mapping.of_source(columns.keys),
            policies=policies,
            changes=found,
        )
        found = _without_renamed_key([_of_mapped(change, batch, mapping) for change in found])
    if truncates(batch):
        view = reading.relations.view
        found.append(SchemaChange("truncate", view, policies.policy("truncate")))
    return Evolution(tuple(found))


def _without_renamed_key(found: list[SchemaChange]) -> list[SchemaChange]:
    """A column of the key that was renamed is a rename, and no other key."""
    names = {c.old: c.new for c in found if c.kind == "rename_column" and c.policy != "ignore"}
    return [
        change
        for change in found
        if change.kind != "change_key"
        or [names.get(name, name) for name in key_columns(change.old)] != key_columns(change.new)
    ]


def _of_mapped(change: SchemaChange, batch: DatasetBatch, mapping: ColumnMapping) -> SchemaChange:
    """A column that the table does not have as it is in the source cannot go, or be renamed, there.

    What an expression lacks from then on is NULL; under which name to look somebody has to say.
    """
    if not mapping.is_set or change.policy != "apply":
        return change
    read = {name for one in mapping.columns for name in columns_read(one.expression)}
    if mapping.where is not None:
        read |= columns_read(mapping.where)
    if change.kind == "drop_column" and (
        change.column in read or change.column not in batch.schema
    ):
        return replace(change, policy="ignore")
    names = {str(change.old), str(change.new)}
    if change.kind == "rename_column" and (names & read or not names <= batch.schema.keys()):
        return replace(change, policy="suspend")
    return change


def out_of_reach(
    before: Mapping[str, DataType], after: Mapping[str, DataType]
) -> dict[str, DataType]:
    """Columns with the types that they get although a table cannot give them in place."""
    return {
        name: kind
        for name, kind in after.items()
        if name in before
        and (widen(before[name], kind) is None or not is_in_place(before[name], kind))
    }


def _without_drops_in_use(table: DatasetTable, found: Evolution) -> Evolution:
    """A column that files are parted or sorted by stays: their partitions come from it."""
    used = columns_in_use(table.table)
    kept = (
        replace(one, policy="ignore") if one.kind == "drop_column" and one.column in used else one
        for one in found.changes
    )
    return Evolution(tuple(kept))


def suspension(change: SchemaChange, where: str, now: datetime) -> Suspension:
    """The state of a dataset that waits for a decision because of a change."""
    return Suspension(change.kind, str(change), where, now.isoformat())


def _halted(
    table: DatasetTable, batch: DatasetBatch, change: SchemaChange, now: datetime
) -> OperationError:
    where = ", ".join(list(batch.files)[:3])
    if change.policy == "suspend":
        return suspend(table, suspension(change, where, now), called=batch.called)
    return TaskStoppedError(
        "POLYNYA-LAKE-018",
        f"{table.dataset.relations.current}: {change}, and its policy for that is `stop`",
        where=where,
        state="nothing of this batch was copied; its files stay where they are",
        fix=f"change the source back, or `schema_evolution.{change.kind}` of the dataset",
    )


def _tell(context: EngineContext, subject: str, found: Evolution) -> None:
    """Say what changed; of what is ignored only once, since it comes with every batch."""
    for change in found.changes:
        news = context.is_news(f"{subject} {change}", change.policy)
        if change.kind == "truncate" or (change.policy == "ignore" and not news):
            continue
        context.sink(
            SchemaChanged(
                subject=subject, change=change.kind, policy=change.policy, says=str(change)
            )
        )
