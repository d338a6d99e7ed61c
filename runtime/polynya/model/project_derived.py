"""A transform becomes a storage task whose rows come from queries over tables of other tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from polynya.model.config.derived import (
    DerivedDataset,
    DerivedQuery,
    DerivedTask,
    ProjectInput,
    TransformTask,
)
from polynya.model.config.fields import Frozen
from polynya.model.config.mart import DataMart
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.settings import Dataset, DatasetSettings, Landing
from polynya.model.config.task import StorageTask
from polynya.model.documents.problems import Problem, suggest
from polynya.model.documents.yaml import read_text
from polynya.model.error_catalogue.derived import (
    QUERY_FILE_REFUSED,
    TRANSFORM_CYCLE,
    TRANSFORM_INPUT_UNKNOWN,
)
from polynya.model.errors import ConfigError
from polynya.model.formats import QUERY
from polynya.model.names import relative_path_problem, shown

#: The folder of a project that holds the texts of queries.
SQL_FOLDER: Final = "sql"
#: The folder of a project with queries that people have saved; no task reads them.
SAVED_FOLDER: Final = "queries"
#: Settings that a dataset of a storage task has under the same name.
SAME_SETTINGS: Final = (
    "keys", "history", "delete_mode", "partition_by", "sort_by", "target_file_size",
    "changes_retention", "format_version", "maintenance",
)  # fmt: skip


def is_query_file(name: str) -> bool:
    """Whether a file of this name holds a query, in a folder of queries."""
    return name.endswith(".sql") and not name.startswith(".")


def query_files(folder: Path) -> list[Path]:
    """The files of queries in a folder, in name order; none without the folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if is_query_file(path.name) and path.is_file())


def in_order(
    transforms: Mapping[str, TransformTask | DataMart], sources: Collection[str]
) -> tuple[list[str], dict[str, list[Problem]]]:
    """Names of the transforms, each after those that it reads, and what is wrong with the others.

    `sources` are the names of the other tasks with tables.
    """
    order: list[str] = []
    problems: dict[str, list[Problem]] = {}
    waiting = dict(transforms)
    while ready := [
        name
        for name, task in waiting.items()
        if all(read in sources or read in order for read in task.inputs)
    ]:
        order += ready
        for name in ready:
            del waiting[name]
    for name, task in waiting.items():
        problems[name] = list(_why_not(task, transforms, sources))
    return order, problems


def _why_not(
    task: TransformTask | DataMart,
    transforms: Mapping[str, TransformTask | DataMart],
    sources: Collection[str],
) -> Iterator[Problem]:
    """Yield the inputs that do not exist, and the circle in which a transform reads itself.

    A transform that only reads one with an error has none of its own.
    """
    known = sorted({*sources, *transforms} - {task.name})
    for index, read in enumerate(task.inputs):
        # The error of a task of another project is that of reading this project.
        is_own = not isinstance(task.from_[index], ProjectInput)
        if is_own and read not in sources and read not in transforms:
            error = TRANSFORM_INPUT_UNKNOWN(task=shown(read), fix=suggest(read, known))
            yield Problem(("from", index), error)
    circle = _circle(task.name, transforms)
    if circle:
        path = " → ".join(circle)
        yield Problem(("from", task.inputs.index(circle[1])), TRANSFORM_CYCLE(path=path))


def _circle(name: str, transforms: Mapping[str, TransformTask | DataMart]) -> list[str]:
    """The way from a transform through its inputs back to itself; empty without one."""
    ways = [[name]]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        task = transforms.get(way[-1])
        for read in () if task is None else task.inputs:
            if read == name:
                return [*way, name]
            if read not in seen:
                seen.add(read)
                ways.append([*way, read])
    return []


def as_derived(
    task: TransformTask,
    sources: Mapping[str, StorageTask],
    defaults: DatasetSettings,
    directory: Path,
    registered: Mapping[str, RegisteredTask] = MappingProxyType({}),
) -> DerivedTask | list[Problem]:
    """The task as a run has it, or why its queries cannot be read.

    `sources` and `registered` have every task that it reads, `defaults` are those of the project,
    and `directory` is its folder.
    """
    queries: dict[str, DerivedQuery] = {}
    views: dict[str, DerivedQuery] = {}
    problems: list[Problem] = []
    for index, dataset in enumerate(task.datasets):
        path = ("datasets", index, "sql" if dataset.flow is None else "flow")
        try:
            query = _query(dataset, directory, path)
            if dataset.materialize == "view":
                views[dataset.name] = query
            else:
                queries[dataset.name] = query.model_copy(update={"expect": dataset.expect})
        except ConfigError as error:
            problems.append(Problem(path, error))
    if problems:
        return problems
    tables = [dataset for dataset in task.datasets if dataset.materialize == "table"]
    made = derived_task(task, tables, queries, sources, defaults, registered=registered)
    return made.model_copy(update={"query_views": views})


def at_its_dataset(problem: Problem, task: DerivedTask) -> Problem:
    """A problem of a table of a transform, with the path of its dataset among tables and views."""
    if problem.path[:1] != ("datasets",) or not isinstance(problem.path[1], int):
        return problem
    query = task.queries.get(task.datasets[problem.path[1]].name)
    if query is None or query.path[:1] != ("datasets",):
        return problem
    return replace(problem, path=(*query.path[:2], *problem.path[2:]))


def derived_task(
    task: TransformTask | DataMart,
    datasets: Sequence[DerivedDataset],
    queries: Mapping[str, DerivedQuery],
    sources: Mapping[str, StorageTask],
    defaults: DatasetSettings,
    *,
    registered: Mapping[str, RegisteredTask] = MappingProxyType({}),
) -> DerivedTask:
    """The task of some tables with their queries."""
    named = dict.fromkeys(task.inputs)
    reads = [sources[name] for name in named if name not in registered]
    below = (read.last_stage for read in reads if isinstance(read, DerivedTask))
    return DerivedTask(
        apiVersion=task.apiVersion,
        kind="storage",
        name=task.name,
        schema_=task.schema_ or task.name,
        # Not checked: nothing of it lands, and no file may name this format.
        landing=Landing.model_construct(path=f".transforms/{task.name}", format=QUERY.name),
        datasets=tuple(_dataset(dataset) for dataset in datasets),
        defaults=DatasetSettings.model_validate(written(defaults, SAME_SETTINGS[1:])),
        queries=dict(queries),
        reads=tuple(reads),
        registered=tuple(registered[name] for name in named if name in registered),
        depth=1 + max(below, default=0),
        **written(task, ("prefix", "internal_schema", "views", "engine", "cluster")),
    )


def _dataset(dataset: DerivedDataset) -> Dataset:
    settings = written(dataset, SAME_SETTINGS)
    return Dataset.model_validate({"name": dataset.name, "mode": "merge", **settings})


def written(settings: Frozen, names: Sequence[str]) -> dict[str, Any]:
    """Those of the settings that are written, so that defaults stand for all others."""
    return {name: getattr(settings, name) for name in names if name in settings.model_fields_set}


def _query(dataset: DerivedDataset, directory: Path, path: Sequence[str | int]) -> DerivedQuery:
    """The query of a dataset. Raises ConfigError for a file that is not the project's."""
    place, text = tuple(path), (dataset.sql or "").strip()
    if dataset.flow is not None:
        return DerivedQuery(path=place, flow=dataset.flow, incremental=dataset.incremental)
    if not names_query_file(text):
        return DerivedQuery(path=place, text=dataset.sql or "", incremental=dataset.incremental)
    query = read_query(text, directory)
    return DerivedQuery(path=place, text=query, file=text, incremental=dataset.incremental)


def names_query_file(sql: str) -> bool:
    """Whether the setting `sql` names a file, and is not the text of a query itself."""
    text = sql.strip()
    return text.endswith(".sql") and not any(character.isspace() for character in text)


def read_query(name: str, directory: Path) -> str:
    """The text of a file of the folder `sql`. Raises ConfigError for any other file."""
    text = name.strip()
    folder, _, file = text.rpartition("/")
    problem = relative_path_problem(text)
    if problem is None and (folder != SQL_FOLDER or not is_query_file(file)):
        problem = f"{shown(text)} is not a file of the folder `{SQL_FOLDER}`"
    if problem is not None:
        raise QUERY_FILE_REFUSED(problem, fix=f"move it to `{SQL_FOLDER}/`, such as `sql/{file}`")
    if not (directory / text).is_file():
        there = [f"{SQL_FOLDER}/{one.name}" for one in query_files(directory / SQL_FOLDER)]
        fix = suggest(text, there) or f"write the query to {shown(text)}"
        raise QUERY_FILE_REFUSED(f"the file {shown(text)} does not exist", fix=fix)
    return read_text(directory / text, text)
