"""What a well-formed task can still have wrong: settings that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polynya.model.checks.datasets import dataset_problems
from polynya.model.checks.formats import format_problems
from polynya.model.checks.mapping import written_problems
from polynya.model.config.engines.standalone import UNREACHABLE, SparkEngine
from polynya.model.config.task import StorageTask
from polynya.model.contract.identifiers import shown
from polynya.model.documents.problems import Problem


def task_problems(task: StorageTask) -> Iterator[Problem]:
    """Yield the problems of one task that need no other file."""
    yield from format_problems(task)
    yield from _duplicates(task)
    if isinstance(task.engine, SparkEngine) and task.engine.is_unreachable:
        yield Problem(("engine",), "POLYNYA-CFG-016", *UNREACHABLE)
    yield from written_problems(task, task.defaults, ("defaults",))
    for index, dataset in enumerate(task.datasets):
        yield from dataset_problems(task, dataset, ("datasets", index))


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
