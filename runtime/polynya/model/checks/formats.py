"""Settings that the format of a task does not take, lacks, or cannot have together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from polynya.model.config.delivery import Delivery
from polynya.model.config.task import StorageTask
from polynya.model.documents.problems import Problem
from polynya.model.formats.registry import all_rules, rules_of


def format_problems(task: StorageTask) -> Iterator[Problem]:
    """Yield settings that the format of a task does not take, or lacks."""
    code = "POLYNYA-CFG-019"
    rules = rules_of(task.landing.format)
    finding = [one.name for one in all_rules() if one.finds_tables]
    native = not rules.finds_tables
    if native and not task.datasets:
        yield Problem(
            (),
            "POLYNYA-CFG-008",
            f"format `{task.landing.format}` needs `datasets`: at least one",
            "add `datasets:` with a `name`, `keys` and `sequence_by`",
        )
    for key in ("include", "exclude"):
        if native and key in task.model_fields_set:
            yield Problem((key,), code, _only_for(finding), "use `path` of the dataset")
    for index, dataset in enumerate(task.datasets):
        for key in ("source",) if native else ("path", "initial_load", "extracts"):
            if getattr(dataset, key) is not None:
                wanted = _only_for(finding) if native else f"not for {_formats(finding)}"
                yield Problem(("datasets", index, key), code, wanted, "take the line out")
    if rules.in_order:
        yield from _in_order_problems(task)
    policies = task.defaults.schema_evolution
    if native and policies is not None and policies.new_dataset is not None:
        place = ("defaults", "schema_evolution", "new_dataset")
        yield Problem(place, code, _only_for(finding), "take the line out")
    yield from _delivery_problems(task)
    for problem in rules.check_landing(task.landing):
        yield replace(problem, path=("landing", *problem.path))


def _in_order_problems(task: StorageTask) -> Iterator[Problem]:
    """What only files in any order may have: loads of their own, and several folders."""
    code = "POLYNYA-CFG-019"
    for index, dataset in enumerate(task.datasets):
        place = ("datasets", index)
        for key in ("initial_load", "extracts"):
            if getattr(dataset, key) is not None:
                message = f"not for format `{task.landing.format}`"
                yield Problem((*place, key), code, message, "take the line out")
        folder, _, name = (dataset.path or "*").rpartition("/")
        if name != "*" or set(folder) & set("*?["):
            yield Problem(
                (*place, "path"),
                code,
                f"format `{task.landing.format}` reads all of one folder",
                "write `FOLDER/*`",
            )


def _delivery_problems(task: StorageTask) -> Iterator[Problem]:
    landing = task.landing
    taken = rules_of(landing.format).landing_settings
    for key in Delivery.model_fields:
        if key not in landing.model_fields_set:
            continue
        if key not in taken:
            takers = [rules.name for rules in all_rules() if key in rules.landing_settings]
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
