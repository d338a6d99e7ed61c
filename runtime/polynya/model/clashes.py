"""Checks across the files of a project: names, tables, folders and streams that two files claim."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.derived import DerivedTask
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_kinds import Task
from polynya.model.documents.files import DocumentFile
from polynya.model.documents.problems import Problem, located
from polynya.model.error_catalogue.configuration import DUPLICATE_NAME, TABLE_NAME_TAKEN
from polynya.model.error_catalogue.registered import REGISTERED_IS_OWN
from polynya.model.error_catalogue.streams import FOLDER_OVERLAPS
from polynya.model.errors import ConfigError
from polynya.model.names import shown
from polynya.model.project_derived import at_its_dataset
from polynya.model.project_parts import reader_problems, sharing_problems, unread_problem


def without_clashes(
    loaded: list[tuple[Task | RegisteredTask, DocumentFile]], errors: list[ConfigError]
) -> list[tuple[Task | RegisteredTask, DocumentFile]]:
    """Leave out tasks whose name or tables another file took first; the errors name both files."""
    names: dict[str, str] = {}
    owners: dict[str, str] = {}
    folders: dict[str, str] = {}
    readers: dict[tuple[str, str], str] = {}
    direct = {
        task.place: task.name
        for task, _ in loaded
        if isinstance(task, StreamingLanding) and task.direct
    }
    whole = not errors
    kept = []
    for task, file in loaded:
        problems = []
        other = names.setdefault(task.name.lower(), file.shown_as)
        if other != file.shown_as:
            message = f"task {shown(task.name)} is already defined in {other}"
            problems.append(Problem(("name",), DUPLICATE_NAME(message)))
        elif isinstance(task, StorageTask):
            problems.extend(_table_clashes(task, file, owners))
            problems.extend(reader_problems(task, direct))
            problems.extend(sharing_problems(task, file.shown_as, readers))
        elif not isinstance(task, ConnectedMirror | RegisteredTask):
            problems.extend(_folder_clashes(task, file, folders))
            if isinstance(task, StreamingLanding) and task.direct and whole:
                problems.extend(unread_problem(task, _works(loaded)))
        errors.extend(located(problems, file.document, file.shown_as))
        if not problems:
            kept.append((task, file))
    return _without_own_tables(kept, owners, errors)


def _without_own_tables(
    loaded: list[tuple[Task | RegisteredTask, DocumentFile]],
    owners: dict[str, str],
    errors: list[ConfigError],
) -> list[tuple[Task | RegisteredTask, DocumentFile]]:
    """Leave out registered tasks with a name or a table of the project; `owners` are complete.

    Transforms that read them, and those that read these, go with them.
    """
    own, left_out = dict(owners), set()
    for task, file in loaded:
        if isinstance(task, RegisteredTask):
            problems = list(_registered_clashes(task, file, own, owners))
            errors.extend(located(problems, file.document, file.shown_as))
            left_out |= {task.name} if problems else set()
    for task, _ in loaded:
        if isinstance(task, DerivedTask):
            reads = {read.name for read in task.reads} | {read.name for read in task.registered}
            left_out |= {task.name} if reads & left_out else set()
    return [(task, file) for task, file in loaded if task.name not in left_out]


def _table_clashes(
    task: StorageTask, file: DocumentFile, owners: dict[str, str]
) -> Iterator[Problem]:
    for index, dataset in enumerate(task.datasets):
        final = resolved(task, dataset)
        for relation in final.relations.taken:
            me = f"dataset `{dataset.name}` in {file.shown_as}"
            owner = owners.setdefault(relation, me)
            if owner != me or final.relations.taken.count(relation) > 1:
                error = TABLE_NAME_TAKEN(relation=relation, owner=owner, other=me)
                problem = Problem(("datasets", index, "name"), error)
                yield at_its_dataset(problem, task) if isinstance(task, DerivedTask) else problem
                break
    if isinstance(task, DerivedTask):
        yield from _view_clashes(task, file, owners)


def _view_clashes(
    task: DerivedTask, file: DocumentFile, owners: dict[str, str]
) -> Iterator[Problem]:
    """Yield the views of queries whose name a table or another view has."""
    for name, query in task.query_views.items():
        me = f"view `{name}` in {file.shown_as}"
        relation = task.view_of(name).lower()
        owner = owners.setdefault(relation, me)
        if owner != me:
            error = TABLE_NAME_TAKEN(relation=relation, owner=owner, other=me)
            yield Problem((*query.path[:2], "name"), error)


def _works(loaded: list[tuple[Task | RegisteredTask, DocumentFile]]) -> list[Task]:
    return [task for task, _ in loaded if not isinstance(task, RegisteredTask)]


def _registered_clashes(
    task: RegisteredTask, file: DocumentFile, own: dict[str, str], owners: dict[str, str]
) -> Iterator[Problem]:
    """Yield names that another table has, and tables that are among those of datasets (`own`)."""
    for index, dataset in enumerate(task.datasets()):
        me = f"table {index + 1} in {file.shown_as}"
        relation, source = dataset.relations.current.lower(), (dataset.table.iceberg or "").lower()
        owner = owners.setdefault(relation, me)
        if owner != me:
            error = TABLE_NAME_TAKEN(relation=relation, owner=owner, other=me)
            yield Problem(("tables", index, "name"), error)
        elif source in own:
            error = REGISTERED_IS_OWN(table=shown(dataset.table.source), owner=own[source])
            yield Problem(("tables", index, "iceberg"), error)


def _folder_clashes(
    task: StreamingLanding | ConnectedCapture, file: DocumentFile, folders: dict[str, str]
) -> Iterator[Problem]:
    """Yield that another landing writes to the folder of a task, or inside or around it."""
    mine = f"{task.place}/"
    for theirs, other in folders.items():
        if mine.startswith(theirs) or theirs.startswith(mine):
            yield Problem(
                ("folder",) if task.folder else ("name",),
                FOLDER_OVERLAPS(folder=shown(task.place), file=other),
            )
            return
    folders[mine] = file.shown_as
