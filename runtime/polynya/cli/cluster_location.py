"""The cluster that a command addresses, and the options that these commands share."""

from __future__ import annotations

import getpass
import os
import random
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from cyclopts import Parameter

from polynya.cli.context import CommandContext
from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import ConfigError
from polynya.model.loader import LoadedProject
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.control.requests import Requests
    from polynya.cluster.coordination.store import DocumentStore
    from polynya.store.object_store import ObjectStore


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """The options by which all commands name a cluster.

    Attributes:
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        cluster: its name; default `POLYNYA_CLUSTER`, else `cluster` of the project, else the
            project's name.
    """

    coordination: str | None = None
    cluster: str | None = None


#: The cluster that the environment or the project names.
ANYWHERE: Final = Where()

Node: TypeAlias = Annotated[str, Parameter(help="id of the node.")]
TaskName: TypeAlias = Annotated[str, Parameter(help="name of the task.")]
Unit: TypeAlias = Annotated[str, Parameter(help="`TASK` for all its units, or `TASK/DATASET`.")]
Reason: TypeAlias = Annotated[str, Parameter(help="reason to show to other operators.")]
Wait: TypeAlias = Annotated[
    bool, Parameter(help="wait until it is done; exit code 1 when it fails.")
]


@dataclass(frozen=True, slots=True)
class ClusterLocation:
    """A cluster at its coordination place, whose name is `coordination`."""

    coordination: str
    cluster: str
    store: ObjectStore

    def register(self) -> DocumentStore:
        """The documents of the cluster."""
        # Start-up time: pydantic models of all documents.
        from polynya.cluster.coordination.store import DocumentStore

        return DocumentStore(self.store, self.cluster, random.SystemRandom())

    def requests(self) -> Requests:
        """Writes and withdraws requests of this operator."""
        # Start-up time: pydantic models of all documents.
        from polynya.cluster.control.requests import Requests

        return Requests(self.register(), operator(), SystemClock().now)


def operator() -> str:
    """The author of requests: `kim@laptop`."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def locate(context: CommandContext, where: Where) -> ClusterLocation:
    """The cluster that the options name, or the environment, or the project.

    Raises:
        ConfigError: nothing names a coordination place (POLYNYA-CLI-001).
    """
    store, name = coordination_store(context, where.coordination)
    cluster = where.cluster or os.environ.get("POLYNYA_CLUSTER")
    if not cluster:
        project = _project(context)
        if project is None:
            raise WRONG_USAGE(
                "no cluster is named", fix="add `--cluster NAME`, or set POLYNYA_CLUSTER"
            )
        cluster = project.cluster_name
    return ClusterLocation(name, cluster, store)


def coordination_store(
    context: CommandContext, coordination: str | None
) -> tuple[ObjectStore, str]:
    """The coordination place that an option or the environment names, and its name."""
    # Start-up time: pyarrow.
    from polynya.cluster.control import requests

    name = coordination or os.environ.get("POLYNYA_COORDINATION")
    if not name:
        raise WRONG_USAGE(
            "no coordination place is named",
            fix="add `--coordination PLACE` as the agents have it, or set POLYNYA_COORDINATION",
        )
    project = _project(context)
    access = project.target.aws if project is not None else AwsAccess()
    return requests.coordination_store(name, access), name


def _project(context: CommandContext) -> LoadedProject | None:
    """The project, if this is the folder of one; commands about a cluster need none."""
    try:
        return context.load(tolerant=True)
    except ConfigError:
        return None
