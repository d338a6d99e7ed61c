"""`polynya cluster list`: the clusters of a coordination place."""

from __future__ import annotations

from dataclasses import replace

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.place import Place, store_of
from polynya.cli.sharing.seen import seen


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
