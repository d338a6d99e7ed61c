"""The figures that `/metrics` publishes: those of the overview, and of notifications."""

from __future__ import annotations

from collections import Counter

from polynya.lake.read.inspect import DatasetStatus
from polynya.model.loader import LoadedProject
from polynya.notify.memory import NotificationStore
from polynya.observe.table_metrics import ProjectFigures, TableFigures
from polynya.server.state import ServerState
from polynya.store.places import store_at


def figures_of(state: ServerState) -> ProjectFigures:
    """The newest figures of a project; a scrape reads no table."""
    overview = state.overview.newest()
    project = overview.project or state.project()
    age = 0.0
    if overview.at is not None:
        age = max(0.0, (state.clock.now() - overview.at).total_seconds())
    measured = state.clock.monotonic() - age
    tables = []
    for one in overview.datasets.values():
        if one.status is not None:
            known = _values(one.status).items()
            values = {name: value for name, value in known if value is not None}
            tables.append(TableFigures(one.task, one.name, values, measured))
    opened, failing = _of_notifications(project)
    return ProjectFigures(project.project.name, tuple(tables), opened, failing, age)


def _values(found: DatasetStatus) -> dict[str, float | None]:
    return {
        "polynya_dataset_freshness_seconds": found.freshness_seconds,
        "polynya_dataset_pending_age_seconds": found.pending_age_seconds,
        "polynya_dataset_pending_rows": found.pending_rows,
        "polynya_dataset_pending_bytes": found.pending_bytes,
        "polynya_dataset_current_rows": found.current_rows,
        "polynya_dataset_last_apply_seconds": found.last_apply_seconds,
        "polynya_dataset_suspended": float(found.suspended is not None),
        "polynya_dataset_records": found.rows_in,
        "polynya_dataset_copied": found.rows_out,
        "polynya_dataset_filtered": found.rows_filtered,
        "polynya_dataset_quarantined": found.rows_quarantined,
        "polynya_dataset_applies": found.applies,
    }


def _of_notifications(
    project: LoadedProject,
) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
    """Open conditions by cause and severity, and failures by route; nothing without a rule."""
    if not project.notifications:
        return {}, {}
    target = project.target
    store = NotificationStore(lambda: store_at(target.warehouse, target.aws))
    opened: Counter[tuple[str, str]] = Counter(
        (condition.cause, condition.severity)
        for one in store.open_objects({task.name for task in project.works})
        for condition in one.conditions
    )
    failing: dict[str, int] = {}
    for channel in store.failing_channels():
        failing[channel.route] = max(failing.get(channel.route, 0), channel.failures)
    return dict(opened), failing
