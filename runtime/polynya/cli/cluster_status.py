"""`polynya cluster status`, `list`, `nodes` and `tasks`: what a cluster is doing."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from polynya.cli.cluster_moves import ANYWHERE, Place, Where, place_of, store_of
from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.control.status import ClusterStatus


#: A lease is renewed every 10 s; one that stays as it is for longer than this is not.
LOOK_SECONDS: Final = 12.0
#: One that was renewed within this time, by the clock of its node, is not watched.
_FRESH_SECONDS: Final = 12.0
_STEP_SECONDS: Final = 1.0


def seen(place: Place) -> ClusterStatus:
    """The status of a cluster.

    A lease that was renewed a moment ago by the clock of its node is believed. Clocks differ, so
    any other one that says that its node lives is watched until it is renewed, for 12 s at most.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import lease_versions, read_cluster
    from polynya.cluster.control.status import cluster_status
    from polynya.cluster.network.sign_of_life import silence

    reading, clock = read_cluster(place.store, place.cluster), SystemClock()
    unsure = {
        name
        for name, lease in reading.leases.items()
        if lease.state != "gone" and not _is_fresh(lease.renewed_at, clock.now())
    }
    began = clock.monotonic()
    while unsure and clock.monotonic() - began < LOOK_SECONDS:
        now = lease_versions(place.store, place.cluster)
        unsure = {name for name in unsure if now.get(name) == reading.versions.get(name)}
        if unsure:
            clock.sleep(_STEP_SECONDS)
    network = reading.network
    unheard = silence(network, clock.now()) if network is not None else None
    return cluster_status(reading, unsure, unheard=unheard)


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


def status(*, where: Where = ANYWHERE, context: Context) -> int:
    """Show the status of a cluster, why, and since when. Exit code 1 when it needs attention.

    If it is unclear whether a node is alive, the command watches its lease for up to 12 seconds.

    For example: `polynya cluster status --coordination s3://acme-config/coordination`.

    Args:
        where: the cluster.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.status import ClusterState

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
    fine = found.status is ClusterState.RUNNING and not found.troubles
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


def list_(*, coordination: str | None = None, context: Context) -> int:
    """List the clusters of a coordination place: the status of each, why, and since when.

    If it is unclear whether a node is alive, the command watches its lease for up to 12 seconds.

    For example: `polynya cluster list --coordination s3://acme-config/coordination`.

    Args:
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.control.reading import clusters_at

    store, name = store_of(context, coordination)
    at, clusters = Place(name, "", store), clusters_at(store)
    if not clusters:
        context.output.note(f"no cluster ever had a node at {name}")
    for cluster in clusters:
        one = seen(replace(at, cluster=cluster))
        data = {
            "cluster": cluster,
            "status": one.status,
            "reason": one.reason,
            "since": one.since,
        }
        since = f" since {one.since:%Y-%m-%d %H:%M:%S} UTC" if one.since is not None else ""
        text = f"{cluster}: {one.status}{since}: {one.reason}"
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
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    found = [one for one in seen(place).units if task in (None, one.task)]
    if not found:
        of = f" of {task}" if task is not None else ""
        context.output.note(f"{place.cluster} has no unit{of} on a node or in a plan")
    for one in found:
        node = f" on {one.node}" if one.node is not None else ""
        why = f": {one.reason}" if one.reason else ""
        since = f" since {one.since:%Y-%m-%d %H:%M:%S} UTC" if one.since is not None else ""
        text = f"{one.task}/{one.name}: {one.state}{node}{since}, epoch {one.epoch}{why}"
        text += f"\n  {one.work}: {one.why}" if one.work is not None else ""
        text += "".join(
            f"\n  {said}" for said in (one.place, one.asked, one.outcome) if said is not None
        )
        context.output.result("cluster.unit", asdict(one), text)
    return ExitCode.OK
