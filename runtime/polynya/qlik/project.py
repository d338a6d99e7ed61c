"""A Qlik Talend data integration project: its folder, its bindings, and its tasks in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from polynya.model.error_catalogue.qlik import SOURCE_UNREADABLE, UNBOUND
from polynya.model.errors import ConfigError
from polynya.qlik.documents import QlikDocument, QlikValue, yaml_document
from polynya.qlik.expressions import DIALECTS
from polynya.qlik.settings import DocumentKind
from polynya.qlik.sources import PROJECT_FILE, QlikFiles
from polynya.qlik.translation import Translation

_TASKS: Final = "qtcp_tasks/"
_BINDING: Final = re.compile(r"\{\{([^{}]{1,300})\}\}")
_TASK_FILES: Final[dict[str, DocumentKind]] = {
    "task.yaml": "task", "sourceSelection.yaml": "selection", "transformationRules.yaml": "rules",
    "schedule.yaml": "schedule", "model.yaml": "model",
}  # fmt: skip
_FOLDERS: Final[dict[str, DocumentKind]] = {
    "datasets": "dataset", "transformationDataFlows": "flow",
}  # fmt: skip
_EMPTY: Final = QlikDocument("", QlikValue({}, (), ""))
_MAX_BINDINGS: Final = 10


@dataclass(slots=True)
class QlikTask:
    """The documents of a task, and what it became.

    Attributes:
        folder: the name of its folder.
        made: the name of the task that others read, "" while there is none.
        schema: the schema of the tables that it became.
        prefix: what stands before their names.
    """

    folder: str
    documents: dict[str, QlikDocument] = field(default_factory=dict)
    datasets: list[QlikDocument] = field(default_factory=list)
    flows: list[QlikDocument] = field(default_factory=list)
    made: str = ""
    schema: str = ""
    prefix: str = ""

    @property
    def root(self) -> QlikValue:
        """The values of `task.yaml`."""
        return self.documents.get("task.yaml", _EMPTY).root

    def document(self, file: str) -> QlikValue:
        """The values of another file; without any if there is no such file."""
        return self.documents.get(file, _EMPTY).root

    @property
    def id(self) -> str:
        """How other tasks name it."""
        return self.root.text("properties", "id") or self.folder

    @property
    def type(self) -> str:
        """Its type in the words of Qlik."""
        return self.root.text("properties", "type")

    @property
    def where(self) -> str:
        """The place of its definition."""
        return (
            self.documents["task.yaml"].root.where if "task.yaml" in self.documents else self.folder
        )

    def inputs(self) -> list[str]:
        """The ids of the tasks that it reads, in the order in which they are named."""
        selection = self.document("sourceSelection.yaml")
        found = [
            item.text("sourceTask")
            for key in ("includePatterns", "explicitlySelected")
            for item in selection.items(key)
        ]
        for dataset in self.datasets:
            found += [
                item.text("taskId") for item in dataset.root.items("properties", "inputDatasets")
            ]
        return [name for name in dict.fromkeys(found) if name and name != self.id]


@dataclass(slots=True)
class QlikProject:
    """All of a project, read and not yet translated.

    Attributes:
        values: the value of each variable.
        source_types: the type of the connection that a variable names, in the words of Qlik.
        database: the type of a database whose type the export does not say, None for a loss.
    """

    made: Translation
    root: QlikDocument
    tasks: list[QlikTask]
    bindings: list[QlikDocument]
    values: dict[str, str]
    source_types: dict[str, str]
    database: str | None = None

    @property
    def dialect(self) -> str:
        """The dialect in which expressions are written, as sqlglot calls it."""
        return DIALECTS.get(self.root.root.text("properties", "platformType"), "spark")

    def task(self, id_: str) -> QlikTask | None:
        """The task of an id, or of a name."""
        return next((task for task in self.tasks if id_ in {task.id, task.folder}), None)

    def bound(self, value: QlikValue | None, owner: str) -> str:
        """The text of a value with its variables, "" where one has no value, which is a loss."""
        if value is None or not isinstance(value.content, str):
            return ""
        value.used = True
        text = value.content
        for _ in range(_MAX_BINDINGS):
            names = _BINDING.findall(text)
            if not names or text.startswith("{{id("):
                break
            missing = [name for name in names if name not in self.values]
            if missing:
                self.made.report.add(
                    owner, "lost", value.where, value.name,
                    f"the variable {missing[0]} has no value in this export",
                    todo="export with binding values, or write the setting", code=UNBOUND.code,
                )  # fmt: skip
                return ""
            text = _BINDING.sub(lambda found: self.values[found[1]], text)
        return text


def read_project(files: QlikFiles, made: Translation) -> QlikProject:
    """The documents of a project. A file that cannot be read is a loss, and the rest is read.

    Raises:
        ConfigError: POLYNYA-QLK-002 and others, the project file itself cannot be read.
    """
    for path, reason in sorted(files.left_out.items()):
        made.report.add(path, "lost", path, "file", reason, code=SOURCE_UNREADABLE.code)
    root = yaml_document(files.files[PROJECT_FILE], PROJECT_FILE)
    project = QlikProject(made, root, [], [], {}, {})
    by_folder: dict[str, QlikTask] = {}
    for path, content in sorted(files.files.items()):
        if path == PROJECT_FILE:
            continue
        try:
            document = yaml_document(content, path)
        except ConfigError as error:
            made.report.add(
                path, "lost", error.where or path, "file", error.message,
                code=SOURCE_UNREADABLE.code,
            )  # fmt: skip
            continue
        _place(project, by_folder, path, document)
    project.tasks = list(by_folder.values())
    return project


def _place(
    project: QlikProject, by_folder: dict[str, QlikTask], path: str, document: QlikDocument
) -> None:
    parts = path.split("/")
    if path in {"bindings.json", "qtcp_bindings_definition.json"}:
        project.bindings.append(document)
        if path == "bindings.json":
            for name, value in document.root.entries("variables"):
                value.used = True
                project.values[name] = value.content if isinstance(value.content, str) else ""
        for name, value in document.root.entries("connectionProperties"):
            if kind := value.text("type"):
                project.source_types[name] = kind
        return
    if path.startswith(_TASKS) and len(parts) in {3, 4}:
        task = by_folder.setdefault(parts[1], QlikTask(parts[1]))
        if len(parts) == 3 and parts[2] in _TASK_FILES:
            task.documents[parts[2]] = document
            return
        if len(parts) == 4 and _FOLDERS.get(parts[2]) == "dataset":
            task.datasets.append(document)
            return
        if len(parts) == 4 and _FOLDERS.get(parts[2]) == "flow":
            task.flows.append(document)
            return
    reason = (
        "defaults of new tasks concern the editor of Qlik"
        if path == f"{_TASKS}newTaskDefaults.yaml"
        else "not a file of a project that the import knows"
    )
    project.made.report.add(path, "lost", path, "file", reason)
    project.made.lose(document.root, path, reason)


def finish(project: QlikProject) -> None:
    """Give every value of every document its line."""
    made = project.made
    made.sweep(project.root, "project", "project")
    for document in project.bindings:
        made.sweep(document, "bindings", "bindings")
    for task in project.tasks:
        for file, document in task.documents.items():
            made.sweep(document, _TASK_FILES[file], task.folder, translated=bool(task.made))
        for document in task.datasets:
            made.sweep(document, "dataset", task.folder, translated=bool(task.made))
        for document in task.flows:
            made.sweep(document, "flow", task.folder, translated=bool(task.made))


def in_order(tasks: list[QlikTask]) -> list[QlikTask]:
    """The tasks, each after those that it reads; a circle stays in the order of its names."""
    by_id = {task.id: task for task in tasks} | {task.folder: task for task in tasks}
    ordered: list[QlikTask] = []
    waiting = list(tasks)
    while waiting:
        ready = [
            task for task in waiting
            if all(by_id.get(id_) not in waiting or by_id.get(id_) is task for id_ in task.inputs())
        ] or waiting[:1]  # fmt: skip
        ordered += ready
        waiting = [task for task in waiting if task not in ready]
    return ordered


def described(task: QlikTask) -> tuple[str, ...]:
    """The comments of a task file."""
    text: Any = task.root.text("properties", "description")
    return tuple(line for line in (f"From {task.where}, {task.type}", text) if line)
