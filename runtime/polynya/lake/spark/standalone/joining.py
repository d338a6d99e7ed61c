"""Reaching a cluster, and waiting for its executors no longer than a person would."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from polynya.lake.spark.api import Py4JError, PySparkException, SparkSession
from polynya.lake.spark.standalone.package import packed
from polynya.model.config.engines.standalone import SparkCluster
from polynya.model.errors import DependencyError
from polynya.store.clock import Clock, SystemClock

_CONNECT_SECONDS: Final = 5.0
_EXECUTOR_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_STATE: Final = "nothing was started, no data was touched"


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
    raise DependencyError(
        "POLYNYA-DEP-008",
        f"the Spark master cannot be reached: {'; '.join(reasons)}",
        where=cluster.master,
        state=_STATE,
        fix="start it, or correct `engine` of the target; without `engine` Spark runs in this "
        "process",
    )


@contextmanager
def refusals(cluster: SparkCluster) -> Iterator[None]:
    """Raise DependencyError when the cluster does not take the session that starts inside."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise DependencyError(
            "POLYNYA-DEP-009",
            "the Spark cluster does not take this process as an application",
            where=cluster.master,
            state=_STATE,
            fix="it must run the Spark version of this package, with the same "
            "`spark.authenticate` settings; `polynya/log/spark.log` in the cache and the log of "
            "the master say more",
        ) from error


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
            raise DependencyError(
                "POLYNYA-DEP-014",
                f"no executor of the Spark cluster came within {wait_seconds:.0f} s",
                where=cluster.master,
                state=_STATE,
                fix="workers need a free core and the memory that `engine.memory` asks for, and "
                f"must reach this process at {cluster.host} (`engine.host`)",
            )
        clock.sleep(_LOOK_SECONDS)
    context.addPyFile(str(packed()))
    spark.conf.set("spark.sql.shuffle.partitions", str(context.defaultParallelism))
