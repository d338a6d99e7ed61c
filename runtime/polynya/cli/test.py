"""`polynya test`: the project's own tests of its tasks, in temporary tables."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.output import Output
from polynya.derived.tested_chains import chain_errors
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import ConfigErrors
from polynya.model.task_tests import LoadedTest, LoadedTransformTest, load_tests
from polynya.testing.rows import Row, RowDifference
from polynya.testing.runner import RelationComparison, TaskTestResult

#: Differences of one relation in text output.
MOST_SHOWN = 20


def tell(output: Output, verdict: TaskTestResult) -> None:
    """Say how a test went: one JSON line, or a line and what differs."""
    test = verdict.test
    seconds = round(verdict.seconds, 1)
    data: dict[str, object] = {
        "name": test.test.name,
        "task": test.task.name,
        "dataset": test.dataset.name if isinstance(test, LoadedTest) else None,
        "where": test.where(),
        "ok": verdict.ok,
        "seconds": seconds,
        "relations": [_as_dict(verdict, comparison) for comparison in verdict.comparisons],
    }
    if verdict.error is not None:
        data["error"] = verdict.error.as_dict()
    head = f"{'ok  ' if verdict.ok else 'FAIL'}  {test.task.name}: {test.test.name} ({seconds} s)"
    output.result("test", data, "\n".join([head, *_lines(verdict)]))


def _as_dict(verdict: TaskTestResult, comparison: RelationComparison) -> dict[str, object]:
    of_transform: dict[str, object] = {}
    if comparison.table is not None:
        of_transform = {"table": comparison.table, "batch": comparison.batch}
    return {
        **of_transform,
        "relation": comparison.relation,
        "ok": comparison.ok,
        "rows": comparison.rows,
        "problems": comparison.problems,
        "differences": [
            {
                "kind": difference.kind,
                "where": _where(verdict, comparison, difference),
                "columns": difference.columns,
                "expected": difference.expected,
                "found": difference.found,
            }
            for difference in comparison.differences
        ],
    }


def _lines(verdict: TaskTestResult) -> Iterator[str]:
    if verdict.ok:
        return
    yield f"  --> {verdict.test.where()}"
    if verdict.error is not None:
        yield "  the task failed:"
        yield from (f"  {line}" for line in verdict.error.render().splitlines())
    for comparison in verdict.comparisons:
        if not comparison.ok:
            yield from _comparison(verdict, comparison)


def _comparison(verdict: TaskTestResult, comparison: RelationComparison) -> Iterator[str]:
    yield f"  {comparison.label} ({comparison.rows} row{'' if comparison.rows == 1 else 's'}):"
    yield from (f"    {problem}" for problem in comparison.problems)
    for difference in comparison.differences[:MOST_SHOWN]:
        yield from _difference(verdict, comparison, difference)
    if len(comparison.differences) > MOST_SHOWN:
        yield f"    and {len(comparison.differences) - MOST_SHOWN} more"


def _difference(
    verdict: TaskTestResult, comparison: RelationComparison, difference: RowDifference
) -> Iterator[str]:
    where = _where(verdict, comparison, difference)
    expected, actual = difference.expected, difference.found
    if expected is None:
        yield f"    unexpected  {_json(actual or {})}"
    elif actual is None:
        yield f"    missing     {_json(expected)}  ({where})"
    else:
        same = [name for name in expected if name not in difference.columns]
        shown = [name for name in same if name in comparison.keys] or same
        yield f"    different   {_json({name: expected[name] for name in shown})}  ({where})"
        for name in difference.columns:
            yield f"      {name}: expected {_json(expected[name])}, found {_json(actual.get(name))}"


def _where(
    verdict: TaskTestResult, comparison: RelationComparison, difference: RowDifference
) -> str | None:
    if difference.number is None:
        return None
    return verdict.test.where(*comparison.path, difference.number)


def _json(value: Row | object) -> str:
    return json.dumps(value, ensure_ascii=False)


Matching: TypeAlias = Annotated[str | None, Parameter(name=["--matching", "-k"])]


def run_tests(
    *tasks: str,
    matching: Matching = None,
    context: Context,
) -> int:
    """Run the tests in `tests/`: land their batches, copy them, derive tables, compare the views.

    All of them run in one start of Spark, each in tables of its own in a temporary warehouse: the
    project's landing folder and tables are not touched. Exit code 1 when a test fails, 2 when a
    file is wrong, or a setting names a column that no record of any test has.

    For example: `polynya test users -k late`.

    Args:
        tasks: names or globs of tasks whose tests run. Default: all.
        matching: only tests whose name contains this text, ignoring case.
    """
    project = context.load()
    tests, errors = load_tests(project)
    errors += chain_errors(tests)
    if errors:
        raise ConfigErrors(errors)
    chosen = _chosen(tests, tasks, matching)
    if not chosen:
        context.output.warning("there are no tests to run; write some into `tests/`")
        context.output.result("tests", {"ok": True, "passed": 0, "failed": 0})
        return ExitCode.OK
    # Start-up time: pyspark.
    from polynya.engine.session import start_spark, throwaway
    from polynya.testing.runner import run_test, unmet_columns
    from polynya.testing.transforms import run_transform_test

    started = time.monotonic()
    verdicts: list[TaskTestResult] = []
    with tempfile.TemporaryDirectory(prefix="polynya-test-", ignore_cleanup_errors=True) as folder:
        spark = start_spark(throwaway(project, Path(folder)))
        for test in chosen:
            if isinstance(test, LoadedTransformTest):
                verdicts.append(run_transform_test(spark, test))
            else:
                verdicts.append(run_test(spark, test, project.directory))
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
    tests: list[LoadedTest | LoadedTransformTest], patterns: tuple[str, ...], text: str | None
) -> list[LoadedTest | LoadedTransformTest]:
    tasks = sorted({test.task.name for test in tests})
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in tasks):
            raise WRONG_USAGE(f"no test is about a task `{pattern}`", fix=suggest(pattern, tasks))
    matches = [
        test
        for test in tests
        if (not patterns or any(fnmatchcase(test.task.name, p) for p in patterns))
        and (text is None or text.casefold() in test.test.name.casefold())
    ]
    if text is not None and not matches:
        raise WRONG_USAGE(f"no test has a name with `{text}` in it")
    return matches
