"""What a catalog says when it makes no commit, or does not say whether it made it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from polynya.lake.iceberg.errors.machine import machine_error
from polynya.lake.spark.api import Py4JJavaError
from polynya.lake.spark.aws_errors import aws_error
from polynya.model.errors import (
    ConflictError,
    DependencyError,
    OperationError,
    PolynyaError,
    StaleStepError,
)

_INVALID: Final = "ValidationException"
_OVERTAKEN: Final = "CommitFailedException"


def is_refusal(error: Py4JJavaError) -> bool:
    """Whether Iceberg surely made no commit of rows because the table had moved."""
    return _is_any(error, {_INVALID, _OVERTAKEN})


def _is_any(error: Py4JJavaError, names: Collection[str]) -> bool:
    cause = error.java_exception
    while cause is not None:
        if str(cause.getClass().getSimpleName()) in names:
            return True
        cause = cause.getCause()
    return False


def refusal(table: str, error: Py4JJavaError) -> ConflictError:
    """The error of a step that was refused because another owner was faster."""
    return ConflictError(
        "POLYNYA-LAKE-003",
        f"another owner changed {table} since this step began ({first_line(error)})",
        where=table,
        state="nothing of this step was written; the other owner's data is intact",
        fix="nothing, if a command such as `reload` or `replay` did it: a run goes on by itself; "
        "end one of two processes that run the same task",
    )


def unknown(table: str, error: Py4JJavaError) -> DependencyError:
    """The error of a step of which nobody knows whether it was made."""
    return DependencyError(
        "POLYNYA-LAKE-004",
        f"the catalog did not say whether the commit of {table} was made: {first_line(error)}",
        where=table,
        state="either all of the step is in the table or nothing; "
        "the next run looks before it writes",
        fix="check the catalog, then run again",
    )


def of_change(table: str, error: Py4JJavaError) -> PolynyaError:
    """The error of a change of columns or layout, which carries no marker to look for."""
    if _is_any(error, {_INVALID}):
        return refused_columns(table, first_line(error))
    if _is_any(error, {_OVERTAKEN}):
        return StaleStepError(
            "POLYNYA-LAKE-052",
            f"somebody else changed {table} while its columns or layout were changed",
            where=table,
            why=first_line(error),
            state="nothing of this step was written; a run takes it again at once",
            fix="nothing: a step that is taken again begins with what the table is now",
        )
    return aws_error(error) or machine_error(error) or unknown(table, error)


def refused_columns(table: str, why: str) -> OperationError:
    """The error of columns or a layout that a table of Iceberg cannot have."""
    return OperationError(
        "POLYNYA-LAKE-061",
        f"{table} cannot have these columns or this layout",
        where=table,
        why=why,
        state="nothing of this batch was copied; its files stay where they are",
        fix="give the column another name at the source or in the list of `columns`, or leave it "
        "out with `except_columns`",
    )


def first_line(error: Py4JJavaError) -> str:
    """What Java said; a catalog in a database only says there that something failed."""
    said = error.java_exception
    while str(said.getClass().getSimpleName()).startswith("UncheckedSQL") and said.getCause():
        said = said.getCause()
    return str(said.getMessage()).split("\n")[0]
