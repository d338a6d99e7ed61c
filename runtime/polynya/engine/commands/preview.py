"""A preview of a dataset's next records: columns, events, rows, refusals, policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from polynya.engine.commands.preview_fold import (
    STORED,
    DatasetPreview,
    LandedRow,
    Origin,
    PreviewColumn,
    PreviewRow,
    RecordState,
    RejectedRecord,
    current,
    landed_rows,
    operations,
    refusals,
)
from polynya.engine.commands.preview_records import NextRecords, PreviewTable
from polynya.engine.evolution import (
    Evolution,
    batch_columns,
    find_unknown_columns,
    schema_changes_of,
    unknown_columns_refusal,
)
from polynya.engine.mask_keys import mask_key
from polynya.formats.batch import WHOLE_FILE, DatasetBatch
from polynya.lake.copy.mapping import mapped_batch
from polynya.lake.copy.masks import withheld
from polynya.lake.copy.values import Session
from polynya.lake.fold.sql import ignored_nulls
from polynya.lake.table.shaping import data_columns
from polynya.model.config.evolution import policy_in_words
from polynya.model.formats import rules_of
from polynya.model.types import DataType, Void
from polynya.transform.named_columns import UnknownColumn

_DELETED: Final = "hdr__deleted"


def preview_of(records: NextRecords, session: Session, limit: int) -> DatasetPreview:
    """Preview the next records of a dataset: the first `limit` records, rows and refusals.

    `session` is started where conditions or mapped columns need SQL.
    """
    table = records.table
    suspended = table.copy.decisions.suspended
    seen = DatasetPreview(
        dataset=records.task.name if records.is_rest else table.dataset.relations.current,
        task=records.task.name,
        format=records.task.landing.format,
        is_new=table.is_new,
        is_rest=records.is_rest,
        halted=None if suspended is None else f"the dataset is suspended: {suspended.reason}",
        notes=records.notes,
    )
    if records.batch is None:
        return seen
    landed = records.batch
    if not records.is_rest:
        if table.dataset.withholds:
            landed = withheld(landed)
        landed = mapped_batch(landed, table.dataset, table.before, session, mask_key)
    return _BatchPreview(records, landed, limit).completed(seen, session)


class _BatchPreview:
    """One batch of a dataset, as it would appear in the view."""

    def __init__(self, records: NextRecords, landed: DatasetBatch, limit: int) -> None:
        self._records = records
        self._table: PreviewTable = records.table
        self._dataset = records.table.dataset
        self._limit = limit
        self._columns_seen = batch_columns(landed, self._dataset)
        self._before = self._table.before.table
        self._evolution: Evolution = schema_changes_of(
            landed, self._dataset, self._table.copy.columns, self._before
        )
        self._batch = self._evolution.batch_after(landed)
        self._data = data_columns(self._dataset, self._batch.schema)
        appends = self._dataset.kept.mode == "append_only"
        self._keys = () if appends else self._batch.keys or tuple(self._table.copy.columns.keys)

        self._within = () if appends else self._dataset.kept.replaced_within

    def completed(self, seen: DatasetPreview, session: Session) -> DatasetPreview:
        """The preview with what the batch shows."""
        batch, limit = self._batch, self._limit
        called = operations(batch, self._dataset, session)
        # A record that replaces its elements has none of their keys.
        bad = refusals(batch, self._within or self._keys, called, self._table.apply.horizon)
        good = list(landed_rows(batch, called, bad))
        shown = [row for row in good if not row.is_record(self._keys, self._within)]
        rows, ties = self._live(good)
        refused = [*_rejected_records(batch), *_refused_rows(batch, bad)]
        stopping, others = find_unknown_columns(self._dataset, self._table.copy, self._columns_seen)
        order = self._dataset.events.sequence_by
        return replace(
            seen,
            load=self._records.load or batch.of_load,
            files=tuple(batch.files),
            files_waiting=self._records.waiting,
            looked_at=batch.rows_in,
            is_cut=self._is_cut(),
            filtered=dict(batch.counters),
            keys=tuple(self._keys),
            sequence_by=order,
            columns=tuple(self._columns()),
            excluded=tuple(name for name in batch.schema if name not in self._data),
            changes=self._evolution.changes,
            halted=seen.halted or self._halted(refused),
            unknown=unknown_columns_refusal(self._dataset, self._columns_seen, stopping)
            if stopping
            else None,
            records=tuple(row.record(self._keys, order) for row in shown[:limit]),
            rows=tuple(rows[:limit]),
            row_count=len(rows),
            quarantined=Counter(refusal.rule for refusal in refused),
            refused=tuple(refused[:limit]),
            notes=(*seen.notes, *map(_warning, others), *([_ties_in_words(ties)] if ties else [])),
        )

    def _is_cut(self) -> bool:
        progress = self._batch.files.values()
        return len(progress) < self._records.waiting or not all(file.complete for file in progress)

    def _halted(self, refused: Sequence[RejectedRecord]) -> str | None:
        change, policy = self._evolution.halt, self._dataset.policies.on_bad_record
        if change is not None:
            return f"{change}: policy `{policy_in_words(change.policy)}`"
        if refused and policy != "quarantine":
            return f"a record is refused ({refused[0].rule}): `on_bad_record: {policy}`"
        return None

    def _columns(self) -> Iterator[PreviewColumn]:
        declared, schema = self._dataset.events.columns, self._typed_by_source()
        for name, kind in self._data.items():
            before = self._before.get(name)
            if isinstance(before, Void):
                before = None
            origin = _origin(kind, before, declared.get(name), in_schema=name in schema)
            if origin == "inferred" and name in self._dataset.mapping.names:
                origin = "expression"
            was = None if before is None or before == kind else str(before)
            yield PreviewColumn(name, str(kind), origin, name in self._keys, was)

    def _typed_by_source(self) -> Sequence[str]:
        """Columns that have a type in the files; a header line only names them."""
        only_named = rules_of(self._dataset.landing.format).has_header_lines and not any(
            file.endswith(".parquet") for file in self._batch.files
        )
        return () if only_named else self._batch.declared or ()

    def _live(self, good: Sequence[LandedRow]) -> tuple[list[PreviewRow], int]:
        """Rows of the Current view, and how often two events have the same position."""
        data = tuple(self._data)
        if not self._keys:
            kept = [row.values for row in good if row.operation not in {"D", "T"}]
            return [PreviewRow({name: row.get(name) for name in data}) for row in kept], 0
        ignored = ignored_nulls(self._dataset)
        events = [row.event(self._keys, data, ignored, self._within) for row in good]
        records = current(events, is_new=self._table.is_new)
        keys = {
            event.key: landed.key(self._keys) for event, landed in zip(events, good, strict=True)
        }
        soft = self._dataset.kept.delete_mode == "soft"
        rows = [
            self._row(dict(zip(self._keys, keys[key], strict=True)), state, soft=soft)
            for key, state in records.states.items()
            if state.alive or soft
        ]
        return rows, records.ties

    def _row(self, key: Mapping[str, object], state: RecordState, *, soft: bool) -> PreviewRow:
        values = {name: key.get(name, state.values.get(name)) for name in self._data}
        stored = tuple(name for name, value in values.items() if value is STORED)
        shown = {name: None if value is STORED else value for name, value in values.items()}
        if soft:
            shown[_DELETED] = not state.alive
        return PreviewRow(shown, stored)


def _origin(
    kind: DataType, before: DataType | None, declared: DataType | None, *, in_schema: bool
) -> Origin:
    if declared == kind:
        return "declared"
    if before == kind:
        return "table"
    if isinstance(kind, Void):
        return "nothing"
    return "schema" if in_schema else "inferred"


def _rejected_records(batch: DatasetBatch) -> Iterator[RejectedRecord]:
    for record in batch.rejected:
        number = None if record.offset == WHOLE_FILE else record.offset + 1
        yield RejectedRecord(record.file, number, record.rule, record.error)


def _refused_rows(
    batch: DatasetBatch, bad: Mapping[int, tuple[str, str]]
) -> Iterator[RejectedRecord]:
    files, offsets = batch.rows.column("__file"), batch.rows.column("__offset")
    for index, (rule, error) in bad.items():
        yield RejectedRecord(files[index].as_py(), offsets[index].as_py() + 1, rule, error)


def _warning(column: UnknownColumn) -> str:
    meant = f"; did you mean `{column.meant}`?" if column.meant is not None else ""
    return f"`{column.setting}` names `{column.column}`, which no record has yet{meant}"


def _ties_in_words(ties: int) -> str:
    times = "once" if ties == 1 else f"{ties:,} times"
    return (
        f"{times} two events of a record have the same position and differ; their content "
        "decides, and a run may choose the other one"
    )
