"""Reports as metrics, once a minute: those by which a cluster scales, and some of each task.

Names, unit and dimensions are an interface: alarms and scaling policies look for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from polynya.observe.emf import Metric, emf_record

#: One value a minute is what alarms and scaling policies evaluate.
EVERY: Final = timedelta(minutes=1)


class MetricsOutlet:
    """Writes metrics as lines; `write` takes one record in the embedded metric format."""

    def __init__(self, write: Callable[[Mapping[str, object]], None]) -> None:
        self._write = write
        self._at: datetime | None = None
        self._before: dict[tuple[str, str], int] = {}

    def put(self, report: Mapping[str, Any]) -> str | None:
        """Write the metrics of a report if a minute has passed; returns what was wrong."""
        at = report["at"]
        if report["state"] == "starting" or (self._at is not None and at - self._at < EVERY):
            return None
        self._at = at
        try:
            for record in self._records(report, at):
                self._write(record)
        except OSError as error:
            return f"metrics: {error.strerror}"
        return None

    def _records(self, report: Mapping[str, Any], at: datetime) -> Iterator[Mapping[str, object]]:
        cluster = {"Cluster": report["cluster"]}
        node = {"node": report["node"], "state": report["state"]}
        of_tasks: list[dict[str, object]] = []
        totals = [0, 0, 0]
        for name, task in report["tasks"].items():
            jobs = task["jobs"].values()
            records = self._since(name, "records", jobs)
            failures = self._since(name, "failures", jobs)
            fenced = self._since(name, "fenced_total", jobs)
            totals = [totals[0] + records, totals[1] + failures, totals[2] + fenced]
            figures = [
                _seconds("BacklogSeconds", sum(job["backlog"]["seconds"] for job in jobs)),
                _seconds("LagSeconds", max(job["lag_seconds"] for job in jobs)),
                *_counts(records, failures, fenced),
                *self._maintenance(name, jobs),
            ]
            of_tasks.append(emf_record(figures, {**cluster, "Task": name}, at, node))
        backlog = report["backlog"]
        suspended = sum(task["state"] == "suspended" for task in report["tasks"].values())
        figures = [
            _seconds("BacklogSeconds", backlog["seconds"]),
            _seconds("OldestUnmergedAge", backlog["oldest_seconds"]),
            Metric("BacklogBytes", "Bytes", backlog["bytes"]),
            Metric("SuspendedTasks", "Count", suspended),
            *_counts(*totals),
        ]
        yield emf_record(figures, cluster, at, node)
        yield from of_tasks

    def _maintenance(self, task: str, jobs: Any) -> list[Metric]:
        """Of the table in the worst shape, and what it took to keep them; nothing before a look."""
        written = self._since(task, "maintenance_bytes", jobs)
        known = [job["health_percent"] for job in jobs if job["health_percent"] is not None]
        if not known:
            return []
        return [
            Metric("TableHealth", "Percent", min(known)),
            Metric("MaintenanceBytes", "Bytes", written),
        ]

    def _since(self, task: str, what: str, jobs: Any) -> int:
        """How much a total of a task grew since the last time."""
        now = sum(int(job[what]) for job in jobs)
        before, self._before[task, what] = self._before.get((task, what), 0), now
        # Less when a dataset left the task.
        return max(now - before, 0)


def _seconds(name: str, value: float) -> Metric:
    return Metric(name, "Seconds", round(value, 3))


def _counts(records: int, failures: int, fenced: int) -> list[Metric]:
    counts = {"Records": records, "Failures": failures, "Fenced": fenced}
    return [Metric(name, "Count", count) for name, count in counts.items()]
