"""Derive the shape of a dataset from its settings and from the columns that its state knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from polynya.lake.fold.shape import Shape
from polynya.lake.table.state import CopyState
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.formats import rules_of
from polynya.model.headers import ALL_BUT
from polynya.model.types import DataType


def shape_of(
    dataset: ResolvedDataset,
    copy: CopyState,
    schema: Mapping[str, DataType],
    keys: tuple[str, ...],
    *,
    hidden: Collection[str] = (),
) -> Shape:
    """Shape of a dataset with these source columns and keys; `copy` tells what has been met.

    `hidden` are excluded columns that the table still has.
    """
    shown = data_columns(dataset, schema)
    columns = {name: kind for name, kind in schema.items() if name in shown or name in hidden}
    rules = rules_of(dataset.landing.format)
    append_only = dataset.kept.mode == "append_only" or not keys
    return Shape(
        keys=keys,
        columns=columns,
        hidden=frozenset(hidden),
        history=dataset.kept.history and not append_only,
        soft_delete=dataset.kept.delete_mode == "soft",
        holds_deletes=copy.holds_deletes,
        append_only=append_only,
        tells_operations=rules.tells_operations,
        looks=rules.reads_in_order and dataset.kept.history and not append_only,
        partial=tuple(
            name
            for name in columns
            if (name in copy.columns.unsent or ALL_BUT in copy.columns.unsent) and name not in keys
        ),
        links=copy.columns.has_old_keys,
        coalesce=dataset.kept.coalesce_unchanged,
        tracked=_tracked_columns(dataset, tuple(columns)),
        keeps_events=dataset.kept.changes_retention is not None and not append_only,
        expired=_expired(dataset, copy, columns),
        unsent_texts={name: tuple(texts) for name, texts in copy.columns.unsent_texts.items()},
        former={n: tuple(kinds) for n, kinds in copy.columns.former.items() if n in columns},
        replaced_within=() if append_only else dataset.kept.replaced_within,
    )


def _expired(
    dataset: ResolvedDataset, copy: CopyState, columns: Collection[str]
) -> tuple[str, datetime] | None:
    """By which column rows have left, and before which time."""
    retention, gone = dataset.kept.retention, copy.expired
    if retention is None or gone.get("column") != retention.column:
        return None
    there = retention.column in columns
    return (retention.column, datetime.fromisoformat(gone["before"])) if there else None


def data_columns(dataset: ResolvedDataset, schema: Mapping[str, DataType]) -> dict[str, DataType]:
    """Source columns that the table gets."""
    excluded = set(dataset.events.except_columns)
    return {name: datatype for name, datatype in schema.items() if name not in excluded}


def _tracked_columns(dataset: ResolvedDataset, columns: tuple[str, ...]) -> tuple[str, ...] | None:
    """Columns whose change makes a new line in a coalesced History; None for all."""
    if dataset.kept.track_history_columns:
        return tuple(name for name in columns if name in dataset.kept.track_history_columns)
    if dataset.kept.track_history_except:
        return tuple(name for name in columns if name not in dataset.kept.track_history_except)
    return None


def in_force(dataset: ResolvedDataset, copy: CopyState) -> ResolvedDataset:
    """The dataset as its next batch is read: with the policies that were accepted for it."""
    evolution = dataset.policies.schema_evolution.accepting(copy.decisions.accepted)
    return replace(dataset, policies=replace(dataset.policies, schema_evolution=evolution))
