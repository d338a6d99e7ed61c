"""Which tables of a capture are compared with which views, and why others are not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from polynya.gateway.compare.comparing import Subject
from polynya.gateway.source import SourceTable
from polynya.model.config.capture.landing import CaptureLanding
from polynya.model.config.capture.patterns import matches
from polynya.model.config.dataset import ResolvedDataset


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A table that is not compared, and why; `fails`: it should have been."""

    table: str
    view: str | None
    why: str
    fails: bool = False


def subject_of(
    capture: CaptureLanding,
    table: SourceTable,
    dataset: ResolvedDataset,
    *,
    state: str | None,
    suspended: bool,
) -> Subject | NotCompared:
    """What of a table is compared with a dataset.

    Args:
        capture: the landing.
        table: as the source has it now.
        dataset: what became of it.
        state: of its load, as the newest batch has it; None: it is not captured.
        suspended: the dataset waits for a decision.
    """
    view = dataset.relations.current

    def not_compared(why: str, *, fails: bool = False) -> NotCompared:
        return NotCompared(table.name, view, why, fails)

    if state != "loaded":
        shown = "not captured" if state is None else state
        return not_compared(f"its load is not complete: {shown}", fails=True)
    if suspended:
        return not_compared("the dataset is suspended", fails=True)
    if dataset.mapping.is_set:
        return not_compared("its columns are mapped: the view is not the table")
    if dataset.kept.retention is not None:
        return not_compared("its rows leave by their age")
    if dataset.kept.mode == "append_only" and table.key:
        return not_compared("it is append-only: the view has every event, not the newest rows")
    if _of(capture.load.filter, table.name) is not None:
        return not_compared("only a part of it was loaded (`load.filter`)")
    return Subject(
        table.name,
        view,
        table.key,
        masked=frozenset(_masked(capture, table.name)),
        where=_of(capture.rows, table.name),
    )


def without_view(tables: Iterable[SourceTable], sources: Iterable[str]) -> list[NotCompared]:
    """Captured tables that no storage task has."""
    known = set(sources)
    return [
        NotCompared(one.name, None, "no storage task has made a table of it", fails=True)
        for one in tables
        if one.name not in known
    ]


def _of(conditions: Mapping[str, str], table: str) -> str | None:
    return next((text for name, text in conditions.items() if matches(name, table)), None)


def _masked(capture: CaptureLanding, table: str) -> list[str]:
    return [
        column
        for name, columns in capture.mask.items()
        if matches(name, table)
        for column in columns
    ]
