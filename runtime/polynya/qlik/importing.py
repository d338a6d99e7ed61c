"""The import from Qlik: from the files of an export to those of a project, with a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from polynya.model.error_catalogue.qlik import NOT_VALID, SOURCE_REFUSED, SOURCE_UNREADABLE
from polynya.model.errors import ConfigError
from polynya.qlik import replicate
from polynya.qlik.documents import json_document
from polynya.qlik.landing import landing_task, registered_task, storage_task
from polynya.qlik.output import identifier
from polynya.qlik.project import QlikProject, QlikTask, finish, in_order, read_project
from polynya.qlik.schedules import add_automations
from polynya.qlik.sources import PROJECT_FILE, QlikFiles, read_source
from polynya.qlik.transforms import mart_task, transform_task
from polynya.qlik.translation import Translation


def _replication(project: QlikProject, task: QlikTask) -> bool:
    return landing_task(project, task) and storage_task(project, task, task.made)


#: What each type of task becomes.
TRANSLATIONS: Final[Mapping[str, Callable[[QlikProject, QlikTask], bool]]] = {
    "LAKE_LANDING": landing_task,
    "LANDING": landing_task,
    "LANDING_SAAS_MANAGED": landing_task,
    "REPLICATION": _replication,
    "STORAGE": storage_task,
    "LAKEHOUSE_STORAGE": storage_task,
    "ICEBERG_STORAGE": storage_task,
    "REGISTERED_DATA": registered_task,
    "TRANSFORM": transform_task,
    "DATAMART": mart_task,
}

#: Why tasks of the other types are lost, and what to do by hand.
LOST_TASKS: Final[Mapping[str, tuple[str, str]]] = {
    "REPLICATE_LANDING": (
        "the export does not say where Replicate writes its files",
        "write a task of `kind: storage` with `format: replicate`",
    ),
    "STREAMING_LAKE_LANDING": (
        "streams are not translated", "write a task of `kind: streaming_landing`",
    ),
    "STREAMING_LANDING": (
        "streams are not translated", "write a task of `kind: streaming_landing`",
    ),
    "STREAMING_TRANSFORM": (
        "streams are not translated", "write a task of `kind: streaming_transform`",
    ),
    "ICEBERG_TRANSFORM": (
        "streams are not translated", "write a task of `kind: streaming_transform`",
    ),
    "LAKEHOUSE_MIRROR": ("mirrors are not translated", "write a task of `kind: mirror`"),
    "MIRROR": ("mirrors are not translated", "write a task of `kind: mirror`"),
    "QVD_STORAGE": ("QVD files belong to Qlik", "let Qlik read the tables"),
    "KNOWLEDGE_MART": ("Polynya keeps no vectors", ""),
    "FILE_BASED_KNOWLEDGE_MART": ("Polynya keeps no vectors", ""),
}  # fmt: skip


def imported(place: Path, database: str | None = None) -> Translation:
    """Translate an export: a folder, a ZIP archive, or a JSON file of Replicate.

    Args:
        place: the folder or the file.
        database: the type of databases whose type a project does not say.

    Raises:
        ConfigError: POLYNYA-QLK-001, the source is refused; POLYNYA-QLK-002 and errors of YAML,
            its first file cannot be read.
    """
    files, made = read_source(place), Translation()
    if PROJECT_FILE in files.files:
        _project(files, made, database)
    else:
        _replicate(files, made, place)
    return made


def _project(files: QlikFiles, made: Translation, database: str | None) -> None:
    project = read_project(files, made)
    project.database = database
    root = project.root.root
    title = project.bound(root.at("properties", "name"), "project") or "imported"
    made.name = made.named(title, root.where, "project")
    root.text("properties", "type"), root.text("properties", "platformType")
    root.text("properties", "description")
    for task in in_order(project.tasks):
        translate = TRANSLATIONS.get(task.type)
        if translate is not None:
            translate(project, task)
            continue
        why, todo = LOST_TASKS.get(
            task.type, (f"tasks of type {task.type or '(none)'} are not known", "")
        )
        made.lose_task(task.folder, task.where, why, todo)
    add_automations(project)
    finish(project)


def _replicate(files: QlikFiles, made: Translation, place: Path) -> None:
    found = 0
    for path, content in sorted(files.files.items()):
        try:
            document = json_document(content, path)
        except ConfigError as error:
            if len(files.files) == 1:
                raise
            made.report.add(path, "lost", error.where or path, "file", error.message,
                            code=SOURCE_UNREADABLE.code)  # fmt: skip
            continue
        if replicate.is_replicate(document):
            found += 1
            replicate.translate(document, made)
        else:
            made.report.add(path, "lost", path, "file", "not an export of Replicate")
    for path, reason in files.left_out.items():
        made.report.add(path, "lost", path, "file", reason, code=SOURCE_UNREADABLE.code)
    if not found:
        raise SOURCE_REFUSED("it has neither a Qlik project nor tasks of Replicate",
                             where=str(place))  # fmt: skip
    made.name = identifier(place.stem)


def without_refused(made: Translation, errors: list[ConfigError]) -> bool:
    """Take out the tasks that the check of the project refuses; whether there were any."""
    refused = False
    for error in errors:
        file = (error.where or "").partition(":")[0]
        name = file.removeprefix("tasks/").removesuffix(".yml")
        if not file.startswith("tasks/"):
            continue
        owner, where = made.sources.get(name, (name, file))
        made.report.add(
            owner, "lost", where, f"task {name}", error.message, code=NOT_VALID.code,
            todo=error.fix or "write the task by hand",
        )  # fmt: skip
        refused = made.tasks.pop(name, None) is not None or refused
        if all(made.sources[task][0] != owner for task in made.tasks):
            made.report.take_back(owner)
    return refused
