"""Reading `tests/*.yml`: every test with its place in the file and its task."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from polynya.model.config.derived import DerivedTask
from polynya.model.config.settings import Dataset
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_tests import RELATIONS, Batch, TaskTest, TaskTests
from polynya.model.documents.files import document_files, parse_file, read_file
from polynya.model.documents.problems import Problem, located, suggest
from polynya.model.documents.yaml import Node, NodePath, position_of
from polynya.model.error_catalogue.configuration import (
    CONTRADICTING_SETTINGS,
    DUPLICATE_NAME,
    MISSING_KEY,
    NOT_FOR_FORMAT,
    TEST_SUBJECT_UNKNOWN,
    WRONG_VALUE,
)
from polynya.model.errors import ConfigError
from polynya.model.formats import FormatRules, all_rules, rules_of
from polynya.model.loader import LoadedProject
from polynya.model.names import shown

TEST_FOLDER: Final = "tests"
_CONTENT: Final = ("events", "lines", "folder")
#: What only the items of a test of a transform have, and what they do not have.
_OF_TRANSFORMS: Final = ("rows", "deletes", "expect", "fails")
_OF_OTHERS: Final = (*_CONTENT, "file", "load")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Located:
    """A test with its place in a file."""

    test: TaskTest
    file: str
    path: NodePath
    document: Node

    def where(self, *path: str | int) -> str:
        """Return `file:line:col` of a path in the test."""
        position = position_of(self.document, (*self.path, *path))
        return f"{self.file}:{position.line}:{position.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTest(_Located):
    """A test that can run, with its task, its dataset and its place in the file.

    `stream` is the landing whose messages the task reads, if there is one.
    """

    task: StorageTask
    dataset: Dataset
    stream: StreamingLanding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTransformTest(_Located):
    """A test of a transform, with its task and its place in the file.

    Its tables are looked for in `derived/tested_chains.py`.
    """

    task: DerivedTask


def load_tests(
    project: LoadedProject, environment: Mapping[str, str] | None = None
) -> tuple[list[LoadedTest | LoadedTransformTest], list[ConfigError]]:
    """Read all test files of a project: the tests that can run, and what is wrong with the others.

    `environment` holds the variables for `${env:NAME}`, by default the process's own.
    """
    variables = os.environ if environment is None else environment
    errors: list[ConfigError] = []
    loaded: list[LoadedTest | LoadedTransformTest] = []
    for path in document_files(project.directory / TEST_FOLDER):
        bound = project.bindings.variables
        file = read_file(path, f"{TEST_FOLDER}/{path.name}", variables, errors, bound=bound)
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
                problems.append(Problem((*at, "name"), DUPLICATE_NAME(message)))
            names.add(test.name)
            errors.extend(located(problems, file.document, file.shown_as))
            if not file.sound or problems or task is None:
                continue
            if isinstance(task, DerivedTask):
                loaded.append(
                    LoadedTransformTest(
                        test=test, file=file.shown_as, path=at, document=file.document, task=task
                    )
                )
            elif dataset is not None:
                loaded.append(
                    LoadedTest(
                        test=test,
                        file=file.shown_as,
                        path=at,
                        document=file.document,
                        task=task,
                        dataset=dataset,
                        stream=_stream(project, task),
                    )
                )
    return loaded, errors


def _stream(project: LoadedProject, task: StorageTask) -> StreamingLanding | None:
    """The landing that writes what a task reads."""
    if rules_of(task.landing.format).events_in_tests != "messages":
        return None
    landings = project.landings
    return next((one for one in landings if one.place == task.landing.path), None)


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

    if task is None:
        names = [one.name for one in project.tasks]
        message = f"there is no task {shown(test.task)}"
        yield Problem((*at, "task"), TEST_SUBJECT_UNKNOWN(message, fix=suggest(test.task, names)))
        return
    if isinstance(task, DerivedTask):
        yield from _transform_problems(test, at)
        return
    if dataset is None:
        names = [one.name for one in task.datasets]
        if test.dataset is None:
            fix = f"name one of {', '.join(sorted(names))}" if names else None
            yield Problem(at, MISSING_KEY(fix=fix, key="`dataset`"))
        else:
            message = f"the task {task.name} has no dataset {shown(test.dataset)}"
            error = TEST_SUBJECT_UNKNOWN(message, fix=suggest(test.dataset, names))
            yield Problem((*at, "dataset"), error)
        return
    if test.inputs:
        yield Problem(
            (*at, "inputs"), CONTRADICTING_SETTINGS("only for transforms", fix="remove the line")
        )
    if test.expect is None:
        yield Problem(at, MISSING_KEY(key="`expect`"))
        return
    for index, batch in enumerate(test.given):
        yield from _refused(batch, _OF_TRANSFORMS, "only for transforms", (*at, "given", index))
        yield from _batch_problems(batch, task, dataset, (*at, "given", index))
        if batch.folder is None:
            yield from _message_problems(batch, _stream(project, task), (*at, "given", index))
    if all(getattr(test.expect, relation) is None for relation in RELATIONS):
        message = f"nothing is expected: name at least one of {', '.join(RELATIONS)}"
        yield Problem((*at, "expect"), WRONG_VALUE(message))
    if test.expect.history is not None and not resolved(task, dataset).kept.history:
        yield Problem(
            (*at, "expect", "history"),
            TEST_SUBJECT_UNKNOWN(
                f"the dataset {dataset.name} keeps no history",
                fix="set `history: true` in the task, or remove the line",
            ),
        )


def _transform_problems(test: TaskTest, at: NodePath) -> Iterator[Problem]:
    for key, fix in (
        ("dataset", "take the line out: `expect` names the tables"),
        ("expect", "write it in an item of `given`, with the name of the table above the rows"),
    ):
        if getattr(test, key) is not None:
            yield Problem((*at, key), CONTRADICTING_SETTINGS("not for transforms", fix=fix))
    for index, batch in enumerate(test.given):
        place: NodePath = (*at, "given", index)
        yield from _refused(batch, _OF_OTHERS, "not for transforms", place)
        if batch.rows is None and batch.deletes is None:
            yield Problem(place, MISSING_KEY(key="`rows` or `deletes`"))
        for name, expectation in (batch.expect or {}).items():
            if all(getattr(expectation, relation) is None for relation in RELATIONS):
                message = f"nothing is expected: name at least one of {', '.join(RELATIONS[:-1])}"
                yield Problem((*place, "expect", name), WRONG_VALUE(message))
            if expectation.quarantined is not None:
                error = CONTRADICTING_SETTINGS(
                    "not for transforms: no record of theirs is rejected", fix="remove the line"
                )
                yield Problem((*place, "expect", name, "quarantined"), error)
    if all(batch.expect is None and batch.fails is None for batch in test.given):
        message = "nothing is expected: write `expect` in an item of `given`"
        yield Problem((*at, "given"), WRONG_VALUE(message))


def _refused(batch: Batch, keys: Sequence[str], message: str, at: NodePath) -> Iterator[Problem]:
    """Yield the settings of a batch that tasks of this kind do not have."""
    for key in keys:
        if getattr(batch, key):
            yield Problem((*at, key), CONTRADICTING_SETTINGS(message, fix="remove the line"))


def _batch_problems(
    batch: Batch, task: StorageTask, dataset: Dataset, at: NodePath
) -> Iterator[Problem]:
    given = [key for key in _CONTENT if getattr(batch, key) is not None]
    if len(given) != 1:
        message = f"a batch has one of {', '.join(f'`{key}`' for key in _CONTENT)}"
        yield Problem(at, CONTRADICTING_SETTINGS(message))
        return
    takes = _TAKES.get(given[0])
    if takes is not None and not takes(rules_of(task.landing.format)):
        takers = sorted(rules.name for rules in all_rules() if takes(rules))
        yield Problem(
            (*at, given[0]),
            NOT_FOR_FORMAT(
                f"only for {_listed(takers)}, and the task reads `{task.landing.format}`",
                fix="put files into a folder of the project, and name it as `folder`",
            ),
        )
    for key in ("file", "load"):
        if takes is None and getattr(batch, key):
            message = "has no meaning with `folder`: its files land under their own names"
            yield Problem((*at, key), CONTRADICTING_SETTINGS(message, fix="remove the line"))
    if batch.file is not None and rules_of(task.landing.format).events_in_tests == "messages":
        message = "has no meaning for messages: landed batches have their own names"
        yield Problem((*at, "file"), CONTRADICTING_SETTINGS(message, fix="remove the line"))
    if batch.load and dataset.initial_load is None:
        message = f"the dataset {dataset.name} has no `initial_load`"
        yield Problem((*at, "load"), CONTRADICTING_SETTINGS(message, fix="remove the line"))


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
            NOT_FOR_FORMAT(
                f"only for messages of {_listed(sorted(fitting))}, and {stream.name} lands "
                f"`{content}`",
                fix="land some messages, put their landed batches into a folder of the project, "
                "and name it as `folder`",
            ),
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
