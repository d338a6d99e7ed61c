"""A cluster as its objects show it now, with a second look at nodes that seem silent."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from polynya.cli.sharing.place import Place
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
