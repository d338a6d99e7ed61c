"""`polynya compare`: a captured database compared with its tables."""

from __future__ import annotations

from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from polynya.cli.capture_choice import one_capture, store_of
from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.query import spark_for
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.observe.events import counted

if TYPE_CHECKING:
    from polynya.capture.compare.compare import ComparisonResult
    from polynya.engine.commands.compare import NotCompared

#: Keys in text output; JSON has all that were found.
_SHOWN: Final = 10


def compare(
    task: str,
    /,
    *,
    table: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    wait: float = 300.0,
    context: Context,
) -> int:
    """Compare the tables of a captured database with their Current views.

    Reads one moment of the database and waits until the tables have everything committed before it;
    so `polynya run` has to be running, or must have copied everything. Both sides compute hashes of
    key ranges; only ranges that differ are read as rows, and only as hashes. While changes
    continue, a row that differs is checked again: it counts if the source had it unchanged before
    and after Current was read. Rows that change each time are reported as undecided.

    Masked columns, and columns whose type has no common text, are named and not compared. Writes
    nothing on either side, except one message in PostgreSQL's log. Exit code 1 when rows differ, or
    when a table that should be there could not be compared.

    For example: `polynya compare shop_db --table "public.orders"`.

    Args:
        task: name of a task of kind `landing`.
        table: names or globs of tables as in the database. Default: all.
        wait: seconds to wait for the tables to catch up with the source; 0 compares immediately, or
            fails.
    """
    if wait < 0:
        raise WRONG_USAGE("`--wait` is 0 or more")
    project = context.load(tolerant=True)
    capture = one_capture(project, task)
    # Start-up time: PyIceberg, and the driver of the database.
    from polynya.capture.compare.compare import compared_database
    from polynya.engine.answers import Answers
    from polynya.engine.commands.captures import access_for, database_of
    from polynya.engine.commands.compare import NotCompared, compare_capture
    from polynya.lake.warehouse.readers import reading
    from polynya.store.clock import SystemClock

    answers = Answers(project, spark_for(context, project, ""), tell=context.output.detail)
    results: list[ComparisonResult | NotCompared] = []
    with reading(project), database_of(capture) as database:
        for result in compare_capture(
            project,
            capture,
            answers,
            landing=store_of(project),
            database=database,
            compared=compared_database(access_for(capture)),
            chosen=lambda name: not table or any(fnmatchcase(name, pattern) for pattern in table),
            clock=SystemClock(),
            patience=wait,
        ):
            results.append(result)
            if isinstance(result, NotCompared):
                _show_not_compared(context, result)
            else:
                _show(context, result)
        return _conclude(context, task, results)


def _conclude(
    context: CommandContext, task: str, results: list[ComparisonResult | NotCompared]
) -> int:
    # Start-up time: PyIceberg.
    from polynya.capture.compare.compare import ComparisonResult

    verdicts = [result for result in results if isinstance(result, ComparisonResult)]
    failed = [
        result.table
        for result in results
        if not isinstance(result, ComparisonResult) and result.fails
    ]
    differences = sum(len(result.differences) for result in verdicts)
    is_whole = all(result.is_whole for result in verdicts)
    ok = bool(verdicts) and not differences and is_whole and not failed
    data = {
        "task": task,
        "ok": ok,
        "tables": len(verdicts),
        "differences": differences,
        "complete": is_whole,
        "failed": failed,
    }
    least = "" if is_whole else "at least "
    total = counted(differences, "difference")
    text = f"{counted(len(verdicts), 'table')} compared, {least}{total}"
    if failed:
        text += f"; could not be compared: {', '.join(failed)}"
    context.output.result("compare", data, text)
    return ExitCode.OK if ok else ExitCode.FAILED


def _show(context: CommandContext, verdict: ComparisonResult) -> None:
    subject = verdict.subject
    data = {
        "table": subject.table,
        "view": subject.view,
        "position": verdict.position,
        "source_rows": verdict.source_rows,
        "current_rows": verdict.current_rows,
        "key": list(verdict.key),
        "compared": list(verdict.compared),
        "not_compared": [asdict(item) for item in verdict.left_out],
        "differences": [{**asdict(item), "fault": str(item.fault)} for item in verdict.differences],
        "undecided": list(verdict.undecided),
        "complete": verdict.is_whole,
    }
    context.output.result("table.compared", data, "\n".join(_lines(verdict)))


def _lines(verdict: ComparisonResult) -> list[str]:
    subject, count = verdict.subject, len(verdict.differences)
    least = "" if verdict.is_whole else "at least "
    noun = "difference" if count == 1 else "differences"
    rows = f"{verdict.source_rows:,} rows in the source, {verdict.current_rows:,} in Current"
    names = f"{subject.table} and {subject.view}"
    lines = [f"{names}: {least}{count:,} {noun} at {verdict.position}, {rows}"]
    by = f"{', '.join(verdict.key)} = " if verdict.key else ""
    lines += [
        f"  {difference.fault}: {by}{difference.key}"
        + (
            ""
            if verdict.key
            else f" ({difference.source:,} times in the source, {difference.current:,} here)"
        )
        for difference in verdict.differences[:_SHOWN]
    ]
    if count > _SHOWN:
        lines.append(f"  and {count - _SHOWN:,} more; `--json` has their keys")
    if verdict.undecided:
        lines.append(
            f"  undecided, for they change all the time: {counted(len(verdict.undecided), 'row')}, "
            f"for example {by}{verdict.undecided[0]}"
        )
    lines += [f"  not compared: {column.column}: {column.why}" for column in verdict.left_out]
    return lines


def _show_not_compared(context: CommandContext, table: NotCompared) -> None:
    context.output.result(
        "table.not_compared",
        {"table": table.table, "view": table.view, "why": table.why, "failed": table.fails},
        f"{table.table}: not compared: {table.why}",
    )
