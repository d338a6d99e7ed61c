"""What a catalog says when it makes no commit, or does not say whether it made it."""

from __future__ import annotations

from typing import Final

from polynya.lake.iceberg.errors.machine import machine_error
from polynya.lake.spark.api import Py4JJavaError
from polynya.lake.spark.aws_errors import aws_error
from polynya.model.errors import ConflictError, DependencyError, PolynyaError, StaleStepError

#: Exceptions of Iceberg that say for sure that nothing was committed.
_REFUSALS: Final = frozenset({"ValidationException", "CommitFailedException"})


def is_refusal(error: Py4JJavaError) -> bool:
    """Whether Iceberg surely made no commit because the table had moved."""
    cause = error.java_exception
    while cause is not None:
        if str(cause.getClass().getSimpleName()) in _REFUSALS:
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
    if is_refusal(error):
        return StaleStepError(
            "POLYNYA-LAKE-052",
            f"somebody else changed {table} while its columns or layout were changed",
            where=table,
            why=first_line(error),
            state="nothing of this step was written; a run takes it again at once",
            fix="nothing: a step that is taken again begins with what the table is now",
        )
    return aws_error(error) or machine_error(error) or unknown(table, error)


def first_line(error: Py4JJavaError) -> str:
    """What Java said; a catalog in a database only says there that something failed."""
    said = error.java_exception
    while str(said.getClass().getSimpleName()).startswith("UncheckedSQL") and said.getCause():
        said = said.getCause()
    return str(said.getMessage()).split("\n")[0]
