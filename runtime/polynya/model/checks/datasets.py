"""Settings that one dataset lacks, or that contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from polynya.model.checks.layout import layout_problems
from polynya.model.checks.mapping import mapping_problems, written_problems
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.extracts import Extracts
from polynya.model.config.settings import Dataset
from polynya.model.config.sources import included
from polynya.model.config.task import StorageTask, resolved
from polynya.model.contract.identifiers import shown
from polynya.model.contract.stream_headers import STREAM_HEADER_NAMES
from polynya.model.documents.problems import Problem
from polynya.model.formats.registry import rules_of

_MERGE_ONLY: Final = (
    "apply_as_deletes",
    "apply_as_truncates",
    "ignore_null_updates",
    "history",
    "coalesce_unchanged",
    "track_history_columns",
    "track_history_except",
    "changes_retention",
)


def dataset_problems(
    task: StorageTask, dataset: Dataset, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what the settings of one dataset lack, or contradict each other in."""
    final, rules = resolved(task, dataset), rules_of(task.landing.format)
    if final.kept.mode == "merge":
        yield from _merge_problems(final, path)
    if rules.has_header_lines:
        yield from _unnamed_columns(final, path)
    yield from _foreign_headers(final, path)
    for problem in rules.check_dataset(final.events):
        yield replace(problem, path=(*path, *problem.path))
    if dataset.source is not None and rules.finds_tables:
        yield from _unreachable_source(task, dataset.source, path)
    if dataset.schema_evolution is not None and dataset.schema_evolution.new_dataset is not None:
        yield Problem(
            (*path, "schema_evolution", "new_dataset"),
            "POLYNYA-CFG-016",
            "a dataset that is declared is no new one",
            "set it under `defaults` of the task",
        )
    yield from _contradictions(dataset, final, path)
    yield from layout_problems(final, path)
    yield from written_problems(task, dataset, path)
    yield from mapping_problems(final, path)
    if final.landing.extracts is not None:
        yield from _extract_problems(final, final.landing.extracts, path)


def _merge_problems(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    rules = rules_of(final.landing.format)
    if not final.events.keys and not rules.brings_keys:
        yield Problem(
            path,
            "POLYNYA-CFG-014",
            f"dataset `{final.name}` has no `keys`, so its changes cannot be merged",
            "name the `keys`, or set `mode: append_only` to keep every event as a row",
        )
    if not final.events.sequence_by and not rules.brings_order and final.landing.extracts is None:
        yield Problem(
            path,
            "POLYNYA-CFG-015",
            f"dataset `{final.name}` has no `sequence_by`, so its events have no order",
            "name the columns that order the events, or set `mode: append_only`",
        )


def _foreign_headers(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Header columns of a stream that the format does not have."""
    events, own = final.events, rules_of(final.landing.format).header_columns
    named = {"sequence_by": events.sequence_by, "timestamp": (events.timestamp,)}
    for key, columns in named.items():
        for column in columns:
            if column in STREAM_HEADER_NAMES and column not in own:
                yield Problem(
                    (*path, key),
                    "POLYNYA-CFG-010",
                    f"column name {shown(str(column))} is reserved for Polynya",
                    "only format `stream` has it",
                )


def _unnamed_columns(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    listed = bool(final.mapping.columns)
    if not final.landing.delivery.has_header and not final.events.columns and not listed:
        yield Problem(
            path,
            "POLYNYA-CFG-008",
            f"dataset `{final.name}` has no `columns`, and its files have no header line",
            "name all columns with their types, in the order of the files",
        )


def _unreachable_source(
    task: StorageTask, source: str, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    if not included(task, source):
        yield Problem(
            (*path, "source"),
            "POLYNYA-CFG-016",
            f"source {shown(source)} is not among the tables that the task takes",
            "widen `include` or narrow `exclude`",
        )


def _extract_problems(
    final: ResolvedDataset, extracts: Extracts, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    code = "POLYNYA-CFG-016"
    if extracts.check_columns and extracts.updated_at:
        yield Problem(
            (*path, "extracts", "updated_at"),
            code,
            "`check_columns` and `updated_at` exclude each other",
            "keep one of the two",
        )
    senseless = {
        "initial_load": final.landing.initial_load,
        "apply_as_truncates": final.events.apply_as_truncates,
        "ignore_null_updates": final.events.ignore_null_updates,
    }
    for key, value in senseless.items():
        if value:
            yield Problem(
                (*path, key),
                code,
                "has no meaning with `extracts`: each of them holds the whole table",
                "take one out",
            )
    if final.kept.mode == "append_only":
        yield Problem(
            (*path, "mode"), code, "`append_only` compares nothing, `extracts` do", "take one out"
        )
    compared = {*(extracts.check_columns or ()), *filter(None, (extracts.updated_at,))}
    for column in sorted(compared & {*final.events.keys, *final.events.except_columns}):
        yield Problem(
            (*path, "extracts"),
            code,
            f"column {shown(column)} is a key or excepted, so it cannot be compared",
            "compare another column",
        )


def _contradictions(
    dataset: Dataset, final: ResolvedDataset, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    code = "POLYNYA-CFG-016"
    events, kept = final.events, final.kept
    if kept.track_history_columns and kept.track_history_except:
        yield Problem(
            (*path, "track_history_except"),
            code,
            "`track_history_columns` and `track_history_except` exclude each other",
            "keep one of the two",
        )
    if isinstance(events.ignore_null_updates, tuple):
        without_value = {*events.keys, *events.except_columns}
        for column in sorted(without_value & {*events.ignore_null_updates}):
            yield Problem(
                (*path, "ignore_null_updates"),
                code,
                f"column {shown(column)} is a key or excepted, so it has no value to keep",
                "take it out of `ignore_null_updates`",
            )
    dropped = set(events.except_columns)
    needed = (
        ("keys", events.keys, "is a key"),
        ("track_history_columns", kept.track_history_columns, "is tracked"),
    )
    for key, columns, why in needed:
        for column in sorted(dropped & set(columns)):
            yield Problem(
                (*path, "except_columns"),
                code,
                f"column {shown(column)} {why} and cannot be excepted",
                f"take it out of `except_columns` or out of `{key}`",
            )
    for key in ("keys", "sequence_by", "except_columns"):
        for column, count in Counter(getattr(events, key)).items():
            if count > 1:
                yield Problem((*path, key), code, f"column {shown(column)} is named twice")
    if kept.mode == "append_only":
        for key in _MERGE_ONLY:
            if getattr(dataset, key):
                yield Problem(
                    (*path, key), code, "has no meaning with `mode: append_only`", "take one out"
                )
