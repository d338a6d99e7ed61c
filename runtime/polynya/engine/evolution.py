"""Columns of a batch: first those that settings name but no record has, then schema changes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.engine.context import EngineContext
from polynya.formats.batch import DatasetBatch
from polynya.formats.errors import RecordError
from polynya.formats.key_names import key_columns
from polynya.formats.records.json import parse_object
from polynya.formats.values.batches import reshaped, truncates, without_truncates
from polynya.lake.iceberg.layout import columns_in_use
from polynya.lake.table.dataset import DatasetTable, change_columns
from polynya.lake.table.shape_changes import decided_changes
from polynya.lake.table.state import CopyState, SourceColumns, Suspension
from polynya.lake.table.suspension import suspend
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.evolution import SchemaChange, blocking, schema_changes
from polynya.model.config.mapping import ColumnMapping
from polynya.model.config.settings import RECORD_KEY
from polynya.model.error_catalogue.configuration import UNKNOWN_COLUMN_IN_SETTING
from polynya.model.error_catalogue.lake import TASK_STOPPED_BY_POLICY
from polynya.model.errors import ConfigError, OperationError, PolynyaError
from polynya.model.formats import rules_of
from polynya.model.promotion import is_in_place, widen
from polynya.model.types import DataType, parse_type
from polynya.observe.engine import ColumnUnknown, SchemaChanged
from polynya.transform.mapping import columns_read
from polynya.transform.named_columns import UnknownColumn, unknown_columns
from polynya.transform.rules import with_rules

#: Kind of a suspension for such a column, which `polynya dataset resume --accept ignore` accepts.
UNKNOWN_COLUMN_KIND: Final = "unknown_column"
#: Changes that a commit of their own carries out.
_OF_COLUMNS: Final = ("rename_column", "drop_column")
#: Columns of the records that a message lists at most.
_MOST_COLUMNS_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """The columns that the records of a batch have.

    Attributes:
        names: the columns.
        files: the files of the batch.
        of_load: they are those of a full load, and events may have more.
        complete: columns that are missing here are not in the source, at least not now.
        sample: the raw bytes of a record, b"" where they are not known.
    """

    names: Collection[str]
    files: Collection[str]
    of_load: bool = False
    complete: bool = True
    sample: bytes = b""


def batch_columns(batch: DatasetBatch, dataset: ResolvedDataset) -> BatchColumns:
    """The columns of a batch."""
    names = batch.met
    if names is None:
        names = frozenset(set(batch.schema) - set(dataset.events.columns))
    of_load = batch.of_load and dataset.landing.extracts is None
    captured = rules_of(dataset.landing.format).finds_tables
    # Without a schema a capture shows all columns only where a record has a whole row.
    complete = not captured or batch.declared is not None or _has_operation(batch, "I", "L")
    # A record without its keys and its place in the order is rejected, mostly.
    sample = next((record.raw for record in batch.rejected if record.raw), b"")
    return BatchColumns(names, list(batch.files), of_load=of_load, complete=complete, sample=sample)


def _has_operation(batch: DatasetBatch, *operations: str) -> bool:
    """Whether any row has one of these operations of the source."""
    matches = pc.is_in(batch.rows.column("__op"), value_set=pa.array(operations, pa.string()))
    return bool(pc.any(matches, min_count=0).as_py())


def refuse_unknown_columns(context: EngineContext, table: DatasetTable, seen: BatchColumns) -> None:
    """Raise when the settings name a column that neither the table nor a batch has.

    Raises ConfigError, or SuspendedError where other tables share the files.
    """
    dataset = table.dataset
    stopping, others = find_unknown_columns(dataset, table.state.copy, seen)
    if stopping and context.hooks.on_unknown_columns is not None:
        context.hooks.on_unknown_columns(stopping)
    elif stopping:
        raise _unknown_columns_error(context, table, seen, stopping)
    for column in others:
        _report_unknown(context, dataset.relations.current, column)


def find_unknown_columns(
    dataset: ResolvedDataset, copy: CopyState, seen: BatchColumns
) -> tuple[list[UnknownColumn], list[UnknownColumn]]:
    """Columns that the settings name and neither the table nor a batch has.

    First those that prevent the copy, then those that are worth a warning. A name that was valid
    for an earlier batch of events stays valid: a source may drop a column later.
    """
    columns = copy.columns
    has_rows = bool(copy.books.totals.get("rows_out"))
    if not seen.names or (columns.named is None and has_rows):
        return [], []
    known_columns = {*columns.schema, *columns.of_source}
    present = {*seen.names, *(known_columns - set(dataset.events.columns))}
    unknown = unknown_columns(dataset, present, accepted=columns.named or (), of_load=seen.of_load)
    stops = seen.complete and UNKNOWN_COLUMN_KIND not in copy.decisions.accepted
    stopping = [column for column in unknown if column.stops and stops]
    return stopping, [column for column in unknown if column not in stopping]


def _report_unknown(context: EngineContext, subject: str, unknown: UnknownColumn) -> None:
    if context.is_news(f"{subject} lacks {unknown.setting}", unknown.column):
        context.sink(
            ColumnUnknown(
                subject=subject,
                setting=unknown.setting,
                column=unknown.column,
                meant=unknown.meant,
            )
        )


def _unknown_columns_error(
    context: EngineContext,
    table: DatasetTable,
    seen: BatchColumns,
    unknown: list[UnknownColumn],
) -> PolynyaError:
    dataset = table.dataset
    if not rules_of(dataset.landing.format).shares_files:
        return unknown_columns_refusal(dataset, seen, unknown)
    reason = (
        f"{_names(unknown)}, which no record has; {_fixes(unknown)}; "
        f"{_columns_in_words(seen.names)}"
    )
    now = context.clock.now().isoformat()
    return suspend(table, Suspension(UNKNOWN_COLUMN_KIND, reason, _where(seen), now))


def unknown_columns_refusal(
    dataset: ResolvedDataset, seen: BatchColumns, unknown: Iterable[UnknownColumn]
) -> ConfigError:
    """The error for settings that name columns that no record has had."""
    unknown = list(unknown)
    return UNKNOWN_COLUMN_IN_SETTING(
        f"{dataset.relations.current}: {_names(unknown)}, which no record has",
        where=_where(seen),
        why=_columns_in_words(seen.names),
        fix=f"{_document_advice(dataset, seen, unknown)}{_fixes(unknown)}",
    )


def _document_advice(
    dataset: ResolvedDataset, seen: BatchColumns, unknown: Iterable[UnknownColumn]
) -> str:
    """The path of the records, if each line of JSON is a document that holds many of them."""
    landing = dataset.landing
    keys = {column.column for column in unknown if column.setting == "keys"}
    in_lines = landing.format == "json" and landing.delivery.record_path is None
    if not keys or not in_lines:
        return ""
    try:
        path = _path_to(keys, parse_object(seen.sample))
    except RecordError:
        return ""
    if path is None:
        return ""
    return f"if the records are in `{path}`, set `record_path: $.{path}` under `landing`; "


def _path_to(columns: Set[str], record: Mapping[str, Any]) -> str | None:
    """The path of an object, or of an array of objects, that has all these columns."""
    for name, value in record.items():
        inner = value[0] if isinstance(value, list) and value else value
        if not isinstance(inner, dict) or not re.fullmatch(RECORD_KEY, name):
            continue
        if inner.keys() >= columns:
            return name
        deeper = _path_to(columns, inner) if inner is value else None
        if deeper is not None:
            return f"{name}.{deeper}"
    return None


def _where(seen: BatchColumns) -> str:
    return ", ".join(list(seen.files)[:3])


def _names(unknown: Iterable[UnknownColumn]) -> str:
    return " and ".join(f"`{column.setting}` names `{column.column}`" for column in unknown)


def _fixes(unknown: Iterable[UnknownColumn]) -> str:
    return f"{_suggestions(unknown)}name a column that comes later under `optional_columns`"


def _suggestions(unknown: Iterable[UnknownColumn]) -> str:
    """`did you mean …?` if there is a similar column."""
    meant = list(
        dict.fromkeys(f"`{column.meant}`" for column in unknown if column.meant is not None)
    )
    return f"did you mean {' and '.join(meant)}? " if meant else ""


def _columns_in_words(names: Collection[str]) -> str:
    listed = sorted(names)[:_MOST_COLUMNS_LISTED]
    more = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
    return f"columns of the records: {', '.join(listed)}{more}"


def apply_schema_changes(
    context: EngineContext, table: DatasetTable, batch: DatasetBatch
) -> tuple[DatasetBatch, bool]:
    """Apply the schema changes of a batch to its dataset.

    Returns the batch in that shape, and whether columns of the table were renamed or dropped.
    Raises SuspendedError or TaskStoppedError when a policy says that nothing of it may be copied,
    and BeingAppliedError when it has to wait for the end of an apply.
    """
    evolution = schema_changes_of(
        batch, table.reading, table.state.copy.columns, table.known_schema()
    )
    if evolution.drops:
        evolution = _without_drops_in_use(table, evolution)
    if evolution.halt is not None:
        raise _policy_error(table, batch, evolution.halt, context.clock.now())
    if any(change.policy != "ignore" for change in evolution.changes):
        table.refuse_beside_apply()
    _report_evolution(context, table.dataset.relations.current, evolution)
    if evolution.renames or evolution.drops:
        done = [c for c in evolution.changes if c.kind in _OF_COLUMNS and c.policy == "apply"]
        decided = decided_changes(table.state.copy, done, context.clock.now())
        change_columns(table, evolution.renames, evolution.drops, decided=decided)
    return evolution.batch_after(batch), bool(evolution.renames or evolution.drops)


@dataclass(frozen=True, slots=True)
class Evolution:
    """The changes that a batch brings, each with its policy."""

    changes: tuple[SchemaChange, ...] = ()

    @property
    def halt(self) -> SchemaChange | None:
        """The change that forbids copying the batch."""
        return blocking(self.changes)

    @property
    def renames(self) -> dict[str, str]:
        """Columns that get a new name, by their old one."""
        return {str(c.old): str(c.new) for c in self._applied("rename_column")}

    @property
    def drops(self) -> list[str]:
        """Columns that are dropped."""
        return [change.column for change in self._applied("drop_column")]

    def batch_after(self, batch: DatasetBatch) -> DatasetBatch:
        """The batch in the shape that its dataset has once these changes are made."""
        if self.renames or self.drops:
            batch = reshaped(batch, self.renames, self.drops)
        if any(c.kind == "truncate" and c.policy == "ignore" for c in self.changes):
            batch = without_truncates(batch)
        # A commit of their own has renamed and dropped columns, and remembers that.
        left = [c for c in self.changes if c.kind not in _OF_COLUMNS or c.policy != "apply"]
        return replace(batch, changes=tuple(left))

    def _applied(self, kind: str) -> list[SchemaChange]:
        return [c for c in self.changes if c.kind == kind and c.policy == "apply"]


def schema_changes_of(
    batch: DatasetBatch,
    reading: ResolvedDataset,
    columns: SourceColumns,
    known_types: Mapping[str, DataType],
) -> Evolution:
    """Compare a batch with the columns that its dataset has seen so far.

    `reading` is the dataset with the policies that are in force, `known` has the types of all
    columns so far.
    """
    policies = reading.policies.schema_evolution
    changes = list(batch.changes)
    excluded = reading.events.except_columns
    mapping, now = reading.mapping, batch.schema
    if batch.source is not None:
        # What a source declares are its own columns.
        known_types = {name: parse_type(text) for name, text in columns.of_source.items()}
        now = batch.source
        mapping = with_rules(reading, {**known_types, **now}).mapping
    if batch.declared is not None and columns.declared:
        changes = schema_changes(
            [name for name in columns.declared if name not in excluded],
            [name for name in batch.declared if name not in excluded],
            known=known_types,
            now=now,
            keys=mapping.of_source(columns.keys),
            policies=policies,
            changes=changes,
        )
        changes = _without_renamed_key(
            [_policy_for_mapped(change, batch, mapping) for change in changes]
        )
    if truncates(batch):
        view = reading.relations.view
        changes.append(SchemaChange("truncate", view, policies.policy("truncate")))
    return Evolution(tuple(changes))


def _without_renamed_key(changes: list[SchemaChange]) -> list[SchemaChange]:
    """The changes without a change of key that is only a renamed column."""
    names = {c.old: c.new for c in changes if c.kind == "rename_column" and c.policy != "ignore"}
    return [
        change
        for change in changes
        if change.kind != "change_key"
        or [names.get(name, name) for name in key_columns(change.old)] != key_columns(change.new)
    ]


def _policy_for_mapped(
    change: SchemaChange, batch: DatasetBatch, mapping: ColumnMapping
) -> SchemaChange:
    """The change of a source with mapped columns, with the policy that can be applied.

    The table cannot drop or rename a column that it does not have as it is in the source. An
    expression would see NULL from then on, so an operator has to name the new column.
    """
    if not mapping.is_set or change.policy != "apply":
        return change
    read = {name for column in mapping.columns for name in columns_read(column.expression)}
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


def _without_drops_in_use(table: DatasetTable, evolution: Evolution) -> Evolution:
    """The changes without drops of columns that files are partitioned or sorted by."""
    used = columns_in_use(table.table)
    changes = (
        replace(change, policy="ignore")
        if change.kind == "drop_column" and change.column in used
        else change
        for change in evolution.changes
    )
    return Evolution(tuple(changes))


def _policy_error(
    table: DatasetTable, batch: DatasetBatch, change: SchemaChange, now: datetime
) -> OperationError:
    where = ", ".join(list(batch.files)[:3])
    if change.policy == "suspend":
        return suspend(table, suspension(change, where, now), called=batch.called)
    return TASK_STOPPED_BY_POLICY(
        where=where,
        subject=table.dataset.relations.current,
        reason=change,
        policy=f"schema_evolution.{change.kind}",
    )


def suspension(change: SchemaChange, where: str, now: datetime) -> Suspension:
    """The state of a dataset that waits for a decision because of a change."""
    return Suspension(change.kind, str(change), where, now.isoformat())


def _report_evolution(context: EngineContext, subject: str, evolution: Evolution) -> None:
    """Report the changes; ignored ones once, since they come with every batch."""
    for change in evolution.changes:
        news = context.is_news(f"{subject} {change}", change.policy)
        if change.kind == "truncate" or (change.policy == "ignore" and not news):
            continue
        context.sink(
            SchemaChanged(
                subject=subject, change=change.kind, policy=change.policy, says=str(change)
            )
        )


def types_that_need_a_rewrite(
    before: Mapping[str, DataType], after: Mapping[str, DataType]
) -> dict[str, DataType]:
    """Columns with new types that a table cannot give them in place."""
    return {
        name: kind
        for name, kind in after.items()
        if name in before
        and (widen(before[name], kind) is None or not is_in_place(before[name], kind))
    }
