"""`polynya validate`: all errors of all files, offline and without Java."""

from __future__ import annotations

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.model.config.settings import DatasetSettings
from polynya.model.errors import ConfigError
from polynya.model.reading.loader import LoadedProject
from polynya.model.reading.task_test_loader import load_tests


def validate(*, context: Context) -> int:
    """Check all files of a project: shape, names, contradictions, expressions. Needs no Java.

    For example: `polynya validate --project shop --json`.
    """
    project = context.load(tolerant=True)
    errors, tests = project_errors(project)
    for error in errors:
        context.output.error(error)
    if not project.works and not errors:
        context.output.warning("the project has no tasks; add files to `tasks/`")
    declared = sum(1 for _ in project.datasets())
    context.output.result(
        "validation",
        {
            "valid": not errors,
            "errors": len(errors),
            "project": project.project.name,
            "target": project.target.name,
            "tasks": [task.name for task in project.works],
            "datasets": declared,
            "tests": tests,
        },
        _summary(project, errors, declared),
    )
    return ExitCode.USAGE if errors else ExitCode.OK


def project_errors(project: LoadedProject) -> tuple[list[ConfigError], int]:
    """Everything that is wrong with a project that was loaded tolerantly; how many tests run."""
    tests, test_errors = load_tests(project)
    if project.errors:
        # A test of a task that cannot be read would only say so once more.
        test_errors = [error for error in test_errors if error.code != "POLYNYA-TEST-001"]
    return [*project.errors, *_expression_errors(project), *test_errors], len(tests)


def _expression_errors(project: LoadedProject) -> list[ConfigError]:
    if not any(_has_expressions(task.defaults, *task.datasets) for task in project.tasks):
        return []
    # sqlglot takes a fifth of a second to load and many projects have no expression.
    from polynya.transform.project import expression_errors

    return expression_errors(project)


def _has_expressions(*settings: DatasetSettings) -> bool:
    return any(
        one.apply_as_deletes
        or one.apply_as_truncates
        or one.where
        or isinstance(one.columns, tuple)
        for one in settings
    )


def _summary(project: LoadedProject, errors: list[ConfigError], datasets: int) -> str:
    if errors:
        return f"{len(errors)} error{'s' if len(errors) > 1 else ''}; nothing was written"
    tasks = len(project.works)
    return (
        f"valid: project {project.project.name}, target {project.target.name}, "
        f"{tasks} task{'' if tasks == 1 else 's'}, {datasets} declared dataset"
        f"{'' if datasets == 1 else 's'}"
    )
