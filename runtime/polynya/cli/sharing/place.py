"""Where a cluster is found: the coordination place and the name that a command means."""

from __future__ import annotations

import getpass
import os
import random
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cyclopts import Parameter

from polynya.cli.context import CommandContext
from polynya.cli.options import usage_error
from polynya.model.config.aws import AwsAccess
from polynya.model.errors import ConfigError
from polynya.model.reading.loader import LoadedProject
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.control.wishes import Wishes
    from polynya.cluster.coordination.register import Register
    from polynya.store.object_store import ObjectStore


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """The options by which all verbs name a cluster.

    Attributes:
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        cluster: its name; default `POLYNYA_CLUSTER`, else `cluster` of the project, else the
            project's name.
    """

    coordination: str | None = None
    cluster: str | None = None


#: What the environment or the project names.
ANYWHERE: Final = Where()


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster at its coordination place."""

    name: str
    cluster: str
    store: ObjectStore

    def register(self) -> Register:
        """Its objects."""
        # Start-up time: pydantic models of all documents.
        from polynya.cluster.coordination.register import Register

        return Register(self.store, self.cluster, random.SystemRandom())

    def wishes(self) -> Wishes:
        """What this person asks of it."""
        # Start-up time: pydantic models of all documents.
        from polynya.cluster.control.wishes import Wishes

        return Wishes(self.register(), self.person(), SystemClock().now)

    @staticmethod
    def person() -> str:
        """Who asks."""
        return f"{getpass.getuser()}@{socket.gethostname()}"


def place_of(context: CommandContext, where: Where) -> Place:
    """The cluster that the options name, or the environment, or the project.

    Raises:
        ConfigError: nothing names a coordination place (POLYNYA-CLI-001).
    """
    store, name = store_of(context, where.coordination)
    named = where.cluster or os.environ.get("POLYNYA_CLUSTER")
    if not named:
        project = _project(context)
        if project is None:
            raise usage_error("no cluster is named", "add `--cluster NAME`, or set POLYNYA_CLUSTER")
        named = project.cluster_name
    return Place(name, named, store)


def store_of(context: CommandContext, coordination: str | None) -> tuple[ObjectStore, str]:
    """The coordination place that an option or the environment names, and its name."""
    # Start-up time: pyarrow.
    from polynya.cluster.control.place import coordination_store

    name = coordination or os.environ.get("POLYNYA_COORDINATION")
    if not name:
        raise usage_error(
            "no coordination place is named",
            "add `--coordination PLACE` as the agents have it, or set POLYNYA_COORDINATION",
        )
    project = _project(context)
    access = project.target.aws if project is not None else AwsAccess()
    return coordination_store(name, access), name


def _project(context: CommandContext) -> LoadedProject | None:
    """The project, if this is the folder of one: whoever looks at a cluster needs none."""
    try:
        return context.load(tolerant=True)
    except ConfigError:
        return None
