"""`polynya cluster drain` and `undrain`: let a node have nothing, and have units again."""

from __future__ import annotations

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.place import ANYWHERE, Where, place_of
from polynya.cli.sharing.waiting import warn_of_waiting


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
