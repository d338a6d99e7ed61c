"""Errors for faults of the machine, the catalog and AWS, and for commits that Iceberg refused.

The libraries raise these faults in Python or in the JVM: a full disk, a folder without write
access, a damaged or missing catalog or file, a heap that is too small. This module turns them into
errors that an operator can act on, and returns None for every other cause. `store` explains the
faults of its own requests itself.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from polynya.lake.spark import api
from polynya.lake.warehouse.check import NO_ROOM
from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.error_catalogue.lake import (
    COMMIT_UNKNOWN,
    IMPOSSIBLE_COLUMNS,
    LAYOUT_CHANGED_BY_OTHER,
    TABLE_CHANGED_BY_OWNER,
)
from polynya.model.error_catalogue.machine import (
    ACCESS_DENIED,
    DISK_FULL,
    DRIVER_HEAP_TOO_SMALL,
    JVM_NOT_STARTED,
    SPARK_EXECUTOR_ENDED,
)
from polynya.model.error_catalogue.warehouse import (
    CATALOG_DAMAGED,
    CATALOG_DATABASE_UNREACHABLE,
    CATALOG_LOGIN_REFUSED,
    CATALOG_SERVICE_REFUSED,
    CATALOG_SERVICE_UNREACHABLE,
    METADATA_FILE_MISSING_FIX,
    TABLE_FILE_MISSING,
)
from polynya.model.errors import (
    ConflictError,
    DependencyError,
    PolynyaError,
)

if TYPE_CHECKING:
    from polynya.lake.spark.api import Py4JJavaError

#: Longest text of a library that is shown.
_SHOWN_CHARACTERS: Final = 300
_OF_LIBRARIES: Final = (
    OSError,
    sqlite3.Error,
    pa.ArrowException,
)
_PATH: Final = re.compile(r"(?:file:)?(/[^\s'\",;()]+)")
#: Names of classes of the JVM, in front of what they say.
_CLASSES: Final = re.compile(r"\b(?:[a-z]\w*\.)*[A-Z]\w*(?:Exception|Error): ")
#: Texts by which a fault is recognised in an error message.
_SIGNS: Final[tuple[tuple[re.Pattern[str], ErrorEntry[Any]], ...]] = (
    (re.compile(r"No space left on device|Disk quota exceeded|SQLITE_FULL"), DISK_FULL),
    (
        re.compile(
            r"Read-only file system|Permission denied|SQLITE_READONLY|readonly database|"
            r"Mkdirs failed to create|SQLITE_CANTOPEN"
        ),
        ACCESS_DENIED,
    ),
    (
        re.compile(
            r"SQLITE_CORRUPT|SQLITE_NOTADB|not a database|disk image is malformed",
        ),
        CATALOG_DAMAGED,
    ),
    (
        re.compile(
            r"PSQLException: (?:FATAL|ERROR): (?:password authentication failed|no pg_hba\.conf "
            r"entry|role .* (?:does not exist|is not permitted)|permission denied)|"
            r"PSQLException: The server requested .*password"
        ),
        CATALOG_LOGIN_REFUSED,
    ),
    (
        re.compile(
            r"PSQLException: (?:Connection to .* refused|The connection attempt failed|"
            r"An I/O error occurred|This connection has been closed|FATAL: )"
        ),
        CATALOG_DATABASE_UNREACHABLE,
    ),
    (
        re.compile(r"^(?:NotAuthorizedException|ForbiddenException): "),
        CATALOG_SERVICE_REFUSED,
    ),
    (
        re.compile(
            r"^RESTException: Error occurred while processing|"
            r"^(?:ServiceFailureException|ServiceUnavailableException): "
        ),
        CATALOG_SERVICE_UNREACHABLE,
    ),
    (
        re.compile(
            r"OutOfMemoryError|Java heap space|GC overhead limit|"
            r"Not enough memory to build and broadcast"
        ),
        DRIVER_HEAP_TOO_SMALL,
    ),
    (re.compile(r"JAVA_GATEWAY_EXITED"), JVM_NOT_STARTED),
    (
        re.compile(r"Executor\$TaskRunner\S* rejected from .*\[(?:Shutting down|Terminated)"),
        SPARK_EXECUTOR_ENDED,
    ),
    (
        re.compile(
            r"NotFoundException: (?:Failed to open|Location does not exist)|"
            r"Failed to open input stream for file|FileNotFoundException: File|"
            r"(?:not exist|No such file).*(?:metadata\.json|/metadata/[^/]*\.avro)|"
            r"(?:metadata\.json|/metadata/[^/]*\.avro)\b.*(?:not exist|No such file)"
        ),
        TABLE_FILE_MISSING,
    ),
)
_JAVA_SDK: Final = "software.amazon.awssdk."
_INVALID: Final = "ValidationException"
_OVERTAKEN: Final = "CommitFailedException"


def machine_error(error: BaseException) -> PolynyaError | None:
    """The error to show when the machine is the cause; None for any other cause."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in NO_ROOM:
            return DISK_FULL(where=_file(seen), why=seen.strerror)
        for text in _texts(seen):
            for sign, entry in _SIGNS:
                if sign.search(text):
                    return _machine_error(entry, _path(text), _plain(text))
        seen = seen.__cause__
    return None


def _machine_error(entry: ErrorEntry[Any], path: str | None, why: str) -> PolynyaError:
    if entry is CATALOG_DAMAGED:
        path = path or "the catalog"
    if entry in {CATALOG_SERVICE_REFUSED, CATALOG_SERVICE_UNREACHABLE}:
        path = "the REST catalog of the target"
    fix = None
    if entry is TABLE_FILE_MISSING and path is not None and path.endswith(".metadata.json"):
        fix = METADATA_FILE_MISSING_FIX
    error: PolynyaError = entry(where=path, why=why, fix=fix)
    return error


def _file(error: OSError) -> str | None:
    return None if error.filename is None else str(error.filename)


def _plain(text: str) -> str:
    """The message of a library, in one line without the names of its classes."""
    return _CLASSES.sub("", " ".join(text.split()))[:_SHOWN_CHARACTERS]


def _path(text: str) -> str | None:
    match = _PATH.search(text)
    return match.group(1) if match else None


def _texts(error: BaseException) -> Iterator[str]:
    """The messages of a library, from the outside in; nothing for errors of our own code."""
    if isinstance(error, api.Py4JJavaError):
        yield from _java_causes(error.java_exception)
    elif isinstance(error, api.CapturedException):
        yield from _java_causes(error._origin)
    elif isinstance(error, (*_OF_LIBRARIES, api.PySparkException)) or _is_of_sqlalchemy(error):
        yield str(error)


def _is_of_sqlalchemy(error: BaseException) -> bool:
    """Told by its name: a start that does not need the library does not load it for this."""
    return any(kind.__module__ == "sqlalchemy.exc" for kind in type(error).__mro__)


def _java_causes(java: Any) -> Iterator[str]:
    while java is not None:
        yield f"{java.getClass().getSimpleName()}: {java.getMessage()}"
        java = java.getCause()


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
    if isinstance(error, api.Py4JJavaError):
        java = error.java_exception
    elif isinstance(error, api.CapturedException):
        java = error._origin
    while java is not None:
        if str(java.getClass().getName()).startswith(_JAVA_SDK):
            return str(java.getMessage())
        java = java.getCause()
    return None


def served_error(error: BaseException) -> PolynyaError | None:
    """The error to show when PyIceberg's REST catalog is the cause; None for any other cause."""
    if "pyiceberg.catalog.rest" not in sys.modules:
        return None
    # Start-up time: only a process that has asked such a catalog can have its errors.
    from polynya.lake.warehouse.rest_catalog import rest_error

    seen: BaseException | None = error
    while seen is not None:
        if (found := rest_error(seen)) is not None:
            return found
        seen = seen.__cause__
    return None


def is_refusal(error: Py4JJavaError) -> bool:
    """Whether Iceberg surely made no commit of rows because the table had moved."""
    return _is_any(error, {_INVALID, _OVERTAKEN})


def is_dropped(error: Py4JJavaError) -> bool:
    """Whether the catalog does not have the table any more."""
    return _is_any(error, {"NoSuchTableException"})


def _is_any(error: Py4JJavaError, names: Collection[str]) -> bool:
    cause = error.java_exception
    while cause is not None:
        if str(cause.getClass().getSimpleName()) in names:
            return True
        cause = cause.getCause()
    return False


def refusal(table: str, error: Py4JJavaError) -> ConflictError:
    """The error of a step that was refused because another owner was faster."""
    return TABLE_CHANGED_BY_OWNER(where=table, table=table, reason=first_line(error))


def unknown(table: str, error: Py4JJavaError) -> DependencyError:
    """The error of a step whose outcome is unknown."""
    return COMMIT_UNKNOWN(where=table, table=table, reason=first_line(error))


def of_change(table: str, error: Py4JJavaError) -> PolynyaError:
    """The error of a change of columns or layout, which carries no marker to look for."""
    if _is_any(error, {_INVALID}):
        return IMPOSSIBLE_COLUMNS(where=table, why=first_line(error), table=table)
    if _is_any(error, {_OVERTAKEN}):
        return LAYOUT_CHANGED_BY_OTHER(where=table, why=first_line(error), table=table)
    return aws_error(error) or machine_error(error) or unknown(table, error)


def first_line(error: Py4JJavaError) -> str:
    """Java's message; there a catalog in a database only says that something failed."""
    cause = error.java_exception
    while str(cause.getClass().getSimpleName()).startswith("UncheckedSQL") and cause.getCause():
        cause = cause.getCause()
    return str(cause.getMessage()).split("\n")[0]
