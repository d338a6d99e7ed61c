"""The status of a node as JSON, and its metrics once a minute.

Names, unit and dimensions of the metrics are an interface: alarms and scaling policies refer to
them. CloudWatch sums the figures of all nodes. So each node publishes its own figures only, once
per minute of the clock: a node that published every 65 seconds would be missing from the sum in one
minute of thirteen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from polynya.cluster.configuration import UNNAMED_CLUSTER, ActiveConfiguration
from polynya.cluster.jobs import AgentJob
from polynya.engine.backlog import (
    REMOTE_WORK_SECONDS,
    BacklogSize,
    CaptureFigures,
    MirrorFigures,
    StreamTotals,
)
from polynya.engine.scheduler import THREADS
from polynya.model.errors import PolynyaError
from polynya.observe.maintenance import HealthSummary, combine, summarise
from polynya.observe.metrics import Metric, MetricGroup, MetricsSink, Minute

FORMAT_VERSION: Final = "1.0"

#: The state of a task is the first of these that one of its jobs is in.
_TASK_STATES_WORST_FIRST: Final = (
    "suspended",
    "waiting",
    "stopping",
    "running",
    "stopped",
    "elsewhere",
)
#: States of a job that need no action.
_HEALTHY_JOB_STATES: Final = ("running", "stopping", "stopped", "elsewhere")


@dataclass(frozen=True, slots=True)
class Node:
    """The node that reports. `cluster` names the dimension of its metrics, None: the project's."""

    id: str
    cluster: str | None
    started_at: datetime


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What a report is made of.

    `state` is `starting`, `running`, `draining` or `stopped`. `unread` is why the configuration
    could not be read when that was tried last, `unused` what lies there and is not a file of the
    project. `backlogs` are by job. `sharing` describes this node as a member of its cluster, None
    without one.
    `busy_seconds` is how long the threads of the engine have worked, all together.
    """

    node: Node
    at: datetime
    state: str
    in_force: ActiveConfiguration | None
    unread: PolynyaError | None
    unused: Sequence[PolynyaError]
    jobs: Sequence[AgentJob]
    backlogs: Sequence[BacklogSize]
    streams: Sequence[Mapping[str, StreamTotals]]
    captures: Sequence[Mapping[str, CaptureFigures]]
    mirrors: Sequence[Mapping[str, MirrorFigures]]
    sharing: Mapping[str, Any] | None = None
    busy_seconds: float = 0.0


def node_report(facts: AgentFacts) -> dict[str, Any]:
    """All that is known of a node; times in UTC, durations in seconds, sizes in bytes."""
    return {
        "format_version": FORMAT_VERSION,
        "node": facts.node.id,
        "cluster": facts.node.cluster or _project(facts),
        "started_at": facts.node.started_at,
        "at": facts.at,
        "state": facts.state,
        "configuration": _configuration(facts),
        "backlog": _rounded(total(facts.backlogs)),
        "engine": {"threads": THREADS, "busy_seconds": round(facts.busy_seconds, 3)},
        "sharing": facts.sharing,
        "tasks": _tasks(facts),
    }


def summary(report: Mapping[str, Any]) -> str:
    """A report in one line, such as `2 running, 1 suspended`."""
    states = [task["state"] for task in report["tasks"].values()]
    counted = [
        f"{states.count(state)} {state}" for state in _TASK_STATES_WORST_FIRST if state in states
    ]
    broken = len(report["configuration"]["errors"])
    if broken:
        counted.append(f"{broken} broken file{'s' if broken > 1 else ''}")
    return ", ".join(counted) or "no tasks"


def is_healthy(report: Mapping[str, Any]) -> bool:
    """Whether nothing in a report needs anybody."""
    configuration = report["configuration"]
    fine = all(
        task["state"] in _HEALTHY_JOB_STATES and not task["held"]
        for task in report["tasks"].values()
    )
    nobodys = UNNAMED_CLUSTER in configuration["elsewhere"].values()
    return fine and not nobodys and not configuration["errors"] and configuration["unread"] is None


def total(backlogs: Iterable[BacklogSize]) -> BacklogSize:
    """The backlog of several jobs; `THREADS` of them work at the same time.

    For work that a service does, only files and bytes are added: it takes none of this node's time,
    and another node would not change its age.
    """
    waiting = list(backlogs)
    with_files = [backlog for backlog in waiting if backlog.files]
    here = [backlog for backlog in with_files if not backlog.elsewhere]
    return BacklogSize(
        files=sum(backlog.files for backlog in with_files),
        size_bytes=sum(backlog.size_bytes for backlog in with_files),
        seconds=sum(backlog.seconds for backlog in here) / min(THREADS, len(here) or 1),
        oldest_seconds=max((backlog.oldest_seconds for backlog in here), default=0.0),
        keeps_node=any(backlog.keeps_node for backlog in waiting),
    )


def _project(facts: AgentFacts) -> str | None:
    return facts.in_force.project.cluster_name if facts.in_force is not None else None


def _configuration(facts: AgentFacts) -> dict[str, Any]:
    in_force = facts.in_force
    snapshot = in_force.snapshot if in_force is not None else None
    return {
        "identity": snapshot.identity if snapshot is not None else None,
        "revision": snapshot.revision if snapshot is not None else None,
        "edited": list(snapshot.edited) if snapshot is not None else [],
        "kept": list(in_force.kept) if in_force is not None else [],
        "elsewhere": dict(sorted(in_force.elsewhere.items())) if in_force is not None else {},
        "errors": [error.as_dict() for error in in_force.errors.values()] if in_force else [],
        "unused": [error.as_dict() for error in facts.unused],
        "unread": facts.unread.as_dict() if facts.unread is not None else None,
    }


def _tasks(facts: AgentFacts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    files = {name: one.file for name, one in facts.in_force.tasks.items()} if facts.in_force else {}
    known = zip(
        facts.jobs, facts.backlogs, facts.streams, facts.captures, facts.mirrors, strict=True
    )
    for job, waiting, streams, captures, mirrors in known:
        task = found.setdefault(
            job.key.task, {"file": files.get(job.key.task), "state": "", "held": False, "jobs": {}}
        )
        task["held"] = task["held"] or job.held is not None
        shape = summarise(job.looks.values())
        task["jobs"][job.key.name] = {
            "state": job.state,
            "reason": job.reason,
            "held": job.held is not None,
            "version": job.running or job.wanted,
            "rounds": job.rounds,
            "records": job.records,
            "quarantined": job.quarantined,
            "failures": job.failed,
            "failed_in_a_row": len(job.failures),
            "busy_seconds": round(job.busy_seconds, 3),
            "epoch": job.epoch if job.running is not None else None,
            "fenced_total": job.fences,
            "maintenance_bytes": job.maintained,
            "health_percent": shape.health_percent if shape is not None else None,
            "shape": asdict(shape) if shape is not None else None,
            "last_step": asdict(job.step) if job.step is not None else None,
            "lag_seconds": round(waiting.oldest_seconds, 3),
            "backlog": _rounded(waiting),
            "streams": {
                name: {
                    "records": taken.records,
                    "bytes": taken.size_bytes,
                    "behind_seconds": round(taken.behind_seconds, 3),
                }
                for name, taken in streams.items()
            },
            "captures": {name: _capture(figures) for name, figures in captures.items()},
            "mirrors": {
                name: {**asdict(figures), "behind_seconds": round(figures.behind_seconds, 3)}
                for name, figures in mirrors.items()
            },
        }
    for task in found.values():
        states = {job["state"] for job in task["jobs"].values()}
        task["state"] = next(state for state in _TASK_STATES_WORST_FIRST if state in states)
    return found


def _capture(figures: CaptureFigures) -> dict[str, Any]:
    silent = figures.silent_seconds
    return {
        "events": figures.events,
        "bytes": figures.size_bytes,
        "lag_bytes": figures.lag_bytes,
        "lag_seconds": round(figures.lag_seconds, 3),
        "silent_seconds": None if silent is None else round(silent, 3),
        "retries": figures.retries,
        "log_bytes": figures.log_bytes,
        "log_limit_bytes": figures.log_limit_bytes,
        "tables": dict(figures.tables),
    }


def _rounded(waiting: BacklogSize) -> dict[str, Any]:
    return {
        "files": waiting.files,
        "bytes": waiting.size_bytes,
        "seconds": round(waiting.seconds, 3),
        "oldest_seconds": round(waiting.oldest_seconds, 3),
        "elsewhere": waiting.elsewhere,
        "keeps_node": waiting.keeps_node,
    }


#: One value a minute is what alarms and scaling policies evaluate.
_METRICS_SECONDS: Final = 60.0


class MetricsOutlet:
    """Gives the figures of each minute to a sink."""

    def __init__(self, sink: MetricsSink) -> None:
        self._sink = sink
        self._minute: int | None = None
        self._before: dict[tuple[str, str], int] = {}
        self._busy: tuple[datetime, float] | None = None
        self._at: datetime | None = None

    def put(self, report: Mapping[str, Any]) -> str | None:
        """Publish a report if it is the first of its minute; returns what was wrong."""
        at: datetime = report["at"]
        minute = int(at.timestamp() // _METRICS_SECONDS)
        # A node that ends before it has read its configuration belongs to no cluster.
        unknown = report["state"] == "starting" or report["cluster"] is None
        if unknown or minute == self._minute:
            return None
        self._minute = minute
        figures = tuple(self._figures(report, at))
        try:
            self._sink(Minute(at, report["cluster"], report["node"], report["state"], figures))
        except OSError as error:
            return f"metrics: {error.strerror}"
        return None

    def _figures(self, report: Mapping[str, Any], at: datetime) -> Iterator[MetricGroup]:
        of_tasks = []
        totals = [0, 0, 0, 0]
        for name, task in report["tasks"].items():
            jobs = task["jobs"].values()
            records = self._since(name, "records", jobs)
            failures = self._since(name, "failures", jobs)
            fenced = self._since(name, "fenced_total", jobs)
            rejected = self._since(name, "quarantined", jobs)
            of_task = (records, failures, fenced, rejected)
            totals = [total + more for total, more in zip(totals, of_task, strict=True)]
            figures = (
                _seconds("BacklogSeconds", sum(job["backlog"]["seconds"] for job in jobs)),
                _seconds("LagSeconds", max(job["lag_seconds"] for job in jobs)),
                *_counts(*of_task),
                *self._maintenance(name, jobs),
                *self._captures(name, jobs),
                *_of_mirrors(jobs),
            )
            of_tasks += [MetricGroup({"Task": name}, figures), *self._streams(name, jobs, at)]
        busy = self._saturation(report["engine"], at)
        yield MetricGroup({}, (*_of_cluster(report), *_counts(*totals), *busy))
        own = _seconds("BacklogSeconds", _node_seconds(report["backlog"]))
        yield MetricGroup({"Node": report["node"]}, (own, *busy))
        yield from of_tasks
        self._at = at

    def _streams(
        self, task: str, jobs: Iterable[Mapping[str, Any]], at: datetime
    ) -> Iterator[MetricGroup]:
        """What came of each stream since the last figures, and how far it is behind."""
        seconds = 0.0 if self._at is None else (at - self._at).total_seconds()
        streams = {name: taken for job in jobs for name, taken in job["streams"].items()}
        for name, taken in sorted(streams.items()):
            records = self._since(f"{task}/{name}", "records", [taken])
            size = self._since(f"{task}/{name}", "bytes", [taken])
            figures = [
                Metric("StreamRecords", "Count", records, grown=True),
                Metric("StreamBytes", "Bytes", size, grown=True),
                _seconds("StreamBehindSeconds", taken["behind_seconds"]),
            ]
            if seconds > 0:
                figures += [
                    Metric("StreamRecordsPerSecond", "Count/Second", round(records / seconds, 3)),
                    Metric("StreamBytesPerSecond", "Bytes/Second", round(size / seconds, 1)),
                ]
            yield MetricGroup({"Task": task, "Stream": name}, tuple(figures))

    def _captures(self, task: str, jobs: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
        """How the capture of a database is; nothing for other tasks."""
        for capture in (capture for job in jobs for capture in job["captures"].values()):
            events = self._since(task, "events", [capture])
            size = self._since(task, "bytes", [capture])
            yield Metric("CaptureEvents", "Count", events, grown=True)
            yield Metric("CaptureBytes", "Bytes", size, grown=True)
            yield Metric("CaptureLagBytes", "Bytes", capture["lag_bytes"])
            yield _seconds("CaptureLagSeconds", capture["lag_seconds"])
            yield Metric("CaptureRetries", "Count", capture["retries"])
            if capture["silent_seconds"] is not None:
                yield _seconds("CaptureSilentSeconds", capture["silent_seconds"])
            if capture["log_bytes"] is not None:
                yield Metric("CaptureLogBytes", "Bytes", capture["log_bytes"])
            if (percent := _log_percent(capture)) is not None:
                yield Metric("CaptureLogPercent", "Percent", percent)
            tables = capture["tables"]
            yield Metric("CaptureTables", "Count", sum(tables.values()))
            yield Metric("CaptureTablesFailed", "Count", tables.get("error", 0))

    def _saturation(self, engine: Mapping[str, Any], at: datetime) -> list[Metric]:
        """The part of the threads' time that was work since the last figure, if there was one."""
        before, self._busy = self._busy, (at, engine["busy_seconds"])
        if before is None or at <= before[0]:
            return []
        possible = (at - before[0]).total_seconds() * engine["threads"]
        share = (engine["busy_seconds"] - before[1]) / possible
        return [Metric("Saturation", "Percent", round(100 * min(max(share, 0.0), 1.0), 1))]

    def _maintenance(self, task: str, jobs: Iterable[Mapping[str, Any]]) -> list[Metric]:
        """The shape of its tables, and what it took to keep them; nothing before a look."""
        written = self._since(task, "maintenance_bytes", jobs)
        shape = combine(HealthSummary(**job["shape"]) for job in jobs if job["shape"] is not None)
        if shape is None:
            return []
        return [
            Metric("TableHealth", "Percent", shape.health_percent),
            Metric("MaintenanceBytes", "Bytes", written, grown=True),
            Metric("TableFiles", "Count", shape.files),
            Metric("TableFileBytes", "Bytes", shape.average_bytes),
            Metric("TableDeleted", "Percent", round(100 * shape.deleted_share, 2)),
            Metric("TableRowsNotOptimised", "Count", shape.rows_not_optimised),
            Metric("TableMetadataBytes", "Bytes", shape.metadata_bytes),
            Metric("TableSnapshots", "Count", shape.snapshots),
            Metric("TableRemovedOrphanBytes", "Bytes", shape.removed_orphan_bytes),
        ]

    def _since(self, task: str, what: str, jobs: Iterable[Mapping[str, Any]]) -> int:
        """How much a total of a task grew since the last time."""
        now = sum(int(job[what]) for job in jobs)
        before, self._before[task, what] = self._before.get((task, what), 0), now
        # Less when a dataset left the task.
        return max(now - before, 0)


def _of_cluster(report: Mapping[str, Any]) -> list[Metric]:
    """This node's part in the figures of its cluster; the leader adds what no node has."""
    backlog = report["backlog"]
    unowned = (report["sharing"] or {}).get("unowned") or {}
    tasks = list(report["tasks"].values())
    suspended = sum(task["state"] == "suspended" for task in tasks)
    all_jobs = [job for task in tasks for job in task["jobs"].values()]
    figures = [
        _seconds("BacklogSeconds", _node_seconds(backlog) + unowned.get("seconds", 0.0)),
        _seconds(
            "OldestUnmergedAge",
            max(backlog["oldest_seconds"], unowned.get("oldest_seconds", 0.0)),
        ),
        Metric("BacklogBytes", "Bytes", backlog["bytes"]),
        Metric("SuspendedTasks", "Count", suspended),
        Metric("SuspendedDatasets", "Count", sum(map(_suspended_datasets, all_jobs))),
        *_worst_of_sources(all_jobs),
        *_of_mirrors(all_jobs),
    ]
    # What is known of the speed when no node is there to measure it. What waits for a suspended job
    # is no work in these seconds, nor is what a service does.
    jobs = [job["backlog"] for job in all_jobs]
    work = sum(job["bytes"] for job in jobs if job["seconds"] > 0 and not job["elsewhere"])
    if work > 0 and backlog["seconds"] > 0:
        speed = round(work / backlog["seconds"], 1)
        figures.append(Metric("BytesPerSecond", "Bytes/Second", speed))
    if unowned:
        figures.append(Metric("UnownedUnits", "Count", unowned["units"]))
    return figures


def _suspended_datasets(job: Mapping[str, Any]) -> int:
    """Datasets of a job that wait for a decision, and tables that its capture has given up."""
    failed = sum(capture["tables"].get("error", 0) for capture in job["captures"].values())
    return int(failed + (job["held"] or job["state"] == "suspended"))


def _worst_of_sources(jobs: Sequence[Mapping[str, Any]]) -> Iterator[Metric]:
    """The worst of all captures and streams of this node: alarms of a cluster name no task."""
    captures = [capture for job in jobs for capture in job["captures"].values()]
    streams = [stream for job in jobs for stream in job["streams"].values()]
    if captures:
        yield _seconds("CaptureLagSeconds", max(each["lag_seconds"] for each in captures))
        yield Metric("CaptureRetries", "Count", max(each["retries"] for each in captures))
    percents = [percent for each in captures if (percent := _log_percent(each)) is not None]
    if percents:
        yield Metric("CaptureLogPercent", "Percent", max(percents))
    if streams:
        yield _seconds("StreamBehindSeconds", max(each["behind_seconds"] for each in streams))


def _of_mirrors(jobs: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
    """How far the targets of mirrors are; nothing where no table is mirrored."""
    tables = [table for job in jobs for table in job["mirrors"].values()]
    if tables:
        worst = max(table["behind_seconds"] for table in tables)
        yield _seconds("MirrorBehindSeconds", worst)
        yield Metric("MirrorTables", "Count", len(tables))
        yield Metric("MirrorTablesStale", "Count", sum(table["stale"] for table in tables))


def _log_percent(capture: Mapping[str, Any]) -> float | None:
    """How much of the log that a server keeps at most for a capture it keeps."""
    if capture["log_bytes"] is None or not capture["log_limit_bytes"]:
        return None
    return round(100 * float(capture["log_bytes"]) / float(capture["log_limit_bytes"]), 1)


def _node_seconds(backlog: Mapping[str, Any]) -> float:
    """The work of this node; while a service works for it, enough that a group keeps a node."""
    seconds = float(backlog["seconds"])
    return max(seconds, REMOTE_WORK_SECONDS) if backlog["keeps_node"] else seconds


def _seconds(name: str, value: float) -> Metric:
    return Metric(name, "Seconds", round(value, 3))


def _counts(records: int, failures: int, fenced: int, quarantined: int) -> list[Metric]:
    counts = {
        "Records": records,
        "Failures": failures,
        "Fenced": fenced,
        "Quarantined": quarantined,
    }
    return [Metric(name, "Count", count, grown=True) for name, count in counts.items()]
