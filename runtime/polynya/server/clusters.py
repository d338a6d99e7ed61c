"""Clusters as the API shows them: from their coordination place, or from the agent of this machine.

Reading a cluster lists all of its objects, so a reading serves all requests of a few seconds. A
node whose lease is old by its own clock is `unclear` until the server has seen for long enough
that the lease is not renewed: clocks differ, and a request does not wait for that.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from polynya.cluster.control.interruptions import InterruptionCounts, count_interruptions
from polynya.cluster.control.reading import (
    AGENT_STATE_FILE,
    ClusterReading,
    clusters_at,
    read_cluster,
)
from polynya.cluster.control.status import ClusterStatus, cluster_status
from polynya.cluster.coordination.store import STORE_ERRORS
from polynya.cluster.network.prices import NodePrice, price_of
from polynya.cluster.network.sign_of_life import why_disconnected
from polynya.model.loader import LoadedProject
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

log = logging.getLogger(__name__)

#: The environment variable that names the coordination place, as commands and agents read it.
COORDINATION: Final = "POLYNYA_COORDINATION"
_CLUSTER: Final = "POLYNYA_CLUSTER"
#: Where an agent that was started in the project folder keeps its state.
_WORK: Final = Path(".polynya") / "agent"
#: Seconds for which a reading is shown again, and the names of the clusters, which lists them all.
_KEPT_SECONDS: Final = 2.0
_NAMES_SECONDS: Final = 15.0
#: Nodes renew their leases every 10 s.
_RENEWED_SECONDS: Final = 12.0
#: A state of an agent that is older is that of one which does not run.
_AGENT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class ClusterLook:
    """A cluster as it was read: its documents, what they say, and the unclear nodes."""

    at: datetime
    reading: ClusterReading
    status: ClusterStatus
    unclear: frozenset[str]

    def price(self, incarnation: str) -> NodePrice:
        """What a node costs, as the network agent was told."""
        lease, network = self.reading.leases[incarnation], self.reading.network
        report = None if network is None else network.prices
        return price_of(report, lease.machine, lease.zone, on_demand=lease.on_demand, now=self.at)

    @property
    def interruptions(self) -> InterruptionCounts:
        """How often AWS took nodes back."""
        return count_interruptions(self.reading.interruptions, self.at)


@dataclass(slots=True)
class _Lease:
    """The version of a lease, and when the server saw it first."""

    version: str
    since: float


@dataclass(slots=True)
class ClusterWatch:
    """The clusters of a project. `environment` names the coordination place, if there is one."""

    root: Path
    clock: Clock
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _looks: dict[str, tuple[float, ClusterLook]] = field(default_factory=dict)
    _names: tuple[float, list[str]] | None = None
    _leases: dict[tuple[str, str], _Lease] = field(default_factory=dict)
    _failing: dict[str, datetime] = field(default_factory=dict)

    def names(self, project: LoadedProject) -> list[str]:
        """The clusters that the project names, and those that ever had a node, in order."""
        tasks = {project.cluster_of(task) for task in project.works}
        named = {name for name in tasks if name is not None} | {project.cluster_name}
        return sorted(named | set(self._names_at_place(project)))

    def _names_at_place(self, project: LoadedProject) -> list[str]:
        store = self._store(project)
        if store is None:
            return []
        with self._lock:
            now = self.clock.monotonic()
            if self._names is None or now - self._names[0] >= _NAMES_SECONDS:
                known = [] if self._names is None else self._names[1]
                try:
                    known = clusters_at(store)
                except STORE_ERRORS as error:
                    # A cluster says for itself that its place does not answer.
                    log.info("the clusters at the coordination place are unknown: %s", error)
                self._names = now, known
            return self._names[1]

    def look(self, project: LoadedProject, name: str) -> ClusterLook | None:
        """A cluster by its coordination place, at most two seconds old; None without a place.

        Raises what the store raises; `failing_since` says since when it does.
        """
        store = self._store(project)
        if store is None:
            return None
        with self._lock:
            known = self._looks.get(name)
            if known is not None and self.clock.monotonic() - known[0] < _KEPT_SECONDS:
                return known[1]
            try:
                look = self._look(store, name)
            except STORE_ERRORS:
                self._failing.setdefault(name, self.clock.now())
                raise
            self._failing.pop(name, None)
            self._looks[name] = self.clock.monotonic(), look
            return look

    def wake(self, project: LoadedProject, by: str, reason: str) -> None:
        """Want a node in the cluster of this server, if it has none; nothing without a place.

        Raises what `relay.wake` raises.
        """
        store = self._store(project)
        if store is None:
            return
        # Start-up time: few requests need the commands of operators.
        from polynya.cluster.coordination.store import DocumentStore
        from polynya.cluster.network.relay import wake

        name = self.environment.get(_CLUSTER) or project.cluster_name
        wake(DocumentStore(store, name, SystemRandom()), by, reason, self.clock.now())

    def failing_since(self, name: str) -> datetime | None:
        """Since when a cluster cannot be read; None if the last look at it was answered."""
        return self._failing.get(name)

    def agent(self) -> Mapping[str, Any] | None:
        """The report of the agent that works in the project folder; None if it does not run."""
        try:
            report = json.loads((self.root / _WORK / AGENT_STATE_FILE).read_bytes())
            age = (self.clock.now() - datetime.fromisoformat(report["at"])).total_seconds()
            alive = report["state"] != "stopped" and age < _AGENT_SECONDS
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return report if alive and isinstance(report, dict) else None

    def _store(self, project: LoadedProject) -> ObjectStore | None:
        place = self.environment.get(COORDINATION)
        if not place:
            return None
        # Start-up time: it knows the commands of an engine.
        from polynya.cluster.control.requests import coordination_store

        return coordination_store(place, project.target.aws)

    def _look(self, store: ObjectStore, name: str) -> ClusterLook:
        reading, now = read_cluster(store, name), self.clock.now()
        old = {
            incarnation
            for incarnation, lease in reading.leases.items()
            if lease.state != "gone" and not _is_fresh(lease.renewed_at, now)
        }
        unclear = frozenset(one for one in old if not self._is_silent(name, one, reading))
        trouble = None if reading.network is None else why_disconnected(reading.network, now)
        status = cluster_status(reading, old - unclear, agent_trouble=trouble)
        return ClusterLook(now, reading, status, unclear)

    def _is_silent(self, name: str, incarnation: str, reading: ClusterReading) -> bool:
        """Whether a lease has stayed the same for longer than a node takes to renew it."""
        now, version = self.clock.monotonic(), reading.versions.get(incarnation, "")
        seen = self._leases.get((name, incarnation))
        if seen is None or seen.version != version:
            self._leases[name, incarnation] = _Lease(version, now)
            return False
        return now - seen.since > _RENEWED_SECONDS


def _is_fresh(renewed_at: datetime | None, now: datetime) -> bool:
    return renewed_at is not None and abs((now - renewed_at).total_seconds()) < _RENEWED_SECONDS
