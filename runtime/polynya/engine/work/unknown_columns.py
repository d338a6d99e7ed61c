"""Columns that settings name and that nobody has met: a typing error must not change results."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.engine.work.context import EngineContext
from polynya.formats.batch import DatasetBatch
from polynya.lake.table.copy_state import CopyState, Suspension
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.suspension import suspend
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.errors import ConfigError, PolynyaError
from polynya.model.formats.registry import rules_of
from polynya.observe.data import ColumnUnknown
from polynya.transform.named_columns import UnknownColumn, unknown_columns

#: What `polynya dataset resume --accept ignore` lets the next batch lack.
CAUSE: Final = "unknown_column"
#: Columns of the records that a message lists.
_MOST_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class Sighting:
    """The columns that a batch really has.

    `of_load`: they are those of a full load, and events may have more. `whole`: what is not among
    them is not in the source, at least not now.
    """

    met: Collection[str]
    files: Collection[str]
    of_load: bool = False
    whole: bool = True


def sighting_of(batch: DatasetBatch, dataset: ResolvedDataset) -> Sighting:
    """What a batch shows of its columns."""
    met = batch.met
    if met is None:
        met = frozenset(set(batch.schema) - set(dataset.events.columns))
    of_load = batch.of_load and dataset.landing.extracts is None
    captured = rules_of(dataset.landing.format).finds_tables
    # Without a schema a capture shows all columns only where it says a whole row.
    whole = not captured or batch.declared is not None or _has(batch, "I", "L")
    return Sighting(met, list(batch.files), of_load=of_load, whole=whole)


def _has(batch: DatasetBatch, *operations: str) -> bool:
    """Whether the source says one of the operations of some row."""
    said = pc.is_in(batch.rows.column("__op"), value_set=pa.array(operations, pa.string()))
    return bool(pc.any(said, min_count=0).as_py())


def unknown_in(
    dataset: ResolvedDataset, copy: CopyState, sighting: Sighting
) -> tuple[list[UnknownColumn], list[UnknownColumn]]:
    """Columns that the settings name and neither the table nor a batch has.

    First those that keep the batch from being copied, then those that are worth a warning. What was
    named when events were copied before stands: a source may drop a column later.
    """
    columns = copy.columns
    has_rows = bool(copy.books.totals.get("rows_out"))
    if not sighting.met or (columns.named is None and has_rows):
        return [], []
    known = {*columns.schema, *columns.of_source}
    met = {*sighting.met, *(known - set(dataset.events.columns))}
    unknown = unknown_columns(dataset, met, accepted=columns.named or (), of_load=sighting.of_load)
    stops = sighting.whole and CAUSE not in copy.decisions.accepted
    stopping = [one for one in unknown if one.stops and stops]
    return stopping, [one for one in unknown if one not in stopping]


def refuse_unknown(context: EngineContext, table: DatasetTable, sighting: Sighting) -> None:
    """Raise when the settings name a column that neither the table nor a batch has.

    Raises ConfigError, or SuspendedError where other tables share the files.
    """
    dataset = table.dataset
    stopping, others = unknown_in(dataset, table.state.copy, sighting)
    if stopping and context.at_unknown is not None:
        context.at_unknown(stopping)
    elif stopping:
        raise _refused(context, table, sighting, stopping)
    for one in others:
        _tell(context, dataset.relations.current, one)


def _tell(context: EngineContext, subject: str, one: UnknownColumn) -> None:
    if context.is_news(f"{subject} lacks {one.setting}", one.column):
        context.sink(
            ColumnUnknown(subject=subject, setting=one.setting, column=one.column, meant=one.meant)
        )


def _refused(
    context: EngineContext,
    table: DatasetTable,
    sighting: Sighting,
    unknown: list[UnknownColumn],
) -> PolynyaError:
    dataset = table.dataset
    if not rules_of(dataset.landing.format).shares_files:
        return refusal(dataset, sighting, unknown)
    reason = (
        f"{_named(unknown)}, which no record has; {_ways_out(unknown)}; {_listed(sighting.met)}"
    )
    now = context.clock.now().isoformat()
    return suspend(table, Suspension(CAUSE, reason, _where(sighting), now))


def refusal(
    dataset: ResolvedDataset, sighting: Sighting, unknown: Iterable[UnknownColumn]
) -> ConfigError:
    """The error for settings that name columns which nobody has met."""
    unknown = list(unknown)
    return ConfigError(
        "POLYNYA-CFG-030",
        f"{dataset.relations.current}: {_named(unknown)}, which no record has",
        where=_where(sighting),
        why=_listed(sighting.met),
        state="nothing of this batch was copied; its files stay where they are",
        fix=_ways_out(unknown),
    )


def _where(sighting: Sighting) -> str:
    return ", ".join(list(sighting.files)[:3])


def _named(unknown: Iterable[UnknownColumn]) -> str:
    return " and ".join(f"`{one.setting}` names `{one.column}`" for one in unknown)


def _ways_out(unknown: Iterable[UnknownColumn]) -> str:
    return f"{_instead(unknown)}name a column that comes later under `optional_columns`"


def _instead(unknown: Iterable[UnknownColumn]) -> str:
    """Did you mean, where there is something similar."""
    meant = list(dict.fromkeys(f"`{one.meant}`" for one in unknown if one.meant is not None))
    return f"did you mean {' and '.join(meant)}? " if meant else ""


def _listed(met: Collection[str]) -> str:
    """The columns that there are."""
    listed = sorted(met)[:_MOST_LISTED]
    more = f" and {len(met) - len(listed)} more" if len(met) > len(listed) else ""
    return f"columns of the records: {', '.join(listed)}{more}"
