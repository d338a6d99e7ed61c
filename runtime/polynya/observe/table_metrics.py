"""Metrics of tables as Prometheus reads them, from what the tables themselves say.

The agent of a node publishes figures of its work (`polynya.observe.metrics`). These are figures of
the tables, which any process can read. Names follow "Metric and label naming" of the documentation
of Prometheus: the unit at the end, `_total` for what only grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

#: What each gauge of a dataset says.
GAUGES: Final[Mapping[str, str]] = {
    "polynya_dataset_freshness_seconds": "Age of the newest copied event by the source's clock",
    "polynya_dataset_pending_age_seconds": "Age of the oldest change that is not applied",
    "polynya_dataset_pending_rows": "Changes that are not applied",
    "polynya_dataset_pending_bytes": "Size of the changes that are not applied",
    "polynya_dataset_current_rows": "Rows of Current, without pending changes",
    "polynya_dataset_last_apply_seconds": "How long the last apply took",
    "polynya_dataset_suspended": "1 while the dataset is suspended",
}
#: What each counter of a dataset counts.
COUNTERS: Final[Mapping[str, str]] = {
    "polynya_dataset_records": "Records read",
    "polynya_dataset_copied": "Records that entered the table",
    "polynya_dataset_filtered": "Records left out by settings",
    "polynya_dataset_quarantined": "Records that went to quarantine",
    "polynya_dataset_applies": "Applies",
}
#: Gauges that grow with the time since they were measured.
_AGES: Final = frozenset(
    {"polynya_dataset_freshness_seconds", "polynya_dataset_pending_age_seconds"}
)


@dataclass(frozen=True, slots=True)
class TableFigures:
    """The figures of one dataset, by the names of `GAUGES` and `COUNTERS`; without those unknown.

    `at` is when they were measured, in monotonic seconds.
    """

    task: str
    dataset: str
    values: Mapping[str, float]
    at: float


@dataclass(frozen=True, slots=True)
class ProjectFigures:
    """The figures of a project.

    `open` counts open conditions by cause and severity, `failing` failed attempts by route of
    notifications. `age_seconds` is how long ago the oldest of the figures was measured.
    """

    project: str
    tables: tuple[TableFigures, ...]
    open: Mapping[tuple[str, str], int] = field(default_factory=dict)
    failing: Mapping[str, int] = field(default_factory=dict)
    age_seconds: float = 0.0


def families(figures: ProjectFigures, now: float) -> Iterator[Metric]:
    """Yield the metrics of a project; `now` in monotonic seconds."""
    # Start-up time: only a server publishes them.
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

    project, labels = figures.project, ("project", "task", "dataset")
    for name, about in GAUGES.items():
        gauge = GaugeMetricFamily(name, about, labels=labels)
        for table, value in _of(figures.tables, name):
            grown = now - table.at if name in _AGES else 0.0
            gauge.add_metric((project, table.task, table.dataset), value + grown)
        yield gauge
    for name, about in COUNTERS.items():
        counter = CounterMetricFamily(name, about, labels=labels)
        for table, value in _of(figures.tables, name):
            counter.add_metric((project, table.task, table.dataset), value)
        yield counter
    opened = GaugeMetricFamily(
        "polynya_open_conditions",
        "What is wrong now and notifications are about",
        labels=("project", "cause", "severity"),
    )
    for (cause, severity), count in sorted(figures.open.items()):
        opened.add_metric((project, cause, severity), count)
    yield opened
    failing = GaugeMetricFamily(
        "polynya_notification_failures",
        "Failed attempts in a row of a channel of notifications that fails",
        labels=("project", "route"),
    )
    for route, failures in sorted(figures.failing.items()):
        failing.add_metric((project, route), failures)
    yield failing
    age = GaugeMetricFamily(
        "polynya_figures_age_seconds", "Age of the figures of tables", labels=("project",)
    )
    age.add_metric((project,), figures.age_seconds)
    yield age


def _of(tables: Iterable[TableFigures], name: str) -> Iterator[tuple[TableFigures, float]]:
    for table in tables:
        if name in table.values:
            yield table, table.values[name]
