"""Faults of the machine as errors that people can act on, whoever met them: Python or the JVM.

A full disk, a folder that cannot be written, a catalog or a file that is damaged or gone, a heap
that is too small.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from polynya.lake.spark.api import CapturedException, Py4JJavaError, PySparkException
from polynya.lake.warehouse.catalog_file import damaged
from polynya.lake.warehouse.folder import NO_ROOM, no_access, no_room
from polynya.lake.warehouse.server_errors import refused, unreachable
from polynya.model.errors import DependencyError, OperationError, PolynyaError

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


#: What a fault is told by, in the text of who met it.
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
    """What a library said, in one line without the names of its classes."""
    return _CLASSES.sub("", " ".join(text.split()))[:_MOST_SHOWN]


def _place(text: str) -> str | None:
    match = _PATH.search(text)
    return match.group(1) if match else None


def _texts(error: BaseException) -> Iterator[str]:
    """What a library said, from the outside in; nothing for errors of our own code."""
    if isinstance(error, Py4JJavaError):
        yield from _of_java(error.java_exception)
    elif isinstance(error, CapturedException):
        yield from _of_java(error._origin)
    elif isinstance(error, _OF_LIBRARIES) or _is_of_sqlalchemy(error):
        yield str(error)


def _is_of_sqlalchemy(error: BaseException) -> bool:
    """Told by its name: a start that does not need the library does not load it for this."""
    return any(kind.__module__ == "sqlalchemy.exc" for kind in type(error).__mro__)


def _of_java(java: Any) -> Iterator[str]:
    while java is not None:
        yield f"{java.getClass().getSimpleName()}: {java.getMessage()}"
        java = java.getCause()
