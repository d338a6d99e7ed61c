"""Reading `tests/*.yml`: every test with its place and the task that it is about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from polynya.model.config.settings import Dataset
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_tests import RELATIONS, Batch, TaskTest, TaskTests
from polynya.model.documents.problems import Problem, located, suggest
from polynya.model.documents.yaml import Node, NodePath, place_of
from polynya.model.errors import ConfigError
from polynya.model.formats import FormatRules, all_rules, rules_of
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.model.project import document_files, parse_file, read_file

TEST_FOLDER: Final = "tests"
_CONTENT: Final = ("events", "lines", "folder")
#: Whether a test can write the records of a format in its own file.
_TAKES: Final[Mapping[str, Callable[[FormatRules], bool]]] = {
    "events": lambda rules: rules.events_in_tests is not None,
    "lines": lambda rules: rules.lines_in_tests,
}
#: The contents of messages that a test can write as records, and as lines.
_WRITTEN: Final[Mapping[str, frozenset[str]]] = {
    "events": frozenset({"json", "auto"}),
    "lines": frozenset({"json", "auto", "csv", "tsv", "xml", "regex", "split_lines"}),
}


@dataclass(frozen=True, slots=True)
class LoadedTest:
    """A test that can run: its task, the dataset that it looks at, and where it stands.

    `stream` is the landing whose messages the task reads, if there is one.
    """

    test: TaskTest
    task: StorageTask
    dataset: Dataset
    file: str
    path: NodePath
    document: Node
    stream: StreamingLanding | None = None

    def where(self, *path: str | int) -> str:
        """Return `file:line:col` of a path in the test."""
        place = place_of(self.document, (*self.path, *path))
        return f"{self.file}:{place.line}:{place.column}"


def load_tests(
    project: LoadedProject, environment: Mapping[str, str] | None = None
) -> tuple[list[LoadedTest], list[ConfigError]]:
    """Read all test files of a project: the tests that can run, and what is wrong with the others.

    `environment` holds the variables for `${env:NAME}`, by default the process's own.
    """
    variables = os.environ if environment is None else environment
    errors: list[ConfigError] = []
    loaded: list[LoadedTest] = []
    for path in document_files(project.directory / TEST_FOLDER):
        file = read_file(path, f"{TEST_FOLDER}/{path.name}", variables, errors)
        tests = parse_file(file, TaskTests, "tests", errors) if file else None
        if file is None or tests is None:
            continue
        names: set[str] = set()
        for index, test in enumerate(tests.tests):
            at: NodePath = ("tests", index)
            task, dataset = _subject(project, test)
            problems = list(_problems(project, test, task, dataset, at))
            if test.name in names:
                message = f"test {shown(test.name)} is already in this file"
                problems.append(Problem((*at, "name"), "POLYNYA-CFG-012", message))
            names.add(test.name)
            errors.extend(located(problems, file.document, file.shown_as))
            if file.sound and not problems and task is not None and dataset is not None:
                stream = _stream(project, task)
                one = LoadedTest(test, task, dataset, file.shown_as, at, file.document, stream)
                loaded.append(one)
    return loaded, errors


def _stream(project: LoadedProject, task: StorageTask) -> StreamingLanding | None:
    """The landing that writes what a task reads."""
    if rules_of(task.landing.format).events_in_tests != "messages":
        return None
    return next((one for one in project.landings if one.place == task.landing.path), None)


def _subject(project: LoadedProject, test: TaskTest) -> tuple[StorageTask | None, Dataset | None]:
    """The task and the dataset that a test names, None for what is not there."""
    task = next((one for one in project.tasks if one.name == test.task), None)
    if task is None:
        return None, None
    if test.dataset is None:
        return task, task.datasets[0] if len(task.datasets) == 1 else None
    declared = next((one for one in task.datasets if one.name == test.dataset), None)
    if declared is None and rules_of(task.landing.format).finds_tables:
        return task, Dataset(name=test.dataset)
    return task, declared


def _problems(
    project: LoadedProject,
    test: TaskTest,
    task: StorageTask | None,
    dataset: Dataset | None,
    at: NodePath,
) -> Iterator[Problem]:
    code = "POLYNYA-TEST-001"
    if task is None:
        names = [one.name for one in project.tasks]
        message = f"there is no task {shown(test.task)}"
        yield Problem((*at, "task"), code, message, suggest(test.task, names))
        return
    if dataset is None:
        names = [one.name for one in task.datasets]
        if test.dataset is None:
            fix = f"one of {', '.join(sorted(names))}" if names else None
            yield Problem(at, "POLYNYA-CFG-008", "missing key `dataset`", fix)
        else:
            message = f"the task {task.name} has no dataset {shown(test.dataset)}"
            yield Problem((*at, "dataset"), code, message, suggest(test.dataset, names))
        return
    for index, batch in enumerate(test.given):
        yield from _batch_problems(batch, task, dataset, (*at, "given", index))
        if batch.folder is None:
            yield from _message_problems(batch, _stream(project, task), (*at, "given", index))
    if all(getattr(test.expect, relation) is None for relation in RELATIONS):
        message = f"nothing is expected: name at least one of {', '.join(RELATIONS)}"
        yield Problem((*at, "expect"), "POLYNYA-CFG-009", message)
    if test.expect.history is not None and not resolved(task, dataset).kept.history:
        yield Problem(
            (*at, "expect", "history"),
            code,
            f"the dataset {dataset.name} keeps no history",
            "set `history: true` in the task, or take the line out",
        )


def _batch_problems(
    batch: Batch, task: StorageTask, dataset: Dataset, at: NodePath
) -> Iterator[Problem]:
    given = [key for key in _CONTENT if getattr(batch, key) is not None]
    if len(given) != 1:
        message = f"a batch has one of {', '.join(f'`{key}`' for key in _CONTENT)}"
        yield Problem(at, "POLYNYA-CFG-016", message)
        return
    takes = _TAKES.get(given[0])
    if takes is not None and not takes(rules_of(task.landing.format)):
        takers = sorted(rules.name for rules in all_rules() if takes(rules))
        yield Problem(
            (*at, given[0]),
            "POLYNYA-CFG-019",
            f"only for {_listed(takers)}, and the task reads `{task.landing.format}`",
            "put files into a folder of the project and name it as `folder`",
        )
    for key in ("file", "load"):
        if takes is None and getattr(batch, key):
            message = "has no meaning with `folder`: its files land under their own names"
            yield Problem((*at, key), "POLYNYA-CFG-016", message, "take the line out")
    if batch.file is not None and rules_of(task.landing.format).events_in_tests == "messages":
        message = "has no meaning for messages: landed batches have names of their own"
        yield Problem((*at, "file"), "POLYNYA-CFG-016", message, "take the line out")
    if batch.load and dataset.initial_load is None:
        yield Problem(
            (*at, "load"),
            "POLYNYA-CFG-016",
            f"the dataset {dataset.name} has no `initial_load`",
            "take the line out",
        )


def _message_problems(
    batch: Batch, stream: StreamingLanding | None, at: NodePath
) -> Iterator[Problem]:
    """What is wrong with messages that are written in a test."""
    if stream is None:
        return
    content = stream.content.type
    fitting = _WRITTEN["events" if batch.events is not None else "lines"]
    if content not in fitting:
        yield Problem(
            (*at, "events" if batch.events is not None else "lines"),
            "POLYNYA-CFG-019",
            f"only for messages of {_listed(sorted(fitting))}, and {stream.name} lands `{content}`",
            "land some messages and put their landed batches into a folder of the project, and "
            "name it as `folder`",
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
