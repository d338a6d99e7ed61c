"""Faults of the machine are told as such, whoever met them; everything else stays a bug."""

from __future__ import annotations

import errno
import sqlite3
from dataclasses import dataclass

import pyarrow as pa
import pytest
from sqlalchemy.exc import DatabaseError

from polynya.engine.errors import as_polynya
from polynya.lake.iceberg import commit
from polynya.lake.read import query
from polynya.lake.read.query import Statement
from polynya.lake.spark.api import CapturedException, Py4JJavaError


@dataclass
class Thrown:
    """An exception of the JVM, as py4j shows it."""

    name: str
    message: str
    cause: Thrown | None = None

    def getClass(self) -> Thrown:
        return self

    def getSimpleName(self) -> str:
        return self.name

    def getName(self) -> str:
        return f"java.lang.{self.name}"

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> Thrown | None:
        return self.cause


class Captured(CapturedException):
    """PySpark's exception, without a JVM."""

    def __init__(self, origin: Thrown | None) -> None:
        self._origin = origin

    def __str__(self) -> str:
        return "a query failed"


def of_java(*thrown: tuple[str, str]) -> BaseException:
    """What PySpark raises for an exception and its causes."""
    cause: Thrown | None = None
    for name, message in reversed(thrown):
        cause = Thrown(name, message, cause)
    return Captured(cause)


#: What Spark says of a task for an executor whose heap was too small.
ENDING_EXECUTOR = (
    "Task org.apache.spark.executor.Executor$TaskRunner@689205cc rejected from "
    "java.util.concurrent.ThreadPoolExecutor@2b54597b[Shutting down, pool size = 1, active threads "
    "= 1, queued tasks = 0, completed tasks = 3]"
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/lake/1.parquet"), "POLYNYA-DEP-011"),
        (pa.ArrowException("IOError: No space left on device"), "POLYNYA-DEP-011"),
        (
            of_java(("SparkException", "Job aborted"), ("IOException", "No space left on device")),
            "POLYNYA-DEP-011",
        ),
        (
            of_java(
                ("SparkException", "Job aborted due to stage failure"),
                (
                    "RejectedExecutionException",
                    ENDING_EXECUTOR,
                ),
            ),
            "POLYNYA-DEP-020",
        ),
        (
            of_java(("SQLiteException", "[SQLITE_FULL] database is full")),
            "POLYNYA-DEP-011",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "/lake"), "POLYNYA-DEP-010"),
        (of_java(("IOException", "Mkdirs failed to create file:/lake/data")), "POLYNYA-DEP-010"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "POLYNYA-DEP-010"),
        (
            of_java(("SQLiteException", "[SQLITE_NOTADB] no database")),
            "POLYNYA-LAKE-040",
        ),
        (
            DatabaseError("SELECT 1", {}, Exception("database disk image is malformed")),
            "POLYNYA-LAKE-040",
        ),
        (
            of_java(
                ("NotFoundException", "Failed to open input stream for file: /lake/m.json"),
            ),
            "POLYNYA-LAKE-043",
        ),
        (
            FileNotFoundError("Failed to open '/lake/t/metadata/1.metadata.json': No such file"),
            "POLYNYA-LAKE-043",
        ),
        (of_java(("OutOfMemoryError", "Java heap space")), "POLYNYA-DEP-012"),
        (
            of_java(("SparkException", "Not enough memory to build and broadcast the table to")),
            "POLYNYA-DEP-012",
        ),
        (
            of_java(
                ("UncheckedSQLException", "Failed to connect"),
                ("PSQLException", "Connection to 127.0.0.1:5 refused. Check the hostname"),
            ),
            "POLYNYA-DEP-015",
        ),
        (
            of_java(("PSQLException", 'FATAL: password authentication failed for user "lake"')),
            "POLYNYA-DEP-016",
        ),
        (of_java(("AnalysisException", "no such column")), "POLYNYA-BUG-001"),
        (ValueError("No space left on device"), "POLYNYA-BUG-001"),
    ],
)
def test_a_fault_of_the_machine_is_no_bug(error: BaseException, code: str) -> None:
    found = as_polynya(error)

    assert found.code == code
    assert found.fix
    assert found.state


def test_the_place_is_named() -> None:
    thrown = ("NotFoundException", "Failed to open input stream for file: file:/lake/m.json")

    assert as_polynya(of_java(thrown)).where == "/lake/m.json"


def test_the_way_on_without_metadata_is_to_repair_the_catalog() -> None:
    metadata = FileNotFoundError("'/lake/t/metadata/00008-a.metadata.json'. No such file")
    manifest = FileNotFoundError("'/lake/t/metadata/00008-a.avro'. No such file")

    assert "`polynya doctor --repair`" in str(as_polynya(metadata).fix)
    assert "--repair" not in str(as_polynya(manifest).fix)


def test_a_cause_is_told_without_the_classes_of_the_jvm() -> None:
    thrown = ("FSError", "java.io.IOException: No space left on device")

    assert as_polynya(of_java(thrown)).why == "No space left on device"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("java.io.IOException: No space left on device", "POLYNYA-DEP-011"),
        ("the server is gone", "POLYNYA-LAKE-005"),
    ],
)
def test_a_commit_that_the_machine_refused_says_so(message: str, code: str) -> None:
    refused = Refused(Thrown("FSError", message))

    found = commit._explained(Named("shop.users"), None, refused, is_live=False)

    assert found.code == code


def test_a_query_that_meets_a_missing_file_says_so() -> None:
    thrown = Thrown("NotFoundException", "Failed to open input stream for file: /lake/m.json")

    assert query._refused(None, Statement("SELECT 1"), Refused(thrown)).code == "POLYNYA-LAKE-043"


@dataclass
class Named:
    """All of a table that an error needs."""

    name: str


class Refused(Py4JJavaError):
    """What py4j raises for an exception, without a JVM."""

    def __init__(self, thrown: Thrown) -> None:
        self.java_exception = thrown
