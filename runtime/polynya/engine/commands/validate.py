"""Everything that is wrong with the files of a project."""

from __future__ import annotations

from polynya.model.access import access_errors
from polynya.model.automations import load_automations
from polynya.model.config.derived import DerivedTask
from polynya.model.config.settings import DatasetSettings
from polynya.model.error_catalogue.configuration import TEST_SUBJECT_UNKNOWN
from polynya.model.errors import ConfigError
from polynya.model.loader import LoadedProject
from polynya.model.task_tests import LoadedTest, LoadedTransformTest, load_tests


def project_errors(project: LoadedProject) -> tuple[list[ConfigError], int]:
    """Everything that is wrong with a project that was loaded tolerantly; how many tests run."""
    tests, test_errors = load_tests(project)
    if project.errors:
        # A test of a task that cannot be read would only say so once more.
        test_errors = [error for error in test_errors if error.code != TEST_SUBJECT_UNKNOWN.code]
    found = [*project.errors, *_expression_errors(project), *_query_errors(project)]
    found += load_automations(project)[1]
    found += access_errors(project.directory)
    # What a query that is wrong reads is not known.
    test_errors += [] if found else _chain_errors(tests)
    return [*found, *test_errors], len(tests)


def _expression_errors(project: LoadedProject) -> list[ConfigError]:
    if not any(
        task.rules or _has_expressions(task.defaults, *task.datasets) for task in project.tasks
    ):
        return []
    # sqlglot takes a fifth of a second to load and many projects have no expression.
    from polynya.transform.project import expression_errors

    return expression_errors(project)


def _query_errors(project: LoadedProject) -> list[ConfigError]:
    if not any(isinstance(task, DerivedTask) for task in project.tasks):
        return []
    # As above.
    from polynya.derived.query_errors import query_errors

    return query_errors(project)


def _chain_errors(tests: list[LoadedTest | LoadedTransformTest]) -> list[ConfigError]:
    """What is wrong with the tables that tests of transforms name."""
    if not any(isinstance(test, LoadedTransformTest) for test in tests):
        return []
    # As above.
    from polynya.derived.tested_chains import chain_errors

    return chain_errors(tests)


def _has_expressions(*settings: DatasetSettings) -> bool:
    return any(
        level.apply_as_deletes
        or level.apply_as_truncates
        or level.where
        or isinstance(level.columns, tuple)
        for level in settings
    )
