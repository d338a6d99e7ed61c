"""`polynya cluster stop`, `start`, `roll`, `scale`: what is asked of a cluster's machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.cli.sharing.groups.given import shown, waited_for
from polynya.cli.sharing.place import ANYWHERE, Place, Where, place_of
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.network.documents import Kind


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
    from polynya.cluster.network.documents import Command
    from polynya.cluster.network.queue import give
    from polynya.cluster.network.sign_of_life import unheard

    command = Command(
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
