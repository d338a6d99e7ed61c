"""`polynya cluster nodes`: the nodes of a cluster."""

from __future__ import annotations

from dataclasses import asdict

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.place import ANYWHERE, Where, place_of
from polynya.cli.sharing.seen import seen


def nodes(
    *,
    where: Where = ANYWHERE,
    gone: bool = False,
    context: Context,
) -> int:
    """List the nodes of a cluster with their state, units and the reason for problems.

    If it is unclear whether a node is alive, the command watches its lease for up to 12 seconds.

    For example: `polynya cluster nodes --json`.

    Args:
        where: the cluster.
        gone: also show processes that have left.
        context: given by `main`.
    """
    place = place_of(context, where)
    found = [one for one in seen(place).nodes if gone or one.state != "gone"]
    if not found:
        context.output.note(f"{place.cluster} has no node; `--gone` shows those that have left")
    for one in found:
        leads = ", leads" if one.leads else ""
        kind = "On-Demand" if one.on_demand else "Spot"
        why = f": {one.reason}" if one.reason else ""
        since = f"since {one.since:%Y-%m-%d %H:%M:%S} UTC"
        version = f", polynya {one.version}" if one.version else ""
        text = f"{one.node}: {one.state}{why}, {one.units} units{leads}, {kind}, {since}{version}"
        context.output.result("cluster.node", asdict(one), text)
    return ExitCode.OK
