"""Which Spark clusters a session may join: the machine names them, the configuration chooses.

What executors send back is unpacked in this process, so a cluster is trusted as the process itself.
"""

from __future__ import annotations

import sys

from polynya.model.config.aws import is_loopback
from polynya.model.config.engines.standalone import SparkCluster
from polynya.model.contract.identifiers import shown
from polynya.model.errors import ConfigError
from polynya.store.node_folders import SPARK_MASTERS, SPARK_PYTHONS, NodeList

_SCHEME = "spark://"


def refuse_unnamed(cluster: SparkCluster) -> None:
    """Raise ConfigError for a master, or a Python of its workers, that the machine does not name.

    Masters on this machine need no name, nor does the Python that runs here.
    """
    for address in cluster.master.removeprefix(_SCHEME).split(","):
        master = f"{_SCHEME}{address}"
        if not is_loopback(master) and not SPARK_MASTERS.holds(master):
            raise _refused("engine.master", master, SPARK_MASTERS)
    python = cluster.python
    if python is not None and python != sys.executable and not SPARK_PYTHONS.holds(python):
        raise _refused("engine.python", python, SPARK_PYTHONS)


def _refused(setting: str, value: str, known: NodeList) -> ConfigError:
    return ConfigError(
        "POLYNYA-DEP-019",
        f"`{setting}` is {shown(value)}, which this machine does not name",
        where=setting,
        state="nothing was started, no data was touched",
        fix=f"whoever runs the machine names it in the environment variable `{known.variable}`",
    )
