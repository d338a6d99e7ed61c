"""`polynya cluster commands`: what was asked of the machines of a cluster."""

from __future__ import annotations

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.groups.given import shown
from polynya.cli.sharing.place import ANYWHERE, Where, place_of


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
    from polynya.cluster.network.queue import Queue

    place = place_of(context, where)
    queue = Queue(place.register())
    queue.refresh()
    for name, command in queue.all():
        shown(context.output, place, name, command)
    for trouble in queue.troubles:
        context.output.warning(trouble)
    return ExitCode.OK
