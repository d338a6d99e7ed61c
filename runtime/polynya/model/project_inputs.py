"""Tasks of other projects that transforms read: `{project: crm_core, task: customers}`.

The other project is the folder `projects/crm_core` of this one, or a link to it, so that a pushed
configuration has it too. Its tables are found as its own runs find them, in the catalog and
warehouse that both share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from polynya.model.config.derived import (
    DerivedTask,
    ForeignTask,
    ProjectInput,
    ReadingTask,
)
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.target import ResolvedTarget
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_kinds import Task
from polynya.model.documents.files import DocumentFile
from polynya.model.documents.problems import Problem, located, suggest
from polynya.model.error_catalogue.derived import PROJECT_INPUT_REFUSED
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.names import shown

LoadedTask: TypeAlias = Task | RegisteredTask
#: The folder of a project that holds those from which its transforms read.
PROJECT_FOLDER: Final = "projects"
#: So many projects may read one through another.
MAX_PROJECTS_DEEP: Final = 4


@dataclass(frozen=True, slots=True)
class OtherProject:
    """A project that another one reads: where it keeps its tables, and the tasks that make them.

    `errors` are those of its files.
    """

    target: ResolvedTarget
    tasks: tuple[StorageTask, ...]
    errors: tuple[ConfigError, ...] = ()


@dataclass(slots=True)
class ProjectInputs:
    """The tasks of other projects that the tasks of one read.

    `load` reads the project in a folder, and raises ConfigErrors. `through` are the folders of the
    projects that are being read, this one the last.
    """

    directory: Path
    load: Callable[[Path], OtherProject]
    target: ResolvedTarget | None
    through: tuple[Path, ...]
    found: dict[str, ForeignTask] = field(default_factory=dict)
    _read: dict[str, OtherProject | ConfigError] = field(default_factory=dict)

    def find(
        self, written: Iterable[tuple[object, DocumentFile]], errors: list[ConfigError]
    ) -> Mapping[str, ForeignTask]:
        """The tasks, by `project/task`; `errors` gets why others are none."""
        for reader, file in written:
            for index, item in enumerate(reader.from_ if isinstance(reader, ReadingTask) else ()):
                if isinstance(item, ProjectInput):
                    task = self._task(item)
                    if isinstance(task, ConfigError):
                        problem = Problem(("from", index), task)
                        errors.extend(located([problem], file.document, file.shown_as))
                    else:
                        self.found[str(item)] = task
        return self.found

    def _task(self, item: ProjectInput) -> ForeignTask | ConfigError:
        project = self._project(item.project)
        if isinstance(project, ConfigError):
            return project
        tasks = {task.name: task for task in project.tasks}
        if item.task in tasks:
            return ForeignTask.of(tasks[item.task], item.project)
        fix = suggest(item.task, sorted(tasks)) or "name a task that has tables"
        because = ""
        if project.errors:
            because = f"; a file there has an error: {project.errors[0]}"
        return PROJECT_INPUT_REFUSED(
            f"no task with tables is called {shown(item.task)} in the project "
            f"{shown(item.project)}{because}",
            fix=fix,
        )

    def _project(self, name: str) -> OtherProject | ConfigError:
        if name not in self._read:
            self._read[name] = self._loaded(name)
        return self._read[name]

    def _loaded(self, name: str) -> OtherProject | ConfigError:
        folder = self.directory / PROJECT_FOLDER / name
        if not folder.is_dir():
            return PROJECT_INPUT_REFUSED(
                f"there is no folder `{PROJECT_FOLDER}/{name}`",
                fix="put the other project there, or a symbolic link to its folder",
            )
        place = folder.resolve()
        if place in self.through or len(self.through) > MAX_PROJECTS_DEEP:
            chain = " → ".join(one.name for one in (*self.through, place))
            return PROJECT_INPUT_REFUSED(
                f"the projects read each other: {chain}",
                fix="move the tables between them to one of the projects",
            )
        try:
            project = self.load(folder)
        except ConfigErrors as refused:
            first = refused.errors[0]
            return PROJECT_INPUT_REFUSED(
                f"the project {shown(name)} cannot be read: {first}", fix=first.fix
            )
        if self.target is not None and not shares_tables(self.target, project.target):
            return PROJECT_INPUT_REFUSED(
                f"the project {shown(name)} has another catalog or warehouse in its target "
                f"{shown(project.target.name)}",
                fix="give the targets of both projects the same `warehouse` and `catalog`, or read "
                "its tables as registered data",
            )
        return project


def without_own_tables(
    loaded: Iterable[tuple[LoadedTask, DocumentFile]], errors: list[ConfigError]
) -> list[tuple[LoadedTask, DocumentFile]]:
    """Leave out readers of a table that this project makes itself: a table has one owner.

    `errors` gets the reason for each.
    """
    tasks = list(loaded)
    own = {table for task, _ in tasks if isinstance(task, StorageTask) for table in _tables(task)}
    kept = []
    for task, file in tasks:
        reads = task.reads if isinstance(task, DerivedTask) else ()
        foreign = [read for read in reads if isinstance(read, ForeignTask)]
        taken = [(table, read) for read in foreign for table in sorted(own & _tables(read))]
        for table, read in taken[:1]:
            error = PROJECT_INPUT_REFUSED(
                f"{shown(table)} is a table of both this project and {read.name}",
                fix="give one of the two tasks another `schema` or `internal_schema`",
            )
            errors.extend(located([Problem(("from",), error)], file.document, file.shown_as))
        kept += [] if taken else [(task, file)]
    return kept


def shares_tables(one: ResolvedTarget, other: ResolvedTarget) -> bool:
    """Whether two targets keep their tables in one catalog and warehouse."""
    return (one.catalog_type, one.catalog_uri, one.catalog_id, str(one.warehouse)) == (
        other.catalog_type,
        other.catalog_uri,
        other.catalog_id,
        str(other.warehouse),
    )


def _tables(task: StorageTask) -> set[str]:
    """The names of the internal tables that a task declares, in lower case."""
    return {resolved(task, dataset).relations.internal.lower() for dataset in task.datasets}
