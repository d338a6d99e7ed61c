"""`polynya cluster status`, `list`, `nodes` and `tasks`: what a cluster is doing."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Final

from polynya.cli.cluster_location import (
    ANYWHERE,
    ClusterLocation,
    Where,
    coordination_store,
    locate,
)
from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.control.status import ClusterStatus


#: Nodes renew their leases every 10 s: a lease that does not change for longer is not renewed.
WATCH_SECONDS: Final = 12.0
#: A lease that was renewed within this time, by the clock of its node, is not watched.
_FRESH_SECONDS: Final = 12.0
_POLL_SECONDS: Final = 1.0


def seen(location: ClusterLocation) -> ClusterStatus:
    """The status of a cluster.

    A lease that was renewed a moment ago, by the clock of its node, is trusted. Clocks differ, so
    every other lease of a node that is not gone is watched until it is renewed, for 12 s at most.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import lease_versions, read_cluster
    from polynya.cluster.control.status import cluster_status
    from polynya.cluster.network.sign_of_life import why_disconnected

    reading, clock = read_cluster(location.store, location.cluster), SystemClock()
    unsure = {
        name
        for name, lease in reading.leases.items()
        if lease.state != "gone" and not _is_fresh(lease.renewed_at, clock.now())
    }
    began = clock.monotonic()
    while unsure and clock.monotonic() - began < WATCH_SECONDS:
        now = lease_versions(location.store, location.cluster)
        unsure = {name for name in unsure if now.get(name) == reading.versions.get(name)}
        if unsure:
            clock.sleep(_POLL_SECONDS)
    network = reading.network
    agent_trouble = why_disconnected(network, clock.now()) if network is not None else None
    return cluster_status(reading, unsure, agent_trouble=agent_trouble)


def _is_fresh(renewed_at: datetime | None, now: datetime) -> bool:
    return renewed_at is not None and abs((now - renewed_at).total_seconds()) < _FRESH_SECONDS


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
        gone: also show processes that have left.
    """
    location = locate(context, where)
    shown = [node for node in seen(location).nodes if gone or node.state != "gone"]
    if not shown:
        context.output.note(f"{location.cluster} has no node; `--gone` shows those that have left")
    for node in shown:
        leads = ", leads" if node.leads else ""
        kind = "On-Demand" if node.on_demand else "Spot"
        why = f": {node.reason}" if node.reason else ""
        since = f"since {node.since:%Y-%m-%d %H:%M:%S} UTC"
        version = f", polynya {node.version}" if node.version else ""
        units = f"{node.units} units{leads}"
        text = f"{node.node}: {node.state}{why}, {units}, {kind}, {since}{version}"
        context.output.result("cluster.node", asdict(node), text)
    return ExitCode.OK


def status(*, where: Where = ANYWHERE, context: Context) -> int:
    """Show the status of a cluster, why, and since when. Exit code 1 when it needs attention.

    If it is unclear whether a node is alive, the command watches its lease for up to 12 seconds.

    For example: `polynya cluster status --coordination s3://acme-config/coordination`.

    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.status import ClusterState

    location = locate(context, where)
    cluster = seen(location)
    nodes = Counter[str](node.state for node in cluster.nodes)
    units = Counter[str](unit.state for unit in cluster.units)
    data = {
        "cluster": location.cluster,
        "status": cluster.status,
        "reason": cluster.reason,
        "since": cluster.since,
        "leader": cluster.leader,
        "frozen": cluster.frozen,
        "asked": list(cluster.asked),
        "nodes": dict(nodes),
        "units": dict(units),
        "troubles": list(cluster.troubles),
    }
    context.output.result("cluster.status", data, _block(location.cluster, cluster, nodes, units))
    fine = cluster.status is ClusterState.RUNNING and not cluster.troubles
    return ExitCode.OK if fine else ExitCode.FAILED


def _block(name: str, cluster: ClusterStatus, nodes: Counter[str], units: Counter[str]) -> str:
    lines = [
        f"{name}: {cluster.status}{_since(cluster.since)}",
        f"  because        {cluster.reason}",
        f"  nodes          {_counted(nodes)}",
        f"  units          {_counted(units)}",
        f"  leader         {cluster.leader or 'nobody; work continues, but is not balanced'}",
    ]
    if cluster.frozen is not None:
        lines.append(f"  frozen         {cluster.frozen}")
    lines += [f"  asked          {text}" for text in cluster.asked]
    lines += [f"  trouble        {text}" for text in cluster.troubles]
    return "\n".join(lines)


def _since(moment: datetime | None) -> str:
    return f" since {moment:%Y-%m-%d %H:%M:%S} UTC" if moment is not None else ""


def _counted(states: Counter[str]) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none"


def list_(*, coordination: str | None = None, context: Context) -> int:
    """List the clusters of a coordination place: the status of each, why, and since when.

    If it is unclear whether a node is alive, the command watches its lease for up to 12 seconds.

    For example: `polynya cluster list --coordination s3://acme-config/coordination`.

    Args:
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import clusters_at

    store, coordination_place = coordination_store(context, coordination)
    names = clusters_at(store)
    if not names:
        context.output.note(f"no cluster ever had a node at {coordination_place}")
    for name in names:
        cluster = seen(ClusterLocation(coordination_place, name, store))
        data = {
            "cluster": name,
            "status": cluster.status,
            "reason": cluster.reason,
            "since": cluster.since,
        }
        text = f"{name}: {cluster.status}{_since(cluster.since)}: {cluster.reason}"
        context.output.result("cluster", data, text)
    return ExitCode.OK


def tasks(
    task: str | None = None,
    *,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """List the units of work of a cluster: the node of each, since when and why.

    If it is unclear whether a node is alive, the command watches its lease for up to 12 seconds.

    For example: `polynya cluster tasks orders`.

    Args:
        task: only units of this task.
    """
    location = locate(context, where)
    units = [unit for unit in seen(location).units if task in (None, unit.task)]
    if not units:
        of = f" of {task}" if task is not None else ""
        context.output.note(f"{location.cluster} has no unit{of} on a node or in a plan")
    for unit in units:
        node = f" on {unit.node}" if unit.node is not None else ""
        why = f": {unit.reason}" if unit.reason else ""
        state = f"{unit.state}{node}{_since(unit.since)}, epoch {unit.epoch}{why}"
        lines = [f"{unit.task}/{unit.name}: {state}"]
        if unit.work is not None:
            lines.append(f"{unit.work}: {unit.why}")
        lines += [text for text in (unit.place, unit.asked, unit.outcome) if text is not None]
        context.output.result("cluster.unit", asdict(unit), "\n  ".join(lines))
    return ExitCode.OK
