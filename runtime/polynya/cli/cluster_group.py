"""`polynya cluster stop`, `start`, `roll`, `scale`, `pin-agent`: commands for its machines."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polynya.cli.cluster_moves import ANYWHERE, Place, Where, place_of, store_of
from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.cli.output import Output
from polynya.model.errors import DependencyError, OperationError
from polynya.store.clock import Clock, SystemClock

if TYPE_CHECKING:
    from polynya.cluster.network.documents import ClusterCommand, Kind


_STEP_SECONDS: Final = 2.0


def shown(output: Output, place: Place, name: str, command: ClusterCommand) -> None:
    """Say what became of a command."""
    data = {
        "cluster": place.cluster,
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


def waited_for(
    output: Output, place: Place, name: str, *, clock: Clock | None = None
) -> ClusterCommand:
    """The command when it has ended well.

    Raises:
        OperationError: it did not (POLYNYA-AGT-061).
        DependencyError: nobody took it in time (POLYNYA-AGT-062).
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.documents import TAKEN_WITHIN, ClusterCommand, command_path

    clock, register, said = clock or SystemClock(), place.register(), ""
    while True:
        found = register.read(ClusterCommand, command_path(name))
        if found is None:
            raise _untaken(place, name, "its object was deleted")
        command = found.document
        if not command.is_open:
            break
        if command.state == "pending" and clock.now() - command.since > TAKEN_WITHIN:
            raise _untaken(place, name, f"nobody took it within {TAKEN_WITHIN}")
        news = command.outcome or "no network agent has taken it yet"
        if news != said:
            output.note(f"{command.text()}: {news}")
            said = news
        clock.sleep(_STEP_SECONDS)
    if command.state != "done":
        raise OperationError(
            "POLYNYA-AGT-061",
            f"the command `{command.text()}` was not carried out: {command.state}",
            where=f"{place.cluster}, {name}",
            why=command.outcome,
            state="the nodes that there are work on",
            fix="do what the reason says, then give the command again",
        )
    return command


def _untaken(place: Place, name: str, why: str) -> DependencyError:
    return DependencyError(
        "POLYNYA-AGT-062",
        "no network agent carried out the command",
        where=f"{place.cluster}, {name}",
        why=why,
        state="nothing was asked of the group; its nodes work on",
        fix="see with `polynya cluster status` whether the network agent is connected",
    )


def commands(
    *,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """List requests of `stop`, `start`, `roll` and `scale` in the last week, oldest first.

    For example: `polynya cluster commands --json`.

    Args:
        where: the cluster.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.relay import CommandQueue

    place = place_of(context, where)
    queue = CommandQueue(place.register())
    queue.refresh()
    for name, command in queue.all():
        shown(context.output, place, name, command)
    for trouble in queue.troubles:
        context.output.warning(trouble)
    return ExitCode.OK


_TOKEN_BITS = 128


def pin_agent(
    package: Path,
    /,
    *,
    reason: str = "",
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
        reason: reason to show to other operators.
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.update_process import MAX_PACKAGE_BYTES, put_pin

    store, _ = store_of(context, coordination)
    try:
        size = package.stat().st_size
        data = package.read_bytes() if 0 < size <= MAX_PACKAGE_BYTES else b""
    except OSError as error:
        raise usage_error(f"{package}: {error.strerror}") from None
    if not data:
        raise usage_error(f"{package} has {size:,} bytes", f"1 to {MAX_PACKAGE_BYTES:,} bytes")
    token = f"{random.SystemRandom().getrandbits(_TOKEN_BITS):032x}"
    by, now = Place.person(), SystemClock().now()
    pin = put_pin(store, data, by=by, reason=reason, now=now, token=token)
    shown = {"sha256": pin.sha256, "size": pin.size, "by": by, "reason": reason}
    context.output.result("network.pin", shown, f"network agents are to run {pin.sha256[:12]}")
    return ExitCode.OK


def unpin_agent(*, coordination: str | None = None, context: Context) -> int:
    """Let the network agents of a coordination place run the installed version again.

    For example: `polynya cluster unpin-agent`.

    Args:
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.update_process import take_pin_back

    was = take_pin_back(store_of(context, coordination)[0])
    text = "network agents are to run what is installed" if was else "nothing was pinned"
    context.output.result("network.pin", {"sha256": None, "was": was}, text)
    return ExitCode.OK


def stop(
    *,
    reason: str = "",
    wait: bool = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Stop all nodes of a cluster until `start`, after they have released their work.

    No landed object, schedule or strategy starts a node meanwhile. The network agent of the stage
    executes the command.

    For example: `polynya cluster stop --reason "weekend" --wait`.

    Args:
        reason: reason to show to other operators.
        wait: wait until it is done; exit code 1 when it fails.
        where: the cluster.
        context: given by `main`.
    """
    return _given(context, place_of(context, where), "stop", reason, wait=wait)


def start(
    *,
    reason: str = "",
    wait: bool = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Start a stopped cluster with as many nodes as before, at least one.

    For example: `polynya cluster start`.

    Args:
        reason: reason to show to other operators.
        wait: wait until it is done; exit code 1 when it fails.
        where: the cluster.
        context: given by `main`.
    """
    return _given(context, place_of(context, where), "start", reason, wait=wait)


def roll(
    *,
    reason: str = "",
    wait: bool = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Replace all nodes of a cluster, a few at a time; their work moves to other nodes.

    For example: `polynya cluster roll --reason "new kernel"`.

    Args:
        reason: reason to show to other operators.
        wait: wait until it is done; exit code 1 when it fails.
        where: the cluster.
        context: given by `main`.
    """
    return _given(context, place_of(context, where), "roll", reason, wait=wait)


def scale(
    nodes: int,
    /,
    *,
    reason: str = "",
    wait: bool = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Set the number of nodes now, within the bounds of the stage file.

    The strategy continues from there, and may change the number again.

    For example: `polynya cluster scale 4`.

    Args:
        nodes: how many.
        reason: reason to show to other operators.
        wait: wait until it is done; exit code 1 when it fails.
        where: the cluster.
        context: given by `main`.
    """
    if not 0 <= nodes <= 10_000:
        raise usage_error(f"a cluster has no {nodes} nodes", "0 to 10000")
    place = place_of(context, where)
    return _given(context, place, "scale", reason, nodes, wait=wait)


def _given(
    context: CommandContext,
    place: Place,
    kind: Kind,
    reason: str,
    nodes: int | None = None,
    *,
    wait: bool,
) -> int:
    """Put the command into the queue of the network agent, and wait for its end if asked to."""
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.documents import ClusterCommand
    from polynya.cluster.network.relay import give
    from polynya.cluster.network.sign_of_life import unheard

    command = ClusterCommand(
        kind=kind, nodes=nodes, by=place.person(), reason=reason, since=SystemClock().now()
    )
    register = place.register()
    name = give(register, command)
    if (missed := unheard(register, command.since)) is not None:
        context.output.warning(f"{missed}: the command waits for it, an hour at most")
    if wait:
        command = waited_for(context.output, place, name)
    shown(context.output, place, name, command)
    return ExitCode.OK
