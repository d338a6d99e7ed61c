"""What a batch changes in the shape of its dataset, and what the policies say to that."""

from __future__ import annotations

from dataclasses import dataclass

from polynya.formats.batch import DatasetBatch
from polynya.formats.values.reshape import reshaped, truncates, without_truncates
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.evolution import SchemaChange, blocking, schema_changes


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


def evolution(table: DatasetTable, batch: DatasetBatch) -> Evolution:
    """Compare a batch with what its dataset has met so far."""
    policies = table.reading.policies.schema_evolution
    found = list(batch.changes)
    before = table.state.copy.columns.declared
    if batch.declared is not None and before:
        found = schema_changes(
            before,
            batch.declared,
            known=table.known_schema(),
            now=batch.schema,
            keys=table.state.copy.columns.keys,
            policies=policies,
            changes=found,
        )
    if truncates(batch):
        view = table.dataset.relations.view
        found.append(SchemaChange("truncate", view, policies.policy("truncate")))
    return Evolution(tuple(found))
