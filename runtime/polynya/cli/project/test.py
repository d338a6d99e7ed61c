"""`polynya test`: the project's own tests of its tasks, in tables of their own."""

from __future__ import annotations

import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.model.documents.problems import suggest
from polynya.model.errors import ConfigErrors
from polynya.model.reading.task_test_loader import LoadedTest, load_tests

if TYPE_CHECKING:
    from polynya.testing.runner import Verdict

Matching: TypeAlias = Annotated[str | None, Parameter(name=["--matching", "-k"])]


def run_tests(
    *tasks: str,
    matching: Matching = None,
    context: Context,
) -> int:
    """Run the tests in `tests/`: land their batches, copy them, compare the views.

    All of them run in one start of Spark, each in tables of its own in a temporary warehouse: the
    project's landing folder and tables are not touched. Exit code 1 when a test fails, 2 when a
    file is wrong, or a setting names a column that no record of any test has.

    For example: `polynya test users -k late`.

    Args:
        tasks: names or globs of tasks whose tests run. Default: all.
        matching: only tests whose name contains this text, ignoring case.
        context: given by `main`.
    """
    project = context.load()
    tests, errors = load_tests(project)
    if errors:
        raise ConfigErrors(errors)
    chosen = _chosen(tests, tasks, matching)
    if not chosen:
        context.output.warning("there are no tests to run; write some into `tests/`")
        context.output.result("tests", {"ok": True, "passed": 0, "failed": 0})
        return ExitCode.OK
    # Start-up time: pyspark.
    from polynya.cli.project.verdicts import tell
    from polynya.engine.start import start_spark, throwaway
    from polynya.testing.runner import run_test
    from polynya.testing.unmet import unmet_columns

    started = time.monotonic()
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="polynya-test-", ignore_cleanup_errors=True) as folder:
        spark = start_spark(throwaway(project, Path(folder)))
        for one in chosen:
            verdicts.append(run_test(spark, one, project.directory))
            tell(context.output, verdicts[-1])
    passed = sum(verdict.ok for verdict in verdicts)
    failed, seconds = len(verdicts) - passed, round(time.monotonic() - started, 1)
    # A choice of tests need not have every column.
    unmet = list(unmet_columns(verdicts)) if matching is None else []
    for error in unmet:
        context.output.error(error)
    context.output.result(
        "tests",
        {
            "ok": not failed and not unmet,
            "passed": passed,
            "failed": failed,
            "seconds": seconds,
        },
        f"{passed} passed, {failed} failed in {seconds} s",
    )
    if failed:
        return ExitCode.FAILED
    return ExitCode.USAGE if unmet else ExitCode.OK


def _chosen(
    tests: list[LoadedTest], patterns: tuple[str, ...], text: str | None
) -> list[LoadedTest]:
    tasks = sorted({one.task.name for one in tests})
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in tasks):
            raise usage_error(f"no test is about a task `{pattern}`", suggest(pattern, tasks))
    found = [
        one
        for one in tests
        if (not patterns or any(fnmatchcase(one.task.name, p) for p in patterns))
        and (text is None or text.casefold() in one.test.name.casefold())
    ]
    if text is not None and not found:
        raise usage_error(f"no test has a name with `{text}` in it")
    return found
