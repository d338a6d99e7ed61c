"""`polynya doctor` of a coordination place: whether the nodes of a cluster can agree there."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from polynya.cli.operate.checks import Check
from polynya.model.config.aws import AwsAccess


def coordination_check(place: str, cluster: str, access: AwsAccess) -> Check:
    """List, read, write under conditions and delete, as nodes do; the store has to compare."""
    # Start-up time: pyarrow.
    from polynya.cluster.control.place import coordination_store
    from polynya.cluster.coordination.paths import NODES, element
    from polynya.cluster.coordination.probe import probe, probe_path

    store, token = coordination_store(place, access), uuid4().hex
    leases = sum(1 for _ in store.list(f"{element(cluster)}/{NODES}"))
    probe(store, cluster, token)
    # A node that may not delete leaves its probes there; here that is what was asked.
    path = probe_path(cluster, token)
    with suppress(FileNotFoundError):
        store.delete_if_unchanged(path, store.read(path, 64).version)
    detail = f"{place}: written under conditions, compared, deleted; leases of {cluster}: {leases}"
    return Check("coordination", "ok", detail)
