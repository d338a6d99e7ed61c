"""Start the one Spark driver of a process: names, heap, settings for small machines.

It knows Spark and the catalog settings, but nothing of tables or tasks. Sources of the numbers:
docs/adr/0002-spark-session.md.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from polynya.lake.spark import api
from polynya.lake.spark.cache import cache_root
from polynya.lake.spark.catalog import CATALOG, SESSION_VIEWS
from polynya.lake.spark.local_files import write_plain_files
from polynya.lake.spark.releases import release_together
from polynya.lake.spark.standalone import on_cluster
from polynya.lake.spark.tracing import log_statements, trace_session
from polynya.model.config.engines import SparkCluster
from polynya.model.error_catalogue.machine import DRIVER_MEMORY_INVALID
from polynya.model.names import shown
from polynya.observe.trace import span

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession
    from polynya.lake.spark.java import JavaHome

__all__ = [
    "SessionSettings",
    "is_alive",
    "is_local",
    "spark_conf",
    "start_session",
    "use_in_this_thread",
]


#: The environment variable that names the heap of the driver.
MEMORY_VARIABLE: Final = "POLYNYA_DRIVER_MEMORY"
_GIB: Final = 1024
_MIN_HEAP_MIB: Final = 1 * _GIB
_SYSTEM_MIB: Final = 2 * _GIB
_MAX_SHARED_HEAP_MIB: Final = 4 * _GIB
# From 32 GiB on, the JVM's references take eight bytes instead of four: less fits into more.
_MAX_HEAP_MIB: Final = 30 * _GIB
_CONTAINER: Final = Path("/sys/fs/cgroup/memory.max")
#: Spark refuses a JVM that says it has less than 450 MiB, and a JVM says less than it was given.
_SPARK_LEAST: Final = 512
_SIZE: Final = re.compile(r"(\d{1,12})([kmgtKMGT])[bB]?")
#: Units in KiB.
_KIB: Final = {"k": 1, "m": 1 << 10, "g": 1 << 20, "t": 1 << 30}


def driver_heap(machine_mib: int, *, dedicated: bool) -> int:
    """The heap of the driver in MiB, for a machine with this memory in MiB.

    Everything runs in this one JVM, and beside it the Python process that reads batches, whose
    memory Arrow takes outside of both heaps. A machine that does nothing else (`dedicated`, a
    node) gives the JVM 60 % of what the system leaves: the rest is Python's, and what the JVM
    takes beside its heap for threads, classes and compiled code, at least 1 GiB of it. On a laptop
    a user works: a quarter, and no more than 4 GiB. Never less than 1 GiB, below which Spark
    does not start, and never so much that references grow.
    """
    if dedicated:
        return max(_MIN_HEAP_MIB, min((machine_mib - _SYSTEM_MIB) * 6 // 10, _MAX_HEAP_MIB))
    return max(_MIN_HEAP_MIB, min(machine_mib // 4, _MAX_SHARED_HEAP_MIB))


def machine_memory(container: Path = _CONTAINER) -> int:
    """The memory in MiB that this process may use: the machine's, or its container's if less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(container.read_text(encoding="ascii"))
    except (OSError, ValueError):
        limit = machine  # no container, or one without a limit: `max`
    return min(machine, limit) // 2**20


def asked_heap(text: str, machine_mib: int) -> int:
    """The requested heap in MiB, from Spark's spelling: `3g`, `800m`.

    Raises ConfigError when it is not a size, or one with which the JVM or Spark would not start.
    """
    match = _SIZE.fullmatch(text.strip())
    mib = int(match[1]) * _KIB[match[2].lower()] >> 10 if match else 0
    if match is None:
        raise DRIVER_MEMORY_INVALID(
            where=f"the environment variable {MEMORY_VARIABLE}",
            problem="is not a size",
            value=shown(text),
        )
    if mib < _SPARK_LEAST:
        raise DRIVER_MEMORY_INVALID(
            where=f"the environment variable {MEMORY_VARIABLE}",
            problem=f"is less than the {_SPARK_LEAST}m that Spark needs to start",
            value=shown(text),
        )
    if mib > machine_mib:
        raise DRIVER_MEMORY_INVALID(
            where=f"the environment variable {MEMORY_VARIABLE}",
            problem=f"is more than the {machine_mib}m of this machine",
            value=shown(text),
        )
    return mib


#: `M_ARENA_MAX` of glibc's malloc.h.
_M_ARENA_MAX: Final = -8
#: One session is started at a time.
_starting = threading.Lock()
#: Standard output belongs to results: what the JVM has to say goes to standard error.
QUIET_JVM = ("-Xlog:disable", "-XX:+DisplayVMOutputToStderr")
#: Every query brings generated code. Without room for it the JVM stops compiling, for good: the 48
#: MiB that it grants itself were full after one run over fifty datasets.
ROOMY_JVM = ("-XX:ReservedCodeCacheSize=256m",)
SMALL_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: A text of XML may name a document type elsewhere, and Spark's `xpath` would fetch it.
CLOSED_JVM = ("-Djavax.xml.accessExternalDTD=",)
#: Spark joins the steps of a stage to one method, which is soon too big for the JVM to compile.
LARGE_JVM = ("-XX:-DontCompileHugeMethods",)
#: What the engine and PySpark name in every step. py4j asks the JVM for each part of such a name
#: each time, and the JVM looks for a class `org` in three hundred jars: a tenth of a small step.
KEPT_NAMES = (
    "com.fasterxml.jackson.databind.ObjectMapper",
    "java.util.ArrayList",
    "org.apache.iceberg.DataFiles",
    "org.apache.iceberg.FileMetadata",
    "org.apache.iceberg.MetricsConfig",
    "org.apache.iceberg.SchemaParser",
    "org.apache.iceberg.expressions.Expressions",
    "org.apache.iceberg.inmemory.InMemoryInputFile",
    "org.apache.iceberg.parquet.ParquetUtil",
    "org.apache.iceberg.relocated.com.google.common.collect.ImmutableList",
    "org.apache.iceberg.relocated.com.google.common.util.concurrent.MoreExecutors",
    "org.apache.iceberg.shaded.org.apache.parquet.ParquetReadOptions",
    "org.apache.iceberg.shaded.org.apache.parquet.conf.PlainParquetConfiguration",
    "org.apache.iceberg.shaded.org.apache.parquet.format.converter.ParquetMetadataConverter",
    "org.apache.iceberg.spark.FileRewriteCoordinator",
    "org.apache.iceberg.spark.Spark3Util",
    "org.apache.iceberg.spark.SparkTableCache",
    "org.apache.iceberg.types",
    "org.apache.spark.sql.Observation",
    "org.apache.spark.sql.SparkSession",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.execution.arrow.ArrowConverters$.MODULE$",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.internal.SQLConf",
    "org.apache.spark.sql.types",
    "org.apache.spark.util.Utils",
    "py4j.reflection.TypeUtil",
    "PythonSQLUtils",
    "PythonUtils",
)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a Spark session of Polynya is started with.

    `catalog` holds catalog properties in Iceberg's names, without the prefix of Spark; `secrets`
    are those that the command line of the JVM may not show.
    `log_file` takes what the JVM prints, None leaves it on standard error.
    `scratch` takes what is written meanwhile, None leaves it to the system's own folder.
    `session_views` keeps the views in this session, for a catalog that can hold none.
    `memory` is the heap of the driver in Spark's spelling. `small` trades peak speed for a start in
    seconds. `cluster` runs the tasks, None runs them in this process.
    """

    jars: Sequence[str]
    catalog: Mapping[str, str]
    memory: str = "2g"
    small: bool = True
    jvm_options: Sequence[str] = ()
    log_file: Path | None = None
    session_views: bool = False
    scratch: Path | None = None
    cores: int = field(default_factory=lambda: os.cpu_count() or 2)
    cluster: SparkCluster | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@span("start Spark")
def start_session(settings: SessionSettings, java: JavaHome | None = None) -> SparkSession:
    """Return the running session of this process, started if there is none."""
    cluster = settings.cluster
    python = None if cluster is None else cluster.python
    if java is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    # The hostname of a laptop often resolves to an address of its network: nothing may listen
    # there.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1" if cluster is None else cluster.host
    # A second of every start: Spark runs a Python process to look for data sources among all the
    # packages that are called `pyspark_…`. The engine has none. Its tasks run this interpreter.
    os.environ["PYSPARK_DRIVER_PYTHON"] = "no-python-in-spark"
    os.environ["PYSPARK_PYTHON"] = python or sys.executable
    master = f"local[{settings.cores}]" if cluster is None else cluster.master
    builder = api.SparkSession.builder.master(master).appName("polynya")
    for key, value in spark_conf(settings).items():
        builder = builder.config(key, value)
    with _stderr_of_children(settings.log_file), _java_without_sigterm(), _own_sigint():
        spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    # Before anything asks for the catalog, which reads them then.
    for key, value in settings.secrets.items():
        spark.conf.set(f"spark.sql.catalog.{CATALOG}.{key}", value)
    release_together(spark)
    _share_malloc_arenas()
    _keep_names(spark._jvm)
    write_plain_files(spark)
    trace_session(spark)
    log_statements(spark)
    # PySpark prints every failed statement to standard error, also those whose failure is an
    # answer.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return spark


def _share_malloc_arenas() -> None:
    """Let all threads of Python take memory from two arenas, where glibc allocates it.

    By default it makes eight for each core. With 500 small tables they grew to 290 MiB in 24
    minutes, likely because the footers that a process keeps hold places in arenas whose other
    contents are gone (docs/adr/0002-spark-session.md).
    """
    # Start-up time: most commands start no session.
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def spark_conf(settings: SessionSettings) -> dict[str, str]:
    """All Spark settings of a session, as text."""
    cores = str(settings.cores)
    options = ["-Duser.timezone=UTC", "-Dderby.system.durability=test", *QUIET_JVM, *CLOSED_JVM]
    options += ROOMY_JVM
    options += [*settings.jvm_options, *(SMALL_JVM if settings.small else LARGE_JVM)]
    if settings.scratch is not None:
        options.append(f'"-Djava.io.tmpdir={settings.scratch}"')
    conf = {
        "spark.driver.extraClassPath": os.pathsep.join(settings.jars),
        "spark.driver.memory": settings.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Every query describes its plan for the UI, though there is none: a fourteenth of the time
        # of a small query in the long form, which is the default.
        "spark.sql.ui.explainMode": "simple",
        "spark.eventLog.enabled": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.default.parallelism": cores,
        "spark.locality.wait": "0",
        "spark.broadcast.compress": "false",
        # Cancelled tasks have nothing to finish: their cores are free at once.
        "spark.python.task.killTimeout": "100ms",
        "spark.sql.shuffle.partitions": cores,
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.autoBroadcastJoinThreshold": "256m",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "512m",
        # Up to this size (48 MB by default) rows that are given to Spark are computed on while the
        # plan is optimised, by one thread and row by row: right for a small batch only.
        "spark.sql.execution.arrow.localRelationThreshold": "256KB",
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.codegen.maxFields": "300",
        "spark.sql.session.timeZone": "UTC",
        # Inferring filters takes time that grows exponentially with columns that are passed
        # through aliases: a fold of 30 columns took minutes of planning, without it a second.
        "spark.sql.constraintPropagation.enabled": "false",
        # A cast that fails gives NULL, which the copy step sends to quarantine; an error would stop
        # the batch.
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        # Names of landed columns become SQL: `${env:HOME}` in one must stay the text that it is.
        "spark.sql.variable.substitute": "false",
        # A name such as csv.`/etc/passwd` would read any file.
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.defaultCatalog": CATALOG,
        "spark.sql.iceberg.data-planning-mode": "local",
        "spark.sql.iceberg.delete-planning-mode": "local",
        # The session catalog would start a Derby metastore with files in the working directory.
        "spark.sql.catalogImplementation": "in-memory",
    }
    prefix = f"spark.sql.catalog.{CATALOG}"
    conf[prefix] = "org.apache.iceberg.spark.SparkCatalog"
    for key, value in settings.catalog.items():
        conf[f"{prefix}.{key}"] = value
    if settings.scratch is not None:
        conf["spark.local.dir"] = str(settings.scratch)
    if settings.session_views:
        # First in the search for a name: queries say `shop.users` whatever the catalog.
        views = f"spark.sql.catalog.{SESSION_VIEWS}"
        conf["spark.sql.defaultCatalog"] = SESSION_VIEWS
        conf[views] = conf[prefix]
        conf[f"{views}.catalog-impl"] = "org.apache.iceberg.inmemory.InMemoryCatalog"
    served = settings.catalog.get("type") == "rest"
    if served or "warehouse" in settings.catalog:
        # The session catalog makes the folder of its empty default database, by default
        # `spark-warehouse` in the working directory. It knows no S3, and no names of a server.
        warehouse = settings.catalog.get("warehouse", "")
        elsewhere = served or warehouse.startswith("s3:")
        conf["spark.sql.warehouse.dir"] = str(cache_root() / "spark") if elsewhere else warehouse
    if settings.cluster is not None:
        conf = on_cluster(conf, settings.cluster, settings.jars)
    return conf


def _keep_names(jvm: Any) -> None:
    """Keep packages and classes as attributes, where py4j finds them without asking."""
    for name in KEPT_NAMES:
        place = jvm
        for part in name.split("."):
            value = getattr(place, part)
            setattr(place, part, value)
            place = value


@contextmanager
def _stderr_of_children(file: Path | None) -> Iterator[None]:
    """Let processes that start inside write their standard error to a file.

    The JVM greets with a page of notices.
    """
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with file.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


@contextmanager
def _java_without_sigterm() -> Iterator[None]:
    """Let the JVM that PySpark starts inside ignore SIGTERM.

    A service manager, or `timeout`, may send it to all processes of a service: the JVM is still
    needed for the step that is running. It ends with its parent, whose end closes its input. What
    this process does with the signal stays as it is: other threads may be at work, and whichever of
    them gets it, it is not lost.

    A JVM whose start is interrupted is ended: PySpark has removed the folder where it would tell
    its port, and it would wait for ever.
    """
    begun: list[subprocess.Popen[bytes]] = []

    def begin(*command: Any, **given: Any) -> subprocess.Popen[bytes]:
        begun.append(_without_sigterm(*command, **given))
        return begun[-1]

    with _starting:
        names = vars(api.java_gateway)
        before = names["Popen"]
        names["Popen"] = begin
        try:
            yield
        except BaseException:
            for process in begun:
                process.kill()
            raise
        finally:
            names["Popen"] = before


@contextmanager
def _own_sigint() -> Iterator[None]:
    """Keep the handler of SIGINT that this process has set.

    PySpark would replace it by one that cancels all jobs and raises KeyboardInterrupt: then Ctrl-C
    would cut off the steps that a run lets end. Where Python's own handler is set, PySpark's takes
    its place.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        yield
        return
    names = vars(api.context_module)
    before = names["signal"]
    names["signal"] = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda *_: None)
    try:
        yield
    finally:
        names["signal"] = before


def _without_sigterm(
    command: Sequence[str], *, preexec_fn: Callable[[], object] | None = None, **given: Any
) -> subprocess.Popen[bytes]:
    """A process that ignores SIGTERM. Java leaves a signal alone that is ignored at its start."""

    def begin() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if preexec_fn is not None:
            preexec_fn()

    return subprocess.Popen(command, preexec_fn=begin, **given)  # noqa: PLW1509 - PySpark does


def is_alive(spark: SparkSession) -> bool:
    """Whether the JVM of a session answers and its context was not stopped."""
    context: Any = spark.sparkContext
    try:
        return not context._jsc.sc().isStopped()
    except (api.Py4JError, AttributeError, OSError):
        return False


def is_local(spark: SparkSession) -> bool:
    """Whether tasks run in this process and its workers, not in executors of a cluster."""
    return str(spark.sparkContext.master).startswith("local")


def heap_bytes(spark: SparkSession) -> int:
    """Most bytes that the heap of the driver may grow to."""
    jvm: Any = spark._jvm
    return int(jvm.java.lang.Runtime.getRuntime().maxMemory())


def use_in_this_thread(spark: SparkSession) -> None:
    """Make the session active in the calling thread: Iceberg's staged writes look it up there."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
