"""Join a standalone Spark cluster: which masters are allowed, and our code for its executors.

The machine names the allowed clusters and the configuration chooses one of them. This process
unpickles what executors send back, so it must trust a cluster as it trusts itself.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polynya
from polynya.lake.spark import api
from polynya.lake.spark.cache import cache_root
from polynya.model.config.aws import is_loopback
from polynya.model.config.engines import SparkCluster
from polynya.model.error_catalogue.machine import (
    NO_SPARK_EXECUTOR,
    SPARK_CLUSTER_NOT_ALLOWED,
    SPARK_CLUSTER_REFUSED,
    SPARK_MASTER_UNREACHABLE,
)
from polynya.model.names import shown
from polynya.store.clock import Clock, SystemClock
from polynya.store.node_folders import SPARK_MASTERS, SPARK_PYTHONS

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

_SCHEME = "spark://"


def refuse_unnamed(cluster: SparkCluster) -> None:
    """Raise ConfigError for a master, or a Python of its workers, that the machine does not name.

    Masters on this machine need no name, nor does the Python that runs here.
    """
    for address in cluster.master.removeprefix(_SCHEME).split(","):
        master = f"{_SCHEME}{address}"
        if not is_loopback(master) and not SPARK_MASTERS.holds(master):
            raise SPARK_CLUSTER_NOT_ALLOWED(
                where="engine.master",
                setting="engine.master",
                value=shown(master),
                variable=SPARK_MASTERS.variable,
            )
    python = cluster.python
    if python is not None and python != sys.executable and not SPARK_PYTHONS.holds(python):
        raise SPARK_CLUSTER_NOT_ALLOWED(
            where="engine.python",
            setting="engine.python",
            value=shown(python),
            variable=SPARK_PYTHONS.variable,
        )


_SUFFIXES = frozenset({".json", ".py"})
#: The earliest time that an archive can hold: the same files make the same archive.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def packed() -> Path:
    """Path of an archive of this package, in the cache; its name has the hash of its content."""
    root = Path(polynya.__file__).parent
    files = sorted(path for path in root.rglob("*") if path.suffix in _SUFFIXES)
    content = {str(path.relative_to(root.parent)): path.read_bytes() for path in files}
    digest = hashlib.sha256()
    for name, data in content.items():
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    target = cache_root() / "package" / f"polynya-{digest.hexdigest()[:16]}.zip"
    if not target.is_file():
        _write(target, content)
    return target


def _write(target: Path, content: dict[str, bytes]) -> None:
    """Write an archive so that nobody sees a part of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=".polynya-")
    try:
        with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, data in content.items():
                archive.writestr(zipfile.ZipInfo(name, _NO_TIME), data, zipfile.ZIP_DEFLATED)
        Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


_CONNECT_SECONDS: Final = 5.0
_EXECUTOR_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1


def find_master(cluster: SparkCluster) -> None:
    """Raise DependencyError when no master of a cluster answers within seconds.

    Spark itself would try for a minute, in a JVM that first has to start.
    """
    reasons = []
    for address in cluster.addresses:
        try:
            with socket.create_connection(address, timeout=_CONNECT_SECONDS):
                return
        except OSError as error:
            reasons.append(error.strerror or str(error))
    raise SPARK_MASTER_UNREACHABLE(where=cluster.master, reasons="; ".join(reasons))


@contextmanager
def refusals(cluster: SparkCluster) -> Iterator[None]:
    """Raise DependencyError when the cluster does not take the session that starts inside."""
    try:
        yield
    except (api.Py4JError, api.PySparkException) as error:
        raise SPARK_CLUSTER_REFUSED(where=cluster.master) from error


def join(
    spark: SparkSession,
    cluster: SparkCluster,
    *,
    wait_seconds: float = _EXECUTOR_SECONDS,
    clock: Clock | None = None,
) -> None:
    """Wait for the first executor, and let all of them fetch the package.

    Raises DependencyError, with the session stopped, when none comes.
    """
    context: Any = spark.sparkContext
    clock = clock or SystemClock()
    deadline = clock.monotonic() + wait_seconds
    # The driver is one of them.
    while len(context._jsc.sc().statusTracker().getExecutorInfos()) < 2:
        if clock.monotonic() >= deadline:
            spark.stop()
            raise NO_SPARK_EXECUTOR(where=cluster.master, seconds=wait_seconds, host=cluster.host)
        clock.sleep(_POLL_SECONDS)
    context.addPyFile(str(packed()))
    spark.conf.set("spark.sql.shuffle.partitions", str(context.defaultParallelism))


#: Of a session in one process; a cluster has as many cores as its executors bring.
_OF_ONE_PROCESS: Final = frozenset({"spark.default.parallelism", "spark.sql.shuffle.partitions"})


def on_cluster(conf: dict[str, str], cluster: SparkCluster, jars: Sequence[str]) -> dict[str, str]:
    """The settings of a session, changed for a cluster.

    Executors fetch the jars from the driver, as they fetch the package (`packed`).
    """
    changed = {name: value for name, value in conf.items() if name not in _OF_ONE_PROCESS}
    changed |= {
        "spark.driver.host": cluster.host,
        "spark.driver.bindAddress": cluster.host,
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC -Djavax.xml.accessExternalDTD=",
        "spark.jars": ",".join(jars),
        # A task that keeps rows (`ApplyRun.settle`) builds a batch of them beside what Spark counts
        # as used. Spark's 10,000 wide rows do not fit into a small executor.
        "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
    }
    if cluster.memory is not None:
        changed["spark.executor.memory"] = cluster.memory
    heap = min(_mib(conf["spark.driver.memory"]), _mib(cluster.memory or _EXECUTOR_MEMORY))
    for name, part in _BROADCAST.items():
        changed[name] = f"{min(_mib(conf[name]), heap // part)}m"
    return changed


#: Spark's own default of `spark.executor.memory`.
_EXECUTOR_MEMORY: Final = "1g"
#: A side of a join that is sent to all executors is in the heap of the driver, and then in each of
#: theirs: the part of the smallest heap that it may be estimated at. What comes is larger.
_BROADCAST: Final = {
    "spark.sql.autoBroadcastJoinThreshold": 16,
    "spark.sql.adaptive.autoBroadcastJoinThreshold": 8,
}
_UNITS: Final = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def _mib(text: str) -> int:
    """A size in Spark's spelling, such as `800m`, in MiB."""
    digits = text.strip().lower().removesuffix("b")
    unit = _UNITS.get(digits[-1:], 1)
    return int(digits.rstrip("kmgt")) * unit // 2**20
