"""The figures that `/metrics` publishes: measured on a thread, at most once a minute.

A scrape never waits for tables: it gets the newest figures, and how old they are. A table without a
new commit is not read again.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from polynya.engine.errors import as_polynya
from polynya.model.loader import LoadedProject
from polynya.notify.memory import NotificationStore
from polynya.observe.table_metrics import ProjectFigures, TableFigures
from polynya.server.state import ServerState
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.engine.inventory import ProjectTable
    from polynya.lake.read.inspect import DatasetStatus

log = logging.getLogger(__name__)

#: Seconds between two measurements.
EVERY_SECONDS: Final = 60.0
#: How long the first scrape waits for figures.
FIRST_SECONDS: Final = 5.0


class TableFiguresCache:
    """The newest figures of the project of a server."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._figures: ProjectFigures | None = None
        self._measured_at = float("-inf")
        self._known: dict[str, tuple[str, TableFigures]] = {}

    def figures(self, *, wait: float = FIRST_SECONDS) -> ProjectFigures:
        """The newest figures; begins to measure new ones where they are too old."""
        now = self._state.clock.monotonic()
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            if not running and now - self._measured_at >= EVERY_SECONDS:
                self._thread = threading.Thread(target=self._measure, name="figures", daemon=True)
                self._thread.start()
            thread = self._thread
        if self._figures is None and thread is not None:
            thread.join(wait)
        found = self._figures
        if found is None:
            return ProjectFigures(self._state.project().project.name, ())
        return replace(found, age_seconds=max(0.0, now - self._measured_at))

    def _measure(self) -> None:
        try:
            found = measured(self._state, self._known)
        except Exception as error:  # noqa: BLE001 - the edge of the thread: the next one tries again
            log.warning("figures of tables: %s", as_polynya(error))
            return
        self._figures, self._measured_at = found, self._state.clock.monotonic()


def measured(state: ServerState, known: dict[str, tuple[str, TableFigures]]) -> ProjectFigures:
    """Measure the tables of a project. Needs no JVM.

    `known` has figures by table, each with the metadata file that they are of; it is updated.
    """
    # Start-up time: PyIceberg.
    from polynya.engine.inventory import inventory
    from polynya.lake.spark.catalog import has_tables, python_catalog

    project = state.project()
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    tables = [
        figures
        for entry in inventory(project, catalog)
        if not entry.is_ledger and (figures := _figures_of(entry, state, known)) is not None
    ]
    opened, failing = _of_notifications(project)
    return ProjectFigures(project.project.name, tuple(tables), opened, failing)


def _figures_of(
    entry: ProjectTable, state: ServerState, known: dict[str, tuple[str, TableFigures]]
) -> TableFigures | None:
    # Start-up time: PyIceberg.
    from polynya.lake.read.inspect import status

    if entry.table is None:
        return None
    place = entry.table.metadata_location
    before = known.get(entry.name)
    if before is not None and before[0] == place:
        return before[1]
    try:
        found = status(entry.table, entry.dataset, state.clock.now())
    except Exception as error:  # noqa: BLE001 - one table must not hide the others
        log.warning("figures of %s: %s", entry.name, as_polynya(error))
        return before[1] if before is not None else None
    values = {name: value for name, value in _values(found).items() if value is not None}
    figures = TableFigures(entry.task.name, entry.name, values, state.clock.monotonic())
    known[entry.name] = place, figures
    return figures


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
