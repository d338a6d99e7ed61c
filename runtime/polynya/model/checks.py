"""What a well-formed task can still have wrong: settings that contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from polynya.model.delivery import DEFAULT_DELIMITER, DELIVERY_SETTINGS, Delivery
from polynya.model.extracts import Extracts
from polynya.model.identifiers import shown
from polynya.model.problems import Problem
from polynya.model.settings import DISCOVERING, SELF_DESCRIBING, Dataset
from polynya.model.sources import included
from polynya.model.task import ResolvedDataset, StorageTask, resolved

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


def task_problems(task: StorageTask) -> Iterator[Problem]:
    """Yield the problems of one task that need no other file."""
    yield from _format_problems(task)
    yield from _duplicates(task)
    for index, dataset in enumerate(task.datasets):
        yield from _dataset_problems(task, dataset, ("datasets", index))


def _format_problems(task: StorageTask) -> Iterator[Problem]:
    code = "POLYNYA-CFG-019"
    native = task.landing.format not in DISCOVERING
    if native and not task.datasets:
        yield Problem(
            (), "POLYNYA-CFG-008", f"format `{task.landing.format}` needs `datasets`: at least one"
        )
    for key in ("include", "exclude"):
        if native and key in task.model_fields_set:
            yield Problem((key,), code, _only_for(DISCOVERING), "use `path` of the dataset")
    for index, dataset in enumerate(task.datasets):
        for key in ("source",) if native else ("path", "initial_load", "extracts"):
            if getattr(dataset, key) is not None:
                wanted = _only_for(DISCOVERING) if native else f"not for {_formats(DISCOVERING)}"
                yield Problem(("datasets", index, key), code, wanted, "take the line out")
    policies = task.defaults.schema_evolution
    if native and policies is not None and policies.new_dataset is not None:
        place = ("defaults", "schema_evolution", "new_dataset")
        yield Problem(place, code, _only_for(DISCOVERING), "take the line out")
    yield from _delivery_problems(task)
    if task.landing.format == "csv":
        yield from _dialect_problems(task.landing)
    yield from _flattening_problems(task.landing)


def _flattening_problems(landing: Delivery) -> Iterator[Problem]:
    for key in ("add_fields", "add_fields_prefix"):
        if getattr(landing, key) is not None and not landing.flattened:
            yield Problem(
                ("landing", key),
                "POLYNYA-CFG-016",
                "has no meaning unless the events are flattened",
                "add `flattened: true`, or take the line out",
            )
    if landing.add_fields_prefix == "" and landing.add_fields is None:
        yield Problem(
            ("landing", "add_fields_prefix"),
            "POLYNYA-CFG-016",
            "without a prefix nothing tells the added fields from the columns of a row",
            "name them under `add_fields`, as the transform's `add.fields` does",
        )


def _dialect_problems(landing: Delivery) -> Iterator[Problem]:
    """One character cannot have two meanings."""
    escape = None if landing.escape == landing.quote_character else landing.escape
    meanings = {
        "delimiter": landing.delimiter or DEFAULT_DELIMITER,
        "quote": landing.quote_character or None,
        "escape": escape,
        "comment": landing.comment,
    }
    taken: dict[str, str] = {}
    for key, character in meanings.items():
        if character is None:
            continue
        first = taken.setdefault(character, key)
        if first != key:
            yield Problem(
                ("landing", key if key in landing.model_fields_set else first),
                "POLYNYA-CFG-016",
                f"{shown(character)} is the `{first}` and the `{key}`",
                "choose another character for one of them",
            )
    marker = landing.null_value
    marks = (meanings["delimiter"], meanings["quote"])
    if marker and any(mark in marker for mark in marks if mark is not None):
        yield Problem(
            ("landing", "null_value"),
            "POLYNYA-CFG-016",
            f"{shown(marker)} holds a delimiter or a quote, so no field can be it",
            "write the text that stands between two delimiters",
        )


def _delivery_problems(task: StorageTask) -> Iterator[Problem]:
    landing = task.landing
    taken = DELIVERY_SETTINGS.get(landing.format, frozenset())
    for key in Delivery.model_fields:
        if key not in landing.model_fields_set:
            continue
        if key not in taken:
            takers = [name for name, keys in DELIVERY_SETTINGS.items() if key in keys]
            yield Problem(
                ("landing", key), "POLYNYA-CFG-019", _only_for(takers), "take the line out"
            )
        elif getattr(landing, key) is None:
            # A bare NULL in YAML is no text: it would silently mean the default.
            yield Problem(
                ("landing", key),
                "POLYNYA-CFG-009",
                "has no value",
                "write a text in quotes, or take the line out",
            )


def _only_for(formats: Iterable[str]) -> str:
    return f"only for {_formats(formats)}"


def _formats(formats: Iterable[str]) -> str:
    names = [f"`{name}`" for name in sorted(formats)]
    return f"format{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _duplicates(task: StorageTask) -> Iterator[Problem]:
    code = "POLYNYA-CFG-012"
    for index in _repeated(dataset.name.lower() for dataset in task.datasets):
        name = task.datasets[index].name
        yield Problem(("datasets", index, "name"), code, f"dataset {shown(name)} exists already")
    sources = [(index, d.source) for index, d in enumerate(task.datasets) if d.source is not None]
    for position in _repeated(source for _, source in sources):
        index, source = sources[position]
        message = f"source {shown(source)} already feeds another dataset"
        yield Problem(("datasets", index, "source"), code, message)


def _repeated(values: Iterable[str]) -> Iterator[int]:
    """Yield the index of each value that occurred before."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index
        seen.add(value)


def _dataset_problems(
    task: StorageTask, dataset: Dataset, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    final = resolved(task, dataset)
    if final.format not in SELF_DESCRIBING and final.mode == "merge":
        yield from _merge_problems(final, path)
    if final.format in {"csv", "dms"}:
        yield from _unnamed_columns(final, path)
    if final.format == "replicate" and final.sequence_by:
        yield Problem(
            (*path, "sequence_by"),
            "POLYNYA-CFG-019",
            "not for format `replicate`: its change sequence is the order",
            "take the line out",
        )
    if dataset.source is not None and final.format in DISCOVERING:
        yield from _unreachable_source(task, dataset.source, path)
    if dataset.schema_evolution is not None and dataset.schema_evolution.new_dataset is not None:
        yield Problem(
            (*path, "schema_evolution", "new_dataset"),
            "POLYNYA-CFG-016",
            "a dataset that is declared is no new one",
            "set it under `defaults` of the task",
        )
    yield from _contradictions(dataset, final, path)
    if final.extracts is not None:
        yield from _extract_problems(final, final.extracts, path)


def _merge_problems(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if not final.keys:
        yield Problem(
            path,
            "POLYNYA-CFG-014",
            f"dataset `{final.name}` has no `keys`, so its changes cannot be merged",
            "name the `keys`, or set `mode: append_only` to keep every event as a row",
        )
    if not final.sequence_by and final.format != "dms" and final.extracts is None:
        yield Problem(
            path,
            "POLYNYA-CFG-015",
            f"dataset `{final.name}` has no `sequence_by`, so its events have no order",
            "name the columns that order the events, or set `mode: append_only`",
        )


def _unnamed_columns(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if not final.delivery.has_header and not final.columns:
        yield Problem(
            path,
            "POLYNYA-CFG-008",
            f"dataset `{final.name}` has no `columns`, and its files have no header line",
            "name all columns with their types, in the order of the files",
        )
    if final.format == "dms" and "Op" in final.columns:
        yield Problem(
            (*path, "columns"),
            "POLYNYA-CFG-016",
            "`Op` is no column of the table: it holds the operation",
            "take it out of `columns`",
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
    for key in ("initial_load", "apply_as_truncates", "ignore_null_updates"):
        if getattr(final, key):
            yield Problem(
                (*path, key),
                code,
                "has no meaning with `extracts`: each of them holds the whole table",
                "take one out",
            )
    if final.mode == "append_only":
        yield Problem(
            (*path, "mode"), code, "`append_only` compares nothing, `extracts` do", "take one out"
        )
    compared = {*(extracts.check_columns or ()), *filter(None, (extracts.updated_at,))}
    for column in sorted(compared & {*final.keys, *final.except_columns}):
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
    if final.track_history_columns and final.track_history_except:
        yield Problem(
            (*path, "track_history_except"),
            code,
            "`track_history_columns` and `track_history_except` exclude each other",
            "keep one of the two",
        )
    if isinstance(final.ignore_null_updates, tuple):
        for column in sorted({*final.keys, *final.except_columns} & {*final.ignore_null_updates}):
            yield Problem(
                (*path, "ignore_null_updates"),
                code,
                f"column {shown(column)} is a key or excepted, so it has no value to keep",
                "take it out of `ignore_null_updates`",
            )
    dropped = set(final.except_columns)
    for key, why in (("keys", "is a key"), ("track_history_columns", "is tracked")):
        for column in sorted(dropped & set(getattr(final, key))):
            yield Problem(
                (*path, "except_columns"),
                code,
                f"column {shown(column)} {why} and cannot be excepted",
                f"take it out of `except_columns` or out of `{key}`",
            )
    for key in ("keys", "sequence_by", "except_columns"):
        for column, count in Counter(getattr(final, key)).items():
            if count > 1:
                yield Problem((*path, key), code, f"column {shown(column)} is named twice")
    if final.mode == "append_only":
        for key in _MERGE_ONLY:
            if getattr(dataset, key):
                yield Problem(
                    (*path, key), code, "has no meaning with `mode: append_only`", "take one out"
                )
