"""Requests that stay until they are withdrawn: `drain`, `freeze`, `move`, and `stop` of tasks.

Commands that differ only in their texts come from the table REQUESTS; `command` makes each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from polynya.cli.cluster_location import (
    ANYWHERE,
    ClusterLocation,
    Node,
    Reason,
    TaskName,
    Unit,
    Where,
    locate,
)
from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import ConfigError

if TYPE_CHECKING:
    from polynya.cluster.control.requests import Requests
    from polynya.cluster.unit import JobKey

#: What a request is about: the whole cluster, or the node or task of its first argument.
Subject: TypeAlias = Literal["cluster", "node", "task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequest:
    """A command that writes or withdraws one request.

    `text` and `nothing` are templates with `{name}`, that of the subject.

    Attributes:
        help: the help of the command, without its example.
        write: writes the request about a name, with a reason.
        withdraw: withdraws it instead; false if there was none.
        result: type of its result; `values` are in it, next to the subject.
        text: what the command says.
        nothing: what it says if there was nothing to withdraw.
    """

    subject: Subject
    help: str
    example: str
    write: Callable[[Requests, str, str], None] | None = None
    withdraw: Callable[[Requests, str], bool] | None = None
    result: str
    values: Mapping[str, bool]
    text: str
    nothing: str = ""


REQUESTS: Final[Mapping[str, OperatorRequest]] = {
    "freeze": OperatorRequest(
        subject="cluster",
        help="Stop moving units until `unfreeze`; work continues. Units of a dead node wait, too.",
        example='polynya cluster freeze --reason "incident 4711"',
        write=lambda requests, _, reason: requests.freeze(reason),
        result="cluster.freeze",
        values={"frozen": True},
        text="{name} is frozen: units stay where they are",
    ),
    "unfreeze": OperatorRequest(
        subject="cluster",
        help="Allow units to move again.",
        example="polynya cluster unfreeze",
        withdraw=lambda requests, _: requests.unfreeze(),
        result="cluster.freeze",
        values={"frozen": False},
        text="{name}: units move again",
        nothing="{name} was not frozen",
    ),
    "drain": OperatorRequest(
        subject="node",
        help="Move all units of a node to other nodes, and keep it empty until `undrain`.\n\n"
        "The agent of the node keeps running.",
        example='polynya cluster drain n2 --reason "new kernel"',
        write=lambda requests, node, reason: requests.drain(node, reason),
        result="cluster.drain",
        values={"drained": True},
        text="draining {name}: its units will move to other nodes",
    ),
    "undrain": OperatorRequest(
        subject="node",
        help="Allow units on a node again.",
        example="polynya cluster undrain n2",
        withdraw=lambda requests, node: requests.undrain(node),
        result="cluster.drain",
        values={"drained": False},
        text="{name} gets units again",
        nothing="no operator had drained {name}",
    ),
    "stop": OperatorRequest(
        subject="task",
        help="Stop a task on all nodes, after its running steps, until `start`.",
        example='polynya task stop orders --reason "month end"',
        write=lambda requests, task, reason: requests.stop(task, reason),
        result="task.wish",
        values={"stopped": True},
        text="stopping {name} on all nodes",
    ),
    "start": OperatorRequest(
        subject="task",
        help="Start a stopped task again.",
        example="polynya task start orders",
        withdraw=lambda requests, task: requests.start(task),
        result="task.wish",
        values={"stopped": False},
        text="{name} continues",
        nothing="no operator had stopped {name}",
    ),
    "resume": OperatorRequest(
        subject="task",
        help="Retry the suspended jobs of a task without an edit of its file.\n\n"
        "This also starts a stopped task. To resume a dataset that waits for a decision, use "
        "`polynya\ndataset resume`.",
        example="polynya task resume orders",
        write=lambda requests, task, reason: requests.resume(task, reason),
        result="task.wish",
        values={"stopped": False, "resumed": True},
        text="the suspended jobs of {name} will be retried",
    ),
}


def command(name: str) -> Callable[..., int]:
    """The function of a command of the table, with its signature and help for cyclopts."""
    request = REQUESTS[name]

    def run(
        *subject: str, reason: str = "", where: Where = ANYWHERE, context: CommandContext
    ) -> int:
        location = locate(context, where)
        about = subject[0] if subject else location.cluster
        text, data = request.text, {request.subject: about, **request.values}
        if request.write is not None:
            request.write(location.requests(), about, reason)
            data["reason"] = reason
        elif request.withdraw is not None:
            data["was"] = request.withdraw(location.requests(), about)
            text = request.text if data["was"] else request.nothing
        context.output.result(request.result, data, text.format(name=about))
        if request.write is not None and subject:
            warn_of_waiting(context, location, **{request.subject: about})
        return ExitCode.OK

    parameters = _parameters(request)
    run.__name__ = name
    run.__doc__ = f"{request.help}\n\nFor example: `{request.example}`."
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(request: OperatorRequest) -> list[Parameter]:
    parameters = []
    if request.subject != "cluster":
        kind = Node if request.subject == "node" else TaskName
        parameters = [Parameter(request.subject, Parameter.POSITIONAL_ONLY, annotation=kind)]
    if request.write is not None:
        parameters += [Parameter("reason", Parameter.KEYWORD_ONLY, default="", annotation=Reason)]
    return [
        *parameters,
        Parameter("where", Parameter.KEYWORD_ONLY, default=ANYWHERE, annotation=Where),
        Parameter("context", Parameter.KEYWORD_ONLY, annotation=Context),
    ]


def move(
    unit: Unit,
    node: Node,
    /,
    *,
    reason: Reason = "",
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Keep a task, or one dataset of it, on a node until `unmove`, while the node is ready.

    For example: `polynya cluster move shop/orders n2`.
    """
    location = locate(context, where)
    requests = location.requests()
    for key in _units(location, unit):
        requests.move(key, node, reason)
        data = {"task": key.task, "name": key.name, "node": node, "reason": reason}
        context.output.result("cluster.move", data, f"{key.task}/{key.name} will move to {node}")
    warn_of_waiting(context, location, target=node)
    return ExitCode.OK


def unmove(unit: Unit, /, *, where: Where = ANYWHERE, context: Context) -> int:
    """Let the leader place moved units again.

    For example: `polynya cluster unmove shop/orders`.
    """
    location = locate(context, where)
    requests = location.requests()
    for key in _units(location, unit):
        was = requests.unmove(key)
        text = "the leader places it again" if was else "no operator had moved it"
        data = {"task": key.task, "name": key.name, "node": None, "was": was}
        context.output.result("cluster.move", data, f"{key.task}/{key.name}: {text}")
    return ExitCode.OK


def _units(location: ClusterLocation, text: str) -> list[JobKey]:
    """The units of a cluster that a text names: `TASK` or `TASK/DATASET`."""
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import known_units, read_cluster

    task, _, dataset = text.partition("/")
    units = known_units(read_cluster(location.store, location.cluster))
    matches = [
        unit
        for unit in units
        if unit.task == task and dataset in ("", unit.name, unit.name.rpartition(".")[2])
    ]
    if not matches:
        raise no_such_unit(location, text, units)
    return matches


def no_such_unit(location: ClusterLocation, unit: str, units: Collection[JobKey]) -> ConfigError:
    """The error of a unit that a cluster does not know."""
    names = ", ".join(f"{key.task}/{key.name}" for key in list(units)[:20])
    return WRONG_USAGE(
        f"the cluster {location.cluster} has no unit `{unit}`",
        fix=f"one of {names}" if names else "start its agents first",
    )


def warn_of_waiting(
    context: CommandContext,
    location: ClusterLocation,
    *,
    node: str | None = None,
    target: str | None = None,
    task: str | None = None,
) -> None:
    """Warn if a request that was just written for a node or a task cannot be carried out now.

    It stays written: the node or the task may appear. `target` is a node that should get units,
    `node` one that should lose them; both wait in a frozen cluster.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import known_units, read_cluster
    from polynya.cluster.control.status import by_whom

    reading, cluster = read_cluster(location.store, location.cluster), location.cluster
    nodes = {lease.node for lease in reading.leases.values() if lease.state != "gone"}
    tasks = {unit.task for unit in known_units(reading)}
    warn, named_node = context.output.warning, target or node
    if named_node is not None and named_node not in nodes:
        warn(f"{cluster} has no node {named_node} now; the request waits for it{_of(nodes)}")
    if target is not None and (drain := reading.drains.get(target)) is not None:
        warn(
            f"{target} was drained by {by_whom(drain)}: it gets nothing until "
            f"`polynya cluster undrain {target}`"
        )
    if task is not None and task not in tasks:
        warn(f"{cluster} has no task {task} now; the request waits for it{_of(tasks)}")
    if named_node is not None and reading.freeze is not None:
        warn(f"{cluster} was frozen by {by_whom(reading.freeze)}: nothing moves now")


def _of(names: Collection[str]) -> str:
    """The existing names, the first of them in order."""
    return f"; it has {', '.join(sorted(names)[:20])}" if names else ""
