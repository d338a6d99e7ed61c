"""The configuration that is in force on a node, and the tasks that the node runs.

For each file the newest valid version is in force, else the last valid one. So a broken file never
stops a task with a valid file, and a task with a broken file keeps its former version. `Acceptance`
keeps what is in force on disk, so that a node can start while the source cannot be read. `Watch`
reads the source again and again and reports a lasting failure once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from polynya.model.config.task_kinds import Task
from polynya.model.error_catalogue.configuration import PATH_LEAVES_FOLDER
from polynya.model.error_catalogue.operation import WORK_FOLDER_NOT_WRITABLE
from polynya.model.errors import ConfigError, ConfigErrors, PolynyaError
from polynya.model.loader import PROJECT_FILES, LoadedProject, load_project
from polynya.model.names import relative_path_problem
from polynya.observe.cluster import (
    ConfigurationAccepted,
    ConfigurationBroken,
    ConfigurationFixed,
    ConfigurationUnreadable,
    ConfigurationUnused,
)
from polynya.observe.events import EventSink
from polynya.store.configuration import ConfigurationSnapshot, FolderSource, identity_of, write_to


@dataclass(frozen=True, slots=True)
class ClusterTasks:
    """The tasks of one cluster.

    Attributes:
        name: by which tasks name it; None: as the project calls the cluster of its other tasks.
        only_named: there are other clusters, so a task that names no cluster cannot be taken.
    """

    name: str | None = None
    only_named: bool = False

    def why_not(self, project: LoadedProject, task: Task) -> str | None:
        """Why the agents of this cluster do not work on a task, None when they do."""
        cluster = project.cluster_of(task)
        if cluster is None:
            return UNNAMED_CLUSTER if self.only_named else None
        own = self.name or project.cluster_name
        return None if cluster == own else f"cluster {cluster} has it"


UNNAMED_CLUSTER = (
    "no cluster has it: several clusters share the project, and its polynya.yml names no cluster"
)


ACTIVE_FOLDER: Final = "in-force"
_CANDIDATE_FOLDER: Final = "candidate"
#: Represents the project file, which may be missing, or be there twice.
_PROJECT_FILE: Final = PROJECT_FILES[0]


@dataclass(frozen=True, slots=True)
class WantedTask:
    """A task in force. `version` changes when its file does, or a default of the project."""

    task: Task
    file: str
    version: str


@dataclass(frozen=True, slots=True)
class ActiveConfiguration:
    """What a node works by.

    Attributes:
        project: the files that make it, as a project.
        tasks: by name.
        elsewhere: tasks of other clusters, and whose they are.
        files: the files that make it.
        errors: what is wrong with the newest files, by file; a file that has an error is in force
            as it was last good, if it ever was.
        snapshot: what was read last.
    """

    project: LoadedProject
    tasks: Mapping[str, WantedTask]
    files: Mapping[str, bytes]
    errors: Mapping[str, ConfigError]
    snapshot: ConfigurationSnapshot
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> tuple[str, ...]:
        """Files that are in force other than as they were read."""
        return tuple(
            sorted(
                path
                for path, content in self.files.items()
                if self.snapshot.files.get(path) != content
            )
        )


class Acceptance:
    """Decides which of the read files are in force, and keeps them in the folder `work`.

    Of the tasks only those that are `mine`. The files of the others are kept, too: if the node gets
    one of them with the next configuration, it has the last valid version.
    """

    def __init__(
        self, work: Path, target: str | None, base: Path, mine: ClusterTasks | None = None
    ) -> None:
        self._mine = mine or ClusterTasks()
        self._work = work
        self._target = target
        self._base = base

    def stored(self) -> ConfigurationSnapshot | None:
        """The files that were in force when this node ran last, if it ever ran."""
        try:
            return FolderSource(self._work / ACTIVE_FOLDER).read()
        except ConfigError:
            return None

    def accept(
        self, newest: ConfigurationSnapshot, before: Mapping[str, bytes]
    ) -> ActiveConfiguration:
        """What is in force from now on.

        Args:
            newest: what was read.
            before: the files that were in force until now.

        Raises:
            ConfigErrors: the project file is wrong and there is no good one from before.
        """
        errors = dict(_unusable_names(newest.files))
        files = {path: content for path, content in newest.files.items() if path not in errors}
        while True:
            project, found = self._load(files, before)
            wrong = {_file_of(error, files): error for error in reversed(found)}
            errors = {**wrong, **errors}
            put_back = _put_back(files, before, wrong.keys())
            if put_back == files:
                break
            # At most one round per file: each puts back at least one.
            files = put_back
        if project is None:
            raise ConfigErrors(found)
        files = {path: content for path, content in files.items() if path not in wrong}
        write_to(ConfigurationSnapshot(identity_of(files), files), self._work / ACTIVE_FOLDER)
        elsewhere = {
            task.name: why
            for task in project.works
            if (why := self._mine.why_not(project, task)) is not None
        }
        tasks = {
            task.name: _wanted(task, project, files)
            for task in project.works
            if task.name not in elsewhere
        }
        return ActiveConfiguration(
            project, tasks, files, dict(sorted(errors.items())), newest, elsewhere
        )

    def _load(
        self, files: Mapping[str, bytes], before: Mapping[str, bytes]
    ) -> tuple[LoadedProject | None, tuple[ConfigError, ...]]:
        folder = self._work / _CANDIDATE_FOLDER
        write_to(ConfigurationSnapshot(identity_of(files), files), folder)
        settled = {path for path, content in files.items() if before.get(path) == content}
        try:
            project = load_project(
                folder, self._target, tolerant=True, base=self._base, settled=settled
            )
        except ConfigErrors as error:
            return None, error.errors
        return project, project.errors


def _unusable_names(paths: Iterable[str]) -> Iterator[tuple[str, ConfigError]]:
    for path in paths:
        if problem := relative_path_problem(path):
            yield path, PATH_LEAVES_FOLDER(problem, fix="give the file another name")


def _put_back(
    files: Mapping[str, bytes], before: Mapping[str, bytes], wrong: Collection[str]
) -> dict[str, bytes]:
    """The files with those that are wrong as they were before."""
    after = {
        path: before[path] if path in wrong and path in before else content
        for path, content in files.items()
    }
    good = {path: before[path] for path in PROJECT_FILES if path in before}
    if _PROJECT_FILE in wrong and good:
        return {path: after[path] for path in after if path not in PROJECT_FILES} | good
    return after


def _file_of(error: ConfigError, files: Mapping[str, bytes]) -> str:
    """The file that an error is in; what is in no task file is about the project file."""
    where = error.where or ""
    found = [path for path in files if where == path or where.startswith(f"{path}:")]
    return found[0] if found and found[0] not in PROJECT_FILES else _PROJECT_FILE


def _wanted(task: Task, project: LoadedProject, files: Mapping[str, bytes]) -> WantedTask:
    file = project.files[task.name]
    # With the task as it was read: it holds the project's defaults and the environment's values.
    digest = hashlib.sha256(files[file] + task.model_dump_json().encode())
    return WantedTask(task, file, digest.hexdigest()[:12])


class Watch:
    """The configuration of one node.

    `read` begins to read it and returns at once; what it gives goes to `taken`. `tell` takes what
    is news. Times in monotonic seconds.
    """

    def __init__(
        self,
        node: str,
        acceptance: Acceptance,
        read: Callable[[], None],
        tell: EventSink,
        every_seconds: float,
    ) -> None:
        self.in_force: ActiveConfiguration | None = None
        self.unread: PolynyaError | None = None
        self.unused: tuple[PolynyaError, ...] = ()
        self._node, self._acceptance, self._read, self._tell = node, acceptance, read, tell
        self._every_seconds = every_seconds
        self._reading = False
        self._read_at: float | None = None

    def look(self, now: float) -> None:
        """Begin to read when it is time, unless a reading is under way."""
        due = self._read_at is None or now - self._read_at >= self._every_seconds
        if due and not self._reading:
            self._reading, self._read_at = True, now
            self._read()

    def taken(self, result: ConfigurationSnapshot | PolynyaError) -> ActiveConfiguration | None:
        """Take what a reading gave; what is in force from now on, None when nothing changed."""
        self._reading = False
        if isinstance(result, PolynyaError):
            self._not_read(result)
            # Only at a start; later what is in force stays so.
            stored = self._acceptance.stored() if self.in_force is None else None
            return self._accept(stored, {}) if stored is not None else None
        self._tell_unused(result.refused)
        if self.in_force is not None and result.identity == self.in_force.snapshot.identity:
            self.unread = None
            return None
        accepted = self._accept(result, self._before())
        if accepted is not None:
            self.unread = None
        return accepted

    def _before(self) -> Mapping[str, bytes]:
        if self.in_force is not None:
            return self.in_force.files
        stored = self._acceptance.stored()
        return stored.files if stored is not None else {}

    def _accept(
        self, snapshot: ConfigurationSnapshot, before: Mapping[str, bytes]
    ) -> ActiveConfiguration | None:
        try:
            found = self._acceptance.accept(snapshot, before)
        except PolynyaError as error:
            self._not_read(error)
            return None
        except OSError as error:
            self._not_read(
                WORK_FOLDER_NOT_WRITABLE(where=str(error.filename or ""), reason=error.strerror)
            )
            return None
        earlier, self.in_force = self.in_force, found
        self._tell_accepted(found, earlier)
        return found

    def _not_read(self, error: PolynyaError) -> None:
        # A lasting failure is reported once.
        if self.unread is None or str(self.unread) != str(error):
            self._tell(ConfigurationUnreadable(subject=self._node, error=error))
        self.unread = error

    def _tell_unused(self, unused: tuple[PolynyaError, ...]) -> None:
        before = {str(error) for error in self.unused}
        for error in unused:
            if str(error) not in before:
                self._tell(ConfigurationUnused(subject=self._node, error=error))
        self.unused = unused

    def _tell_accepted(
        self, found: ActiveConfiguration, earlier: ActiveConfiguration | None
    ) -> None:
        self._tell(
            ConfigurationAccepted(
                subject=self._node,
                identity=found.snapshot.identity,
                revision=found.snapshot.revision,
                edited=tuple(found.snapshot.edited),
                kept=found.kept,
                tasks=tuple(sorted(found.tasks)),
                elsewhere=tuple(sorted(found.elsewhere)),
            )
        )
        before = earlier.errors if earlier is not None else {}
        for file, error in found.errors.items():
            if file not in before or str(before[file]) != str(error):
                self._tell(ConfigurationBroken(subject=self._node, file=file, error=error))
        for file in sorted(before.keys() - found.errors.keys()):
            self._tell(ConfigurationFixed(subject=self._node, file=file))
