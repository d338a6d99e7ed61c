"""`polynya cluster status`: one cluster in a few lines."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.place import ANYWHERE, Where, place_of
from polynya.cli.sharing.seen import seen

if TYPE_CHECKING:
    from polynya.cluster.control.status import ClusterStatus


def status(*, where: Where = ANYWHERE, context: Context) -> int:
    """Show the status of a cluster, why, and since when. Exit code 1 when it needs attention.

    If it is unclear whether a node is alive, the command watches its lease for up to 12 seconds.

    For example: `polynya cluster status --coordination s3://acme-config/coordination`.

    Args:
        where: the cluster.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.status import ClusterIs

    place = place_of(context, where)
    found = seen(place)
    nodes = Counter[str](one.state for one in found.nodes)
    units = Counter[str](one.state for one in found.units)
    data = {
        "cluster": place.cluster,
        "status": found.status,
        "reason": found.reason,
        "since": found.since,
        "leader": found.leader,
        "frozen": found.frozen,
        "asked": list(found.asked),
        "nodes": dict(nodes),
        "units": dict(units),
        "troubles": list(found.troubles),
    }
    context.output.result("cluster.status", data, _block(place.cluster, found, nodes, units))
    fine = found.status is ClusterIs.RUNNING and not found.troubles
    return ExitCode.OK if fine else ExitCode.FAILED


def _block(name: str, found: ClusterStatus, nodes: Counter[str], units: Counter[str]) -> str:
    since = f" since {found.since:%Y-%m-%d %H:%M:%S} UTC" if found.since is not None else ""
    lines = [
        f"{name}: {found.status}{since}",
        f"  because        {found.reason}",
        f"  nodes          {_counted(nodes)}",
        f"  units          {_counted(units)}",
        f"  leader         {found.leader or 'nobody; work goes on, nothing is balanced'}",
    ]
    if found.frozen is not None:
        lines.append(f"  frozen         {found.frozen}")
    lines += [f"  asked          {text}" for text in found.asked]
    lines += [f"  trouble        {text}" for text in found.troubles]
    return "\n".join(lines)


def _counted(states: Counter[str]) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none"
