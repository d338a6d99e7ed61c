"""Settings that the format of a task does not take, lacks, or cannot have together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polynya.model.config.delivery import DEFAULT_DELIMITER, DELIVERY_SETTINGS, Delivery
from polynya.model.config.settings import DISCOVERING
from polynya.model.config.task import StorageTask
from polynya.model.contract.identifiers import shown
from polynya.model.documents.problems import Problem


def format_problems(task: StorageTask) -> Iterator[Problem]:
    """Yield settings that the format of a task does not take, or lacks."""
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
