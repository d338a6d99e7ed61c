"""Reading a project folder: `polynya.yml`, tasks, connections, bindings; all errors at once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from polynya.model.bindings import ProjectReader, TargetBindings, read_bindings
from polynya.model.checks import cluster_problems, task_problems, unsecured_catalogs
from polynya.model.clashes import without_clashes
from polynya.model.config.capture import CaptureLanding
from polynya.model.config.connected import ConnectedCapture, connected
from polynya.model.config.connection import Connection
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask, ForeignTask, TransformTask
from polynya.model.config.http_connection import HttpConnection
from polynya.model.config.mart import DataMart
from polynya.model.config.mirror import ConnectedMirror, MirrorTask
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.server_connection import AnyConnection
from polynya.model.config.settings import DatasetSettings
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.config.target import Project, ResolvedTarget, choose_target, target_name
from polynya.model.config.task import StorageTask, merged, resolved
from polynya.model.config.task_kinds import FILE_KINDS, Task, Written
from polynya.model.config.template import TaskTemplate, TemplateInstance
from polynya.model.config.transform import StreamingTransform
from polynya.model.connections import (
    TargetConnection,
    connection_names,
    of_other_targets,
    read_connections,
    unused_settings,
    with_servers,
)
from polynya.model.documents.files import (
    DocumentFile,
    document_files,
    parse_file,
    parse_kinds,
)
from polynya.model.documents.problems import Problem, located
from polynya.model.documents.yaml import (
    MapNode,
    Node,
    ScalarNode,
    position_of,
    read_document,
    read_text,
)
from polynya.model.error_catalogue.configuration import NO_PROJECT
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.http_checks import api_of
from polynya.model.mirror_checks import connected_mirror
from polynya.model.notifications import LoadedNotification, read_notifications
from polynya.model.project_derived import as_derived, at_its_dataset, in_order
from polynya.model.project_inputs import OtherProject, ProjectInputs, without_own_tables
from polynya.model.project_marts import as_mart, of_mart
from polynya.model.project_parts import (
    entries,
    entry,
    is_read_at_use,
    with_folders,
    with_places,
    written_keys,
    written_passwords,
    written_properties,
    written_secrets,
    written_store_keys,
)
from polynya.model.project_templates import both_files, expanded
from polynya.model.project_transforms import (
    as_storage,
    of_transform,
    transform_problems,
    with_registry,
    with_storage_names,
)
from polynya.model.rule_checks import late_masks, placed, written_rule_keys
from polynya.model.stream_checks import capture_problems, connected_problems, landing_problems

PROJECT_FILES: Final = ("polynya.yml", "polynya.yaml", "polynya.json")
TASK_FOLDER: Final = "tasks"


@dataclass(frozen=True, slots=True)
class LoadedProject:
    """A project as read: its valid tasks, one target, and where everything is written.

    `tasks` are those that have tables, transforms after all that they read; `landings` are those
    that land streams, `captures` those that land databases, `mirrors` those that show tables
    elsewhere, `registered` those whose tables others maintain, `foreign` those of other projects
    that transforms read; a landing with `direct: true`
    is in the tasks that read it. `errors` is empty unless the project was loaded with
    `tolerant=True`. `files` maps the name of a task of any kind to its
    file, relative to `directory`; `templates` has that of the template of each instance.
    `effective` are the right connections, as the target has them.
    `variables` are those of the bindings that files name, with `file:line:col` of each place;
    `unused` are overrides and variables without effect, each as `file:line:col: why`.
    """

    directory: Path
    project: Project
    target: ResolvedTarget
    tasks: tuple[StorageTask, ...]
    files: Mapping[str, str]
    project_file: str
    project_document: Node = field(repr=False)
    errors: tuple[ConfigError, ...] = ()
    documents: Mapping[str, Node] = field(default_factory=dict, repr=False)
    templates: Mapping[str, str] = field(default_factory=dict, repr=False)
    landings: tuple[StreamingLanding, ...] = ()
    captures: tuple[ConnectedCapture, ...] = ()
    mirrors: tuple[ConnectedMirror, ...] = ()
    registered: tuple[RegisteredTask, ...] = ()
    foreign: tuple[ForeignTask, ...] = ()
    effective: Mapping[str, TargetConnection] = field(default_factory=dict, repr=False)
    bindings: TargetBindings = field(default_factory=TargetBindings, repr=False)
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    unused: tuple[str, ...] = ()
    notifications: tuple[LoadedNotification, ...] = ()

    @property
    def internal_schemas(self) -> set[str]:
        """The schemas of the tables of all tasks."""
        return {task.internal_schema or f"{task.schema_}_internal" for task in self.tasks}

    @property
    def connections(self) -> dict[str, AnyConnection]:
        """The settings of the right connections, as the target has them."""
        return {name: one.connection for name, one in self.effective.items()}

    @property
    def apis(self) -> dict[str, HttpConnection]:
        """The right connections to REST APIs, as the target has them."""
        return {
            name: one for name, one in self.connections.items() if isinstance(one, HttpConnection)
        }

    @property
    def works(self) -> tuple[Task, ...]:
        """The tasks of all kinds. Each kind reads what those before it write."""
        return (*self.landings, *self.captures, *self.tasks, *self.mirrors)

    @property
    def cluster_name(self) -> str:
        """The default cluster of an agent or a command."""
        return self.project.cluster or self.project.name

    def cluster_of(self, task: Task) -> str | None:
        """The cluster that a task belongs to; None where the project has one and does not say."""
        return task.cluster or self.project.cluster

    @property
    def stream_jars(self) -> frozenset[str]:
        """The groups of jars that streams need: `kafka`, and `msk` where its brokers ask IAM."""
        direct = [task.reads for task in self.tasks if isinstance(task, DirectTask)]
        kafka_sources = (task.source.kafka for task in (*self.landings, *direct))
        sources = [source for source in kafka_sources if source is not None]
        iam = any(source.asks_iam for source in sources)
        return frozenset((*(("kafka",) if sources else ()), *(("msk",) if iam else ())))

    def kind_of(self, task: str) -> str | None:
        """The `kind` of a task as its file has it; transforms and marts are storage tasks, too."""
        document = self.documents.get(task)
        found = document.entries.get("kind") if isinstance(document, MapNode) else None
        return str(found[1].value) if found and isinstance(found[1], ScalarNode) else None

    def where(self, task: str, *path: str | int) -> str:
        """Return `file:line:col` of a path in a task's file."""
        position = position_of(self.documents[task], path)
        place = self.files[task]
        if task in self.templates:
            place = both_files(place, self.templates[task])
        return f"{place}:{position.line}:{position.column}"

    def datasets(self) -> Iterator[ResolvedDataset]:
        """Yield the declared datasets of all tasks; tasks that find their tables may have more."""
        for task in self.tasks:
            for dataset in task.datasets:
                yield resolved(task, dataset)


def load_project(
    directory: Path,
    target: str | None = None,
    *,
    tolerant: bool = False,
    environment: Mapping[str, str] | None = None,
    base: Path | None = None,
    settled: Collection[str] = (),
    through: tuple[Path, ...] = (),
) -> LoadedProject:
    """Load a project folder.

    Args:
        directory: the folder that holds `polynya.yml`.
        target: name of the target; default `local`, or the only one there is.
        tolerant: leave broken task files out and list what is wrong in `errors`, so that one broken
            file never stops the tasks whose files are valid. The project file must be valid.
        environment: variables for `${env:NAME}`; default the process's own.
        base: what relative places are relative to; default `directory`.
        settled: files that are in force already, such as `tasks/users.yml`: of two that claim a
            name or a table, the other one is wrong. Else the one that comes first keeps it.
        through: the folders of the projects that read this one.

    Raises:
        ConfigErrors: with every error of every file.
    """
    environ = os.environ if environment is None else environment
    errors: list[ConfigError] = []
    project_file = _project_file(directory)
    names = target_names(directory)
    try:
        chosen_name = target_name(names, target, project_file) if names else None
    except ConfigError as error:
        raise ConfigErrors([error]) from None
    bindings: TargetBindings | None = TargetBindings()
    if chosen_name is not None:
        bindings = read_bindings(directory, chosen_name, names, environ, errors)
    if bindings is None:
        # Without them any connection might lead elsewhere.
        raise ConfigErrors(errors)
    reader = ProjectReader(environ, bindings, errors)

    read = reader.read(
        directory / project_file, project_file, is_read_at_use, of_other_targets(chosen_name)
    )
    project = parse_file(_of_target(read), Project, "project", errors) if read else None
    if read is not None:
        project = _checked(project, read, errors)

    known_targets = names if project is not None else None
    connections = read_connections(directory, chosen_name, known_targets, reader)
    begin = len(errors)
    read_files, named = _task_files(directory, reader, connections, settled, errors)
    all_files = expanded(read_files, directory, errors)
    written_tasks, broken = _written(all_files, project, base or directory, errors)
    errors[begin:] = sorted(errors[begin:], key=_file_of)
    named |= {name for task, _ in written_tasks if (name := _connection_of(task)) is not None}
    named |= {project.ask.connection} if project is not None and project.ask is not None else set()
    databases = {name: None if one is None else one.connection for name, one in connections.items()}
    others = [(task, file) for task, file in written_tasks if isinstance(task, RegisteredTask)]
    known = {task.name: task for task, _ in others}
    chosen, refused = _chosen(project, chosen_name, base or directory, project_file)
    other_projects = ProjectInputs(
        directory,
        partial(_other_project, chosen_name, environ, base, (*through, directory.resolve())),
        chosen,
        (*through, directory.resolve()),
    )
    foreign = other_projects.find(written_tasks, errors)
    works = _as_tasks(
        written_tasks,
        project,
        databases,
        directory,
        errors,
        registered=known,
        foreign=foreign,
        broken=broken,
    )
    loaded = without_own_tables(without_clashes([*works, *others], errors), errors)
    notifications = tuple(read_notifications(directory, reader))

    if project is None or read is None or not read.sound:
        raise ConfigErrors(errors)
    if chosen is None:
        raise ConfigErrors([*errors, *refused])
    if errors and not tolerant:
        raise ConfigErrors(errors)
    return LoadedProject(
        directory=directory,
        project=project,
        target=chosen,
        tasks=tuple(task for task, _ in loaded if isinstance(task, StorageTask)),
        landings=tuple(
            task for task, _ in loaded if isinstance(task, StreamingLanding) and not task.direct
        ),
        captures=tuple(task for task, _ in loaded if isinstance(task, ConnectedCapture)),
        mirrors=tuple(task for task, _ in loaded if isinstance(task, ConnectedMirror)),
        registered=tuple(task for task, _ in loaded if isinstance(task, RegisteredTask)),
        foreign=tuple(foreign.values()),
        project_file=project_file,
        project_document=read.document,
        effective=_reached(connections),
        bindings=bindings,
        variables={name: tuple(places) for name, places in reader.uses.items()},
        unused=tuple(unused_settings(_reached(connections), bindings, named, reader.uses)),
        notifications=notifications,
        files={
            task.name: file.instance[0] if file.instance else file.shown_as for task, file in loaded
        },
        templates={task.name: file.instance[1] for task, file in loaded if file.instance},
        errors=tuple(errors),
        documents={task.name: file.document for task, file in loaded},
    )


def _reached(
    connections: Mapping[str, TargetConnection | None],
) -> dict[str, TargetConnection]:
    """The connections without an error."""
    return {name: one for name, one in connections.items() if one is not None}


def _chosen(
    project: Project | None, name: str | None, base: Path, project_file: str
) -> tuple[ResolvedTarget | None, list[ConfigError]]:
    """The target, or why there is none; neither without a project file."""
    if project is None:
        return None, []
    try:
        return choose_target(project, name, base, project_file), []
    except ConfigError as error:
        return None, [error]


def _other_project(
    target: str | None,
    environment: Mapping[str, str],
    base: Path | None,
    through: tuple[Path, ...],
    folder: Path,
) -> OtherProject:
    """Read a project from which a transform reads. Raises ConfigErrors."""
    project = load_project(
        folder, target, tolerant=True, environment=environment, base=base, through=through
    )
    return OtherProject(project.target, project.tasks, project.errors)


def _task_files(
    directory: Path,
    reader: ProjectReader,
    connections: Mapping[str, TargetConnection | None],
    settled: Collection[str],
    errors: list[ConfigError],
) -> tuple[list[DocumentFile], set[str]]:
    """The files of tasks that can be read, settled ones first, and the connections they name."""
    files: list[DocumentFile] = []
    named: set[str] = set()
    paths = document_files(directory / TASK_FOLDER)
    for path in sorted(paths, key=lambda path: f"{TASK_FOLDER}/{path.name}" not in settled):
        file = reader.read(path, f"{TASK_FOLDER}/{path.name}", is_read_at_use)
        named |= set(connection_names(file)) if file else set()
        file = with_servers(file, connections, errors) if file else None
        files += [file] if file else []
    return files, named


def _file_of(error: ConfigError) -> str:
    """The file that an error names first: that of the instance for one of its template."""
    return (error.where or "").partition(":")[0].partition(",")[0]


def _connection_of(task: Written) -> str | None:
    """The connection that a task names outside of a slot."""
    if isinstance(task, MirrorTask):
        return task.target.place.connection
    return task.connection if isinstance(task, CaptureLanding) else None


def target_names(directory: Path) -> list[str]:
    """The targets that the project file of a folder names.

    Empty if it cannot be read, which loading the project reports.

    Raises:
        ConfigErrors: the folder does not have exactly one project file.
    """
    shown_as = _project_file(directory)
    try:
        document, _ = read_document(read_text(directory / shown_as, shown_as), shown_as)
    except ConfigError:
        return []
    return [name for name, _ in entries(entry(document, "targets"))]


def _of_target(file: DocumentFile) -> DocumentFile:
    """A project file without the targets that are not chosen and name what is not bound."""
    unread = {one.path[1] for one in file.unresolved}
    value = file.value
    targets = value.get("targets") if isinstance(value, dict) else None
    if not unread or not isinstance(value, dict) or not isinstance(targets, dict):
        return file
    kept = {name: target for name, target in targets.items() if name not in unread}
    return replace(file, value={**value, "targets": kept})


def _checked(
    project: Project | None, file: DocumentFile, errors: list[ConfigError]
) -> Project | None:
    """The project with the places of its rules; None if its file has a secret."""
    found = [*written_secrets(file.document), *written_rule_keys(file.document)]
    written = located(found, file.document, file.shown_as)
    errors.extend(written)
    project = None if written else project
    errors.extend(_unsecured(project, file))
    if project is None:
        return None
    rules = placed(project.rules, file.document, file.shown_as)
    return project.model_copy(update={"rules": rules})


def _unsecured(project: Project | None, file: DocumentFile) -> list[ConfigError]:
    problems = () if project is None else unsecured_catalogs(project)
    return located(problems, file.document, file.shown_as)


def _project_file(directory: Path) -> str:
    names = [name for name in PROJECT_FILES if (directory / name).is_file()]
    if len(names) == 1:
        return names[0]
    if names:
        message = f"more than one project file: {', '.join(names)}"
        raise ConfigErrors([NO_PROJECT(message, where=str(directory), fix="keep one of them")])
    raise ConfigErrors([NO_PROJECT(where=str(directory))])


def _task(
    file: DocumentFile, project: Project | None, base: Path, errors: list[ConfigError]
) -> Written | None:
    """The task of a file, None when there is something wrong with it."""
    task = parse_kinds(file, FILE_KINDS, errors)
    problems: list[Problem] = []
    if isinstance(task, StorageTask | StreamingTransform):
        rules = placed(task.rules, file.document, file.shown_as)
        task = task.model_copy(update={"rules": rules})
        problems = list(written_rule_keys(file.document))
    if isinstance(task, StorageTask):
        task = _with_defaults(task, project)
        problems += task_problems(task)
    elif isinstance(task, StreamingLanding):
        task, misplaced = with_places(task, base)
        problems = [*misplaced, *landing_problems(task)]
    elif isinstance(task, RegisteredTask):
        task, problems = with_folders(task, base)
    elif isinstance(task, CaptureLanding):
        problems = [*capture_problems(task), *written_keys(file.document)]
    elif task is None or isinstance(task, TaskTemplate | TemplateInstance):
        # The files of templates and instances were expanded before.
        return None
    problems += [*written_passwords(file.document), *written_properties(file.document)]
    problems += written_store_keys(file.document)
    if project is not None and not isinstance(task, RegisteredTask):
        problems += cluster_problems(task.cluster, project.cluster)
    errors.extend(located(problems, file.document, file.shown_as))
    return task if file.sound and not problems else None


def _written(
    files: Iterable[DocumentFile], project: Project | None, base: Path, errors: list[ConfigError]
) -> tuple[list[tuple[Written, DocumentFile]], set[str]]:
    """The tasks of some files, and the names that files with errors give theirs."""
    tasks: list[tuple[Written, DocumentFile]] = []
    broken: set[str] = set()
    for file in files:
        task = _task(file, project, base, errors)
        name = file.value.get("name") if isinstance(file.value, dict) else None
        if task:
            tasks.append((task, file))
        elif isinstance(name, str):
            broken.add(name)
    return tasks, broken


def _as_tasks(
    written: Iterable[tuple[Written, DocumentFile]],
    project: Project | None,
    connections: Mapping[str, AnyConnection | None],
    directory: Path,
    errors: list[ConfigError],
    *,
    registered: Mapping[str, RegisteredTask],
    foreign: Mapping[str, ForeignTask],
    broken: Collection[str],
) -> list[tuple[Task, DocumentFile]]:
    """The tasks: transforms as storage tasks, captures and mirrors with their connections.

    `broken` are names of tasks whose files have errors, which others need not repeat.
    """
    files = [(task, file) for task, file in written if not isinstance(task, RegisteredTask)]
    landings = {task.name: task for task, _ in files if isinstance(task, StreamingLanding)}
    tasks: list[tuple[Task, DocumentFile]] = []
    mirrors: list[tuple[MirrorTask, DocumentFile]] = []
    transforms: dict[str, tuple[TransformTask | DataMart, DocumentFile]] = {}
    for task, file in files:
        if isinstance(task, CaptureLanding):
            problems = list(connected_problems(task, connections))
            errors.extend(located(problems, file.document, file.shown_as))
            database = connections.get(task.connection)
            # A connection with errors has reported them itself.
            if not problems and isinstance(database, Connection):
                tasks.append((connected(task, database), file))
            continue
        if isinstance(task, StreamingLanding):
            landing, problems = api_of(task, connections)
            errors.extend(located(problems, file.document, file.shown_as))
            tasks += [] if landing is None else [(landing, file)]
            continue
        if isinstance(task, StorageTask):
            tasks.append((with_registry(task, landings.values()), file))
            continue
        if isinstance(task, MirrorTask):
            mirrors.append((task, file))
            continue
        if isinstance(task, TransformTask | DataMart):
            transforms[task.name] = (task, file)
            continue
        problems = list(transform_problems(task, landings))
        if not problems:
            storage = _with_defaults(as_storage(task, landings[task.from_]), project)
            problems = [of_transform(problem) for problem in task_problems(storage)]
            tasks += [] if problems else [(storage, with_storage_names(file))]
        errors.extend(located(problems, file.document, file.shown_as))
    all_tasks = [task for task, _ in tasks]
    late = {
        task.name: list(late_masks(task, all_tasks))
        for task in all_tasks
        if isinstance(task, StorageTask)
    }
    # One rule of the project may be too late for many tasks.
    errors.extend({str(one): one for found in late.values() for one in found}.values())
    tasks = [(task, file) for task, file in tasks if not late.get(task.name)]
    sources = {task.name: task for task, _ in tasks if isinstance(task, StorageTask)}
    tasks += _derived(
        transforms,
        project,
        sources,
        directory,
        errors,
        registered=registered,
        foreign=foreign,
        broken={*broken, *(_with_tables(files) - sources.keys())},
    )
    for mirror, file in mirrors:
        made = connected_mirror(mirror, sources, connections, project.name if project else "")
        if isinstance(made, ConnectedMirror):
            tasks.append((made, file))
        else:
            errors.extend(located(made, file.document, file.shown_as))
    return tasks


def _with_tables(files: Iterable[tuple[Written, DocumentFile]]) -> set[str]:
    """Names of the tasks that have tables where they have no error."""
    kinds = (StorageTask, StreamingTransform)
    return {task.name for task, _ in files if isinstance(task, kinds)}


def _derived(
    transforms: Mapping[str, tuple[TransformTask | DataMart, DocumentFile]],
    project: Project | None,
    sources: dict[str, StorageTask],
    directory: Path,
    errors: list[ConfigError],
    *,
    registered: Mapping[str, RegisteredTask],
    foreign: Mapping[str, ForeignTask],
    broken: Collection[str],
) -> list[tuple[Task, DocumentFile]]:
    """The transforms, each after those that it reads; `sources` gets those without an error.

    `broken` are names of tasks that have errors themselves.
    """
    defaults = DatasetSettings() if project is None else project.defaults
    written = {name: task for name, (task, _) in transforms.items()}
    order, wrong = in_order(written, {*sources, *registered, *foreign, *broken})
    readable: dict[str, StorageTask] = {**foreign, **sources}
    tasks: list[tuple[Task, DocumentFile]] = []
    for name in order:
        task, file = transforms[name]
        if not all(read in readable or read in registered for read in task.inputs):
            # One that it reads has an error of its own.
            continue
        made: DerivedTask | list[Problem]
        if isinstance(task, DataMart):
            made = as_mart(task, readable, defaults)
        else:
            made = as_derived(task, readable, defaults, directory, registered)
        problems = made if isinstance(made, list) else []
        if isinstance(made, DerivedTask):
            problems = [at_its_dataset(problem, made) for problem in task_problems(made)]
        if isinstance(task, DataMart) and isinstance(made, DerivedTask):
            problems = [of_mart(problem, task) for problem in problems]
        errors.extend(located(problems, file.document, file.shown_as))
        if isinstance(made, DerivedTask) and not problems:
            sources[name] = readable[name] = made
            tasks.append((made, file))
    for name, problems in wrong.items():
        errors.extend(located(problems, transforms[name][1].document, transforms[name][1].shown_as))
    return tasks


def _with_defaults(task: StorageTask, project: Project | None) -> StorageTask:
    """Put the project's defaults under the task's, and its rules before the task's."""
    if project is None:
        return task
    changes: dict[str, Any] = {}
    if project.defaults.model_fields_set:
        changes["defaults"] = merged(project.defaults, task.defaults)
    if project.rules:
        changes["rules"] = (*project.rules, *task.rules)
    return task.model_copy(update=changes) if changes else task
