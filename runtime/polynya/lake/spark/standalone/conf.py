"""What a session on a cluster is told that one in a process of its own is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from polynya.model.config.engines.standalone import SparkCluster

#: Of a session in one process; a cluster has as many cores as its executors bring.
_OF_ONE_PROCESS: Final = frozenset({"spark.default.parallelism", "spark.sql.shuffle.partitions"})


def on_cluster(conf: dict[str, str], cluster: SparkCluster, jars: Sequence[str]) -> dict[str, str]:
    """The settings of a session, changed for a cluster.

    Executors fetch the jars from the driver, as they fetch the package (`package.py`).
    """
    changed = {name: value for name, value in conf.items() if name not in _OF_ONE_PROCESS}
    changed |= {
        "spark.driver.host": cluster.host,
        "spark.driver.bindAddress": cluster.host,
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC -Djavax.xml.accessExternalDTD=",
        "spark.jars": ",".join(jars),
    }
    if cluster.memory is not None:
        changed["spark.executor.memory"] = cluster.memory
    return changed
