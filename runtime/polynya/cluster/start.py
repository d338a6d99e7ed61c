"""Builds an agent: configuration source, work folder, engine, outlets of its reports."""

from __future__ import annotations

import fcntl
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO
from uuid import uuid4

from polynya.cluster.agent import Agent, AgentPace, AgentPorts, Encode, HeartbeatOutlet, StateFile
from polynya.cluster.automations import AutomationPlace, ClusterAutomations
from polynya.cluster.configuration import ACTIVE_FOLDER, Acceptance, ClusterTasks
from polynya.cluster.gossip.messages import Sender
from polynya.cluster.gossip.stream import Gossip, StreamGossip
from polynya.cluster.member_thread import MembershipSettings, join, watch_spot
from polynya.cluster.membership import ClusterMembership
from polynya.cluster.messages import ConfigurationRead, Inbox, JarsFetched, Noticed, Workers
from polynya.cluster.report import MetricsOutlet, Node, summary
from polynya.cluster.spot import Imds, is_on_demand, machine_type, machine_zone
from polynya.cluster.submit.configured import source_of
from polynya.cluster.submit.workers import AgentPlace, RoutedWorkers
from polynya.cluster.systemd import Notify, notifier, watchdog_seconds
from polynya.cluster.work import EngineWorkers
from polynya.engine.collaborators import start_engine
from polynya.engine.errors import as_polynya
from polynya.engine.latency import LatencyRecorder
from polynya.engine.session import fetch_jars
from polynya.model.error_catalogue.operation import WORK_FOLDER_IN_USE
from polynya.model.loader import LoadedProject
from polynya.notify.notifier import Notifier
from polynya.observe.cluster import JarsMissing
from polynya.observe.events import Event, EventSink
from polynya.observe.metrics import MetricsSink
from polynya.store.clock import Clock, SystemClock
from polynya.store.configuration import ConfigurationSource
from polynya.store.object_store import LocalObjectStore
from polynya.store.places import stream_at
from polynya.store.streams import RecordStream

_LOCK_FILE: Final = "lock"
#: Seconds between two tries to fetch jars.
_JARS_RETRY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an agent is started with.

    `config` is a folder or `s3://bucket/prefix`, `work` a folder of its own. `cluster` is the name
    under which metrics are found, None for the project's. `stream` is the workload stream.
    `metrics` takes the figures of each minute. `encode` makes a value one line of JSON.
    `coordination` is where nodes agree on who does what, None where this one does everything.
    `imds` is the service for Spot notices, None without one; `life_cycle` is what it told the
    boot of this machine (`spot` or `on-demand`), None if that is not known. `tasks_of` is the name
    by which tasks name the cluster, None where it is the same; with `only_named` those of a project
    that names no cluster are not taken.
    """

    config: str
    work: Path
    node_id: str
    target: str | None
    cluster: str | None
    stream: str | None
    metrics: MetricsSink | None
    encode: Encode
    pace: AgentPace
    coordination: str | None = None
    imds: Imds | None = None
    life_cycle: str | None = None
    tasks_of: str | None = None
    only_named: bool = False


def make_agent(settings: AgentSettings, tell: EventSink, inbox: Inbox) -> Agent:
    """Put the agent together.

    Raises:
        ConflictError: another agent works in the same folder (POLYNYA-AGT-001).
    """
    work = settings.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    _lock(work)
    source, base = source_of(settings.config, work)
    notify, clock = notifier(), SystemClock()
    reports: list[Callable[[Mapping[str, Any]], str | None]] = [
        StateFile(LocalObjectStore(work), settings.encode).put,
        _status_line(notify),
    ]
    if settings.metrics is not None:
        reports.append(MetricsOutlet(settings.metrics).put)

    automations = _automations(settings, work, base, inbox)
    reports.append(automations.put)
    listeners: list[Notifier | LatencyRecorder] = []

    def observed(event: Event) -> None:
        for listener in listeners:
            listener.take(event)
        tell(event)

    def configured(project: LoadedProject) -> None:
        automations.configure(project)
        for listener in listeners:
            listener.configure(project)
        if not listeners:
            made = Notifier(
                project,
                clock=clock,
                tell=lambda event: inbox.put(Noticed(event)),
                name=settings.node_id,
            )
            reports.append(made.put)
            made.start()
            listeners.extend((made, _measuring(project, clock, inbox)))

    def workers(project: LoadedProject) -> Workers:
        engine = start_engine(project, long_lived=True)
        # A node that shares work uses the stream through its member.
        if settings.stream is not None and settings.coordination is None:
            cluster = settings.cluster or project.cluster_name
            stream = stream_at(settings.stream, project.target.aws, clock)
            gossip = _sending_gossip(stream, cluster, settings.node_id)
            reports.append(HeartbeatOutlet(gossip, clock.monotonic).put)
        here = EngineWorkers(engine, inbox)
        for listener in listeners:
            if isinstance(listener, LatencyRecorder):
                listener.look = here.waiting
        place = AgentPlace(settings.config, work, base, engine.owner)
        return RoutedWorkers(here, project.target, place, inbox, clock)

    ports = AgentPorts(
        read=lambda: _in_background(source, inbox),
        workers=workers,
        tell=observed,
        reports=reports,
        alive=_sign_of_life(notify, clock),
        ready=lambda: notify("READY=1"),
        draining=lambda: _each(automations.stop, lambda: notify("STOPPING=1")),
        draw=random.random,
        fetch_jars=lambda project: fetch_in_background(project, inbox, settings.node_id),
        join=_joining(settings, inbox, tell),
        configured=configured,
        due=automations.due,
    )
    automations.start()
    if settings.imds is not None:
        watch_spot(settings.imds, settings.node_id, inbox)
    node = Node(settings.node_id, settings.cluster, clock.now())
    mine = ClusterTasks(settings.tasks_of or settings.cluster, settings.only_named)
    acceptance = Acceptance(work, settings.target, base, mine)
    return Agent(node, acceptance, ports, clock=clock, inbox=inbox, pace=settings.pace)


def _automations(
    settings: AgentSettings, work: Path, base: Path, inbox: Inbox
) -> ClusterAutomations:
    """The automations of the node; their commands work in the folder that has its files."""
    folder = base if (base / "polynya.yml").exists() else work / ACTIVE_FOLDER
    place = AutomationPlace(settings.node_id, folder, settings.coordination, settings.cluster)
    return ClusterAutomations(
        place, clock=SystemClock(), tell=lambda event: inbox.put(Noticed(event))
    )


def _measuring(project: LoadedProject, clock: Clock, inbox: Inbox) -> LatencyRecorder:
    made = LatencyRecorder(project, clock=clock, tell=lambda event: inbox.put(Noticed(event)))
    made.start()
    return made


def _each(*calls: Callable[[], None]) -> None:
    for call in calls:
        call()


def _sending_gossip(stream: RecordStream, cluster: str, node: str) -> Gossip:
    """Gossip that only sends: this node shares no work with others."""
    me = Sender(cluster, node, f"{node}.{uuid4().hex[:12]}")
    gossip = StreamGossip(me, stream, clock=SystemClock(), draw=random.random, wake=None)
    gossip.start()
    return gossip


def _joining(
    settings: AgentSettings, inbox: Inbox, tell: EventSink
) -> Callable[[LoadedProject], ClusterMembership] | None:
    place = settings.coordination
    if place is None:
        return None

    def joined(project: LoadedProject) -> ClusterMembership:
        membership = MembershipSettings(
            place=place,
            cluster=settings.cluster or project.cluster_name,
            node=settings.node_id,
            stream=settings.stream,
            on_demand=is_on_demand(settings.imds, settings.life_cycle),
            machine=machine_type(settings.imds),
            zone=machine_zone(settings.imds),
        )
        return join(membership, project.target.aws, inbox, tell)

    return joined


def _in_background(source: ConfigurationSource, inbox: Inbox) -> None:
    """Read on a thread: a request to a bucket may take a minute."""

    def read() -> None:
        try:
            inbox.put(ConfigurationRead(source.read()))
        except Exception as error:  # noqa: BLE001 - the edge of the thread
            inbox.put(ConfigurationRead(as_polynya(error)))

    threading.Thread(target=read, name="configuration", daemon=True).start()


def fetch_in_background(
    project: LoadedProject,
    inbox: Inbox,
    node: str,
    *,
    fetch: Callable[[LoadedProject], None] = fetch_jars,
    sleep: Callable[[float], None] = time.sleep,
) -> threading.Thread:
    """Fetch the jars of a project until they are there, which a JarsFetched says.

    A driver that was started without its jars would not start, so nothing ends for them before.
    """

    def work() -> None:
        reported = ""
        while True:
            try:
                fetch(project)
            except Exception as error:  # noqa: BLE001 - the edge of the thread
                problem = as_polynya(error)
                if str(problem) != reported:
                    reported = str(problem)
                    inbox.put(Noticed(JarsMissing(subject=node, error=problem)))
                sleep(_JARS_RETRY_SECONDS)
            else:
                inbox.put(JarsFetched())
                return

    thread = threading.Thread(target=work, name="jars", daemon=True)
    thread.start()
    return thread


def _sign_of_life(notify: Notify, clock: Clock) -> Callable[[], None]:
    """Notify the watchdog of the service manager from the agent's own thread."""
    every = watchdog_seconds()
    notified = float("-inf")

    def alive() -> None:
        nonlocal notified
        if every is not None and clock.monotonic() - notified >= every / 3:
            notified = clock.monotonic()
            notify("WATCHDOG=1")

    return alive


def _status_line(notify: Notify) -> Callable[[Mapping[str, Any]], None]:
    return lambda report: notify(f"STATUS={report['state']}: {summary(report)}")


def _lock(work: Path) -> None:
    """Keep the folder until the process ends."""
    file = (work / _LOCK_FILE).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise WORK_FOLDER_IN_USE(where=str(work)) from None
    _HELD_LOCKS.append(file)


#: Open files of the locks: a lock ends when its file is closed.
_HELD_LOCKS: Final[list[TextIO]] = []
