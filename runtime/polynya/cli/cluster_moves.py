"""`polynya cluster move`, `drain` and `freeze`, and the reverse of each."""

from __future__ import annotations

import getpass
import os
import random
import socket
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cyclopts import Parameter

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.model.config.aws import AwsAccess
from polynya.model.errors import ConfigError
from polynya.model.loader import LoadedProject
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.control.requests import Requests
    from polynya.cluster.coordination.store import DocumentStore
    from polynya.cluster.unit import JobKey
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


#: What the environment or the project names.
ANYWHERE: Final = Where()


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster at its coordination place."""

    name: str
    cluster: str
    store: ObjectStore

    def register(self) -> DocumentStore:
        """Its objects."""
        # Start-up time: pydantic models of all documents.
        from polynya.cluster.coordination.store import DocumentStore

        return DocumentStore(self.store, self.cluster, random.SystemRandom())

    def wishes(self) -> Requests:
        """What this person asks of it."""
        # Start-up time: pydantic models of all documents.
        from polynya.cluster.control.requests import Requests

        return Requests(self.register(), self.person(), SystemClock().now)

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
    from polynya.cluster.control.requests import coordination_store

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
    """The project, if this is the folder of one; commands about a cluster need none."""
    try:
        return context.load(tolerant=True)
    except ConfigError:
        return None


def freeze(
    *,
    reason: str = "",
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Stop moving units until `unfreeze`; work continues. Units of a dead node wait, too.

    For example: `polynya cluster freeze --reason "incident 4711"`.

    Args:
        reason: reason to show to other operators.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    place.wishes().freeze(reason)
    data = {"cluster": place.cluster, "frozen": True, "reason": reason}
    context.output.result("cluster.freeze", data, f"{place.cluster} is frozen: nothing moves")
    return ExitCode.OK


def unfreeze(*, where: Where = ANYWHERE, context: Context) -> int:
    """Allow units to move again.

    For example: `polynya cluster unfreeze`.

    Args:
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    was = place.wishes().unfreeze()
    text = f"{place.cluster}: units move again" if was else f"{place.cluster} was not frozen"
    data = {"cluster": place.cluster, "frozen": False, "was": was}
    context.output.result("cluster.freeze", data, text)
    return ExitCode.OK


def warn_of_waiting(
    context: CommandContext,
    place: Place,
    *,
    node: str | None = None,
    target: str | None = None,
    task: str | None = None,
) -> None:
    """Say why what was just asked of a node, or of a task, is not done now.

    It was written down all the same: the node or the task may come. `target` is a node that is to
    get units, `node` one that is to lose them; both wait in a frozen cluster.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import known_units, read_cluster
    from polynya.cluster.control.status import by_whom

    reading = read_cluster(place.store, place.cluster)
    nodes = {lease.node for lease in reading.leases.values() if lease.state != "gone"}
    tasks = {unit.task for unit in known_units(reading)}
    said, of_node = context.output, target or node
    if of_node is not None and of_node not in nodes:
        said.warning(f"{place.cluster} has no node {of_node} now, so this waits for it{_of(nodes)}")
    if target is not None and (drain := reading.drains.get(target)) is not None:
        said.warning(
            f"{target} was drained by {by_whom(drain)}: it gets nothing until "
            f"`polynya cluster undrain {target}`"
        )
    if task is not None and task not in tasks:
        said.warning(f"{place.cluster} has no task {task} now, so this waits for it{_of(tasks)}")
    if of_node is not None and reading.freeze is not None:
        said.warning(f"{place.cluster} was frozen by {by_whom(reading.freeze)}: nothing moves now")


def _of(names: Collection[str]) -> str:
    """Those that there are, the first of them by name."""
    return f"; it has {', '.join(sorted(names)[:20])}" if names else ""


def move(
    unit: str,
    node: str,
    /,
    *,
    reason: str = "",
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Keep a task, or one dataset of it, on a node until `unmove`, while the node is ready.

    For example: `polynya cluster move shop/orders n2`.

    Args:
        unit: `TASK` for all its units, or `TASK/DATASET`.
        node: id of the node.
        reason: reason to show to other operators.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    wishes = place.wishes()
    for one in _units(place, unit):
        wishes.move(one, node, reason)
        data = {"task": one.task, "name": one.name, "node": node, "reason": reason}
        context.output.result("cluster.move", data, f"{one.task}/{one.name} is to go to {node}")
    warn_of_waiting(context, place, target=node)
    return ExitCode.OK


def unmove(
    unit: str,
    /,
    *,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Let the leader place moved units again.

    For example: `polynya cluster unmove shop/orders`.

    Args:
        unit: `TASK` for all its units, or `TASK/DATASET`.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    wishes = place.wishes()
    for one in _units(place, unit):
        was = wishes.unmove(one)
        what = "goes where the leader wants it" if was else "was not moved by anybody"
        data = {"task": one.task, "name": one.name, "node": None, "was": was}
        context.output.result("cluster.move", data, f"{one.task}/{one.name} {what}")
    return ExitCode.OK


def _units(place: Place, text: str) -> list[JobKey]:
    """The units that a text names, of those that the cluster knows."""
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import known_units, read_cluster

    task, _, dataset = text.partition("/")
    known = known_units(read_cluster(place.store, place.cluster))
    found = [
        one
        for one in known
        if one.task == task and (not dataset or one.name == dataset or _last(one) == dataset)
    ]
    if not found:
        names = ", ".join(f"{one.task}/{one.name}" for one in known[:20])
        raise usage_error(
            f"the cluster {place.cluster} has no unit `{text}`",
            f"one of {names}" if names else "start its agents first",
        )
    return found


def _last(unit: JobKey) -> str:
    """The dataset without its schema."""
    return unit.name.rpartition(".")[2]


def drain(
    node: str,
    /,
    *,
    reason: str = "",
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Move all units of a node to other nodes, and keep it empty until `undrain`.

    The agent of the node keeps running.

    For example: `polynya cluster drain n2 --reason "new kernel"`.

    Args:
        node: id of the node.
        reason: reason to show to other operators.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    place.wishes().drain(node, reason)
    data = {"node": node, "drained": True, "reason": reason}
    context.output.result("cluster.drain", data, f"{node} is to hand its units over")
    warn_of_waiting(context, place, node=node)
    return ExitCode.OK


def undrain(
    node: str,
    /,
    *,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Allow units on a node again.

    For example: `polynya cluster undrain n2`.

    Args:
        node: id of the node.
        where: the cluster.
        context: given by `main`.
    """
    was = place_of(context, where).wishes().undrain(node)
    text = f"{node} gets units again" if was else f"nobody had asked to drain {node}"
    context.output.result("cluster.drain", {"node": node, "drained": False, "was": was}, text)
    return ExitCode.OK
