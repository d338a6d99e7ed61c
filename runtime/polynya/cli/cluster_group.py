"""`polynya cluster stop`, `start`, `roll`, `scale`, `pin-agent`: commands for its machines."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polynya.cli.cluster_location import (
    ANYWHERE,
    ClusterLocation,
    Reason,
    Wait,
    Where,
    coordination_store,
    locate,
    operator,
)
from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.output import Output
from polynya.model.error_catalogue.cluster import CLUSTER_COMMAND_FAILED, CLUSTER_COMMAND_NOT_TAKEN
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.store.clock import Clock, SystemClock

if TYPE_CHECKING:
    from polynya.cluster.network.documents import ClusterCommand, Kind


#: Commands that have no argument: help and example.
_GROUP_COMMANDS: Final[dict[Kind, tuple[str, str]]] = {
    "stop": (
        """Stop all nodes of a cluster until `start`, after they have released their work.

No landed object, schedule or strategy starts a node meanwhile. The network agent of the stage
executes the command.""",
        'polynya cluster stop --reason "weekend" --wait',
    ),
    "start": (
        "Start a stopped cluster with as many nodes as before, at least one.",
        "polynya cluster start",
    ),
    "roll": (
        "Replace all nodes of a cluster, a few at a time; their work moves to other nodes.",
        'polynya cluster roll --reason "new kernel"',
    ),
}


def _group_command(kind: Kind) -> Callable[..., int]:
    def command(
        *, reason: Reason = "", wait: Wait = False, where: Where = ANYWHERE, context: Context
    ) -> int:
        return _queue(context, locate(context, where), kind, reason, wait=wait)

    text, example = _GROUP_COMMANDS[kind]
    command.__name__ = kind
    command.__doc__ = f"{text}\n\nFor example: `{example}`."
    return command


stop, start, roll = map(_group_command, _GROUP_COMMANDS)


def scale(
    nodes: int,
    /,
    *,
    reason: Reason = "",
    wait: Wait = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Set the number of nodes now, within the bounds of the stage file.

    The strategy continues from there, and may change the number again.

    For example: `polynya cluster scale 4`.

    Args:
        nodes: how many.
    """
    if not 0 <= nodes <= 10_000:
        raise WRONG_USAGE(f"a cluster has no {nodes} nodes", fix="0 to 10000")
    return _queue(context, locate(context, where), "scale", reason, nodes, wait=wait)


def _queue(
    context: CommandContext,
    location: ClusterLocation,
    kind: Kind,
    reason: str,
    nodes: int | None = None,
    *,
    wait: bool,
) -> int:
    """Put the command into the queue of the network agent; with `wait`, wait for its end."""
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.documents import ClusterCommand
    from polynya.cluster.network.relay import give
    from polynya.cluster.network.sign_of_life import why_no_agent

    command = ClusterCommand(
        kind=kind, nodes=nodes, by=operator(), reason=reason, since=SystemClock().now()
    )
    register = location.register()
    name = give(register, command)
    if (missing := why_no_agent(register, command.since)) is not None:
        context.output.warning(f"{missing}: the command waits for it, an hour at most")
    if wait:
        command = wait_for(context.output, location, name)
    _show(context.output, location, name, command)
    return ExitCode.OK


_POLL_SECONDS: Final = 2.0


def wait_for(
    output: Output, location: ClusterLocation, name: str, *, clock: Clock | None = None
) -> ClusterCommand:
    """The command as soon as it is done.

    Raises:
        OperationError: it failed or was refused (POLYNYA-AGT-061).
        DependencyError: no network agent took it in time (POLYNYA-AGT-062).
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.documents import TAKEN_WITHIN, ClusterCommand, command_path

    clock, register, reported = clock or SystemClock(), location.register(), ""
    where = f"{location.cluster}, {name}"
    while True:
        document = register.read(ClusterCommand, command_path(name))
        if document is None:
            raise CLUSTER_COMMAND_NOT_TAKEN(where=where, why="its object was deleted")
        command = document.document
        if not command.is_open:
            break
        if command.state == "pending" and clock.now() - command.since > TAKEN_WITHIN:
            raise CLUSTER_COMMAND_NOT_TAKEN(
                where=where, why=f"no network agent took it within {TAKEN_WITHIN}"
            )
        progress = command.outcome or "no network agent has taken it yet"
        if progress != reported:
            output.note(f"{command.text()}: {progress}")
            reported = progress
        clock.sleep(_POLL_SECONDS)
    if command.state != "done":
        raise CLUSTER_COMMAND_FAILED(
            where=where,
            why=command.outcome,
            command=command.text(),
            outcome=command.state,
        )
    return command


def _show(output: Output, location: ClusterLocation, name: str, command: ClusterCommand) -> None:
    """Report the state of a command."""
    data = {
        "cluster": location.cluster,
        "id": name,
        "command": command.kind,
        "nodes": command.nodes,
        "by": command.by,
        "reason": command.reason,
        "since": command.since,
        "state": command.state,
        "outcome": command.outcome,
        "asked": list(command.steps),
        "ended_at": command.ended_at,
    }
    why = f": {command.outcome}" if command.outcome else ""
    by = f"by {command.by}, {command.since:%Y-%m-%d %H:%M:%S} UTC"
    output.result("cluster.command", data, f"{name}: {command.text()}: {command.state}{why}, {by}")


def commands(*, where: Where = ANYWHERE, context: Context) -> int:
    """List requests of `stop`, `start`, `roll` and `scale` in the last week, oldest first.

    For example: `polynya cluster commands --json`.

    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.relay import CommandQueue

    location = locate(context, where)
    queue = CommandQueue(location.register())
    queue.refresh()
    for name, command in queue.all():
        _show(context.output, location, name, command)
    for trouble in queue.troubles:
        context.output.warning(trouble)
    return ExitCode.OK


_TOKEN_BITS = 128


def pin_agent(
    package: Path,
    /,
    *,
    reason: Reason = "",
    coordination: str | None = None,
    context: Context,
) -> int:
    """Pin the version of the network agents of a coordination place.

    Each agent fetches the package, verifies it and tries it next to the running version, which
    continues if the new one does not prove that it works. `make package` builds such a package as
    `code.tar`.

    For example: `polynya cluster pin-agent code.tar --coordination s3://acme-config/coordination`.

    Args:
        package: file with the code.
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.update_process import MAX_PACKAGE_BYTES, put_pin

    store, _ = coordination_store(context, coordination)
    try:
        size = package.stat().st_size
        data = package.read_bytes() if 0 < size <= MAX_PACKAGE_BYTES else b""
    except OSError as error:
        raise WRONG_USAGE(f"{package}: {error.strerror}") from None
    if not data:
        raise WRONG_USAGE(f"{package} has {size:,} bytes", fix=f"1 to {MAX_PACKAGE_BYTES:,} bytes")
    token = f"{random.SystemRandom().getrandbits(_TOKEN_BITS):032x}"
    by, now = operator(), SystemClock().now()
    pin = put_pin(store, data, by=by, reason=reason, now=now, token=token)
    result = {"sha256": pin.sha256, "size": pin.size, "by": by, "reason": reason}
    context.output.result("network.pin", result, f"network agents will run {pin.sha256[:12]}")
    return ExitCode.OK


def unpin_agent(*, coordination: str | None = None, context: Context) -> int:
    """Let the network agents of a coordination place run the installed version again.

    For example: `polynya cluster unpin-agent`.

    Args:
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.update_process import take_pin_back

    was = take_pin_back(coordination_store(context, coordination)[0])
    text = "network agents will run the installed version" if was else "no version was pinned"
    context.output.result("network.pin", {"sha256": None, "was": was}, text)
    return ExitCode.OK
