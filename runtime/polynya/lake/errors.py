"""Errors for faults of the machine, the catalog and AWS, and for commits that Iceberg refused.

The libraries raise these faults in Python or in the JVM: a full disk, a folder without write
access, a damaged or missing catalog or file, a heap that is too small. This module turns them into
errors that an operator can act on, and returns None for every other cause. `store` explains the
faults of its own requests itself.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import pyarrow as pa

from polynya.lake.server_errors import refused, unreachable
from polynya.lake.spark.api import CapturedException, Py4JJavaError, PySparkException
from polynya.lake.warehouse.catalogs import damaged
from polynya.lake.warehouse.check import NO_ROOM, no_access, no_room
from polynya.model.errors import (
    ConflictError,
    DependencyError,
    OperationError,
    PolynyaError,
    StaleStepError,
)

_Found = Callable[[str | None, str], PolynyaError]
#: Longest text of a library that is shown.
_MOST_SHOWN: Final = 300
_OF_LIBRARIES: Final = (
    OSError,
    sqlite3.Error,
    pa.ArrowException,
    PySparkException,
)
_PATH: Final = re.compile(r"(?:file:)?(/[^\s'\",;()]+)")
#: Names of classes of the JVM, in front of what they say.
_CLASSES: Final = re.compile(r"\b(?:[a-z]\w*\.)*[A-Z]\w*(?:Exception|Error): ")


def _missing(where: str | None, why: str) -> OperationError:
    fix = "put the file back from a backup; `polynya verify` looks at the files of each table"
    if where is not None and where.endswith(".metadata.json"):
        fix = (
            "put the file back from a backup, or let `polynya doctor --repair` go back to the "
            "newest metadata that is there"
        )
    return OperationError(
        "POLYNYA-LAKE-043",
        "a file of a table is missing",
        where=where,
        why=why,
        state="nothing of this step was written",
        fix=fix,
    )


def _small_heap(where: str | None, why: str) -> DependencyError:
    return DependencyError(
        "POLYNYA-DEP-012",
        "the driver's heap is too small",
        where=where,
        why=why,
        state="as after the last completed commit; every commit is atomic",
        fix="raise POLYNYA_DRIVER_MEMORY, or lower `batch.max_rows` and `batch.max_bytes`",
    )


def _no_start(where: str | None, why: str) -> DependencyError:
    return DependencyError(
        "POLYNYA-DEP-013",
        "Java ended while it started",
        where=where,
        why=why,
        state="nothing was started, no data was touched",
        fix="`polynya/log/spark.log` in the cache folder has what Java said; most often the heap "
        "(POLYNYA_DRIVER_MEMORY) is more than the machine can give",
    )


def _damaged(where: str | None, why: str) -> DependencyError:
    return damaged(where or "the catalog", why)


#: Texts by which a fault is recognised in an error message.
_SIGNS: Final[tuple[tuple[re.Pattern[str], _Found], ...]] = (
    (re.compile(r"No space left on device|Disk quota exceeded|SQLITE_FULL"), no_room),
    (
        re.compile(
            r"Read-only file system|Permission denied|SQLITE_READONLY|readonly database|"
            r"Mkdirs failed to create|SQLITE_CANTOPEN"
        ),
        no_access,
    ),
    (
        re.compile(
            r"SQLITE_CORRUPT|SQLITE_NOTADB|not a database|disk image is malformed",
        ),
        _damaged,
    ),
    (
        re.compile(
            r"PSQLException: (?:FATAL|ERROR): (?:password authentication failed|no pg_hba\.conf "
            r"entry|role .* (?:does not exist|is not permitted)|permission denied)|"
            r"PSQLException: The server requested .*password"
        ),
        refused,
    ),
    (
        re.compile(
            r"PSQLException: (?:Connection to .* refused|The connection attempt failed|"
            r"An I/O error occurred|This connection has been closed|FATAL: )"
        ),
        unreachable,
    ),
    (re.compile(r"OutOfMemoryError|Java heap space|GC overhead limit"), _small_heap),
    (re.compile(r"JAVA_GATEWAY_EXITED"), _no_start),
    (
        re.compile(
            r"NotFoundException: (?:Failed to open|Location does not exist)|"
            r"Failed to open input stream for file|FileNotFoundException: File|"
            r"(?:not exist|No such file).*(?:metadata\.json|/metadata/[^/]*\.avro)|"
            r"(?:metadata\.json|/metadata/[^/]*\.avro)\b.*(?:not exist|No such file)"
        ),
        _missing,
    ),
)


def machine_error(error: BaseException) -> PolynyaError | None:
    """The error to show when the machine is the cause; None for any other cause."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in NO_ROOM:
            return no_room(_file(seen), seen.strerror)
        for text in _texts(seen):
            for sign, found in _SIGNS:
                if sign.search(text):
                    return found(_place(text), _plain(text))
        seen = seen.__cause__
    return None


def _file(error: OSError) -> str | None:
    return None if error.filename is None else str(error.filename)


def _plain(text: str) -> str:
    """The message of a library, in one line without the names of its classes."""
    return _CLASSES.sub("", " ".join(text.split()))[:_MOST_SHOWN]


def _place(text: str) -> str | None:
    match = _PATH.search(text)
    return match.group(1) if match else None


def _texts(error: BaseException) -> Iterator[str]:
    """The messages of a library, from the outside in; nothing for errors of our own code."""
    if isinstance(error, Py4JJavaError):
        yield from _java_causes(error.java_exception)
    elif isinstance(error, CapturedException):
        yield from _java_causes(error._origin)
    elif isinstance(error, _OF_LIBRARIES) or _is_of_sqlalchemy(error):
        yield str(error)


def _is_of_sqlalchemy(error: BaseException) -> bool:
    """Told by its name: a start that does not need the library does not load it for this."""
    return any(kind.__module__ == "sqlalchemy.exc" for kind in type(error).__mro__)


def _java_causes(java: Any) -> Iterator[str]:
    while java is not None:
        yield f"{java.getClass().getSimpleName()}: {java.getMessage()}"
        java = java.getCause()


_JAVA_SDK: Final = "software.amazon.awssdk."


def aws_error(error: BaseException) -> DependencyError | None:
    """The error to show when AWS, or the way there, is the cause; None for any other cause."""
    seen: BaseException | None = error
    while seen is not None:
        text = _of_python(seen) or _java_text(seen)
        if text is not None:
            # Start-up time: the AWS SDK.
            from polynya.store.aws.clients import explained_text

            return explained_text(text)
        seen = seen.__cause__
    return None


def _of_python(error: BaseException) -> str | None:
    from_sdk = type(error).__module__.partition(".")[0] == "botocore"
    from_arrow = isinstance(error, OSError) and "AWS Error " in str(error)
    return str(error) if from_sdk or from_arrow else None


def _java_text(error: BaseException) -> str | None:
    java: Any = None
    if isinstance(error, Py4JJavaError):
        java = error.java_exception
    elif isinstance(error, CapturedException):
        java = error._origin
    while java is not None:
        if str(java.getClass().getName()).startswith(_JAVA_SDK):
            return str(java.getMessage())
        java = java.getCause()
    return None


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
    """The error of a step whose outcome is unknown."""
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
    """Java's message; there a catalog in a database only says that something failed."""
    said = error.java_exception
    while str(said.getClass().getSimpleName()).startswith("UncheckedSQL") and said.getCause():
        said = said.getCause()
    return str(said.getMessage()).split("\n")[0]
