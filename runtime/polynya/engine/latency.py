"""Keeps latency and backlog of datasets: measured by events, written on a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from polynya.engine.errors import as_polynya
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.config.target import LatencySettings
from polynya.model.error_catalogue.notifications import LATENCY_NOT_KEPT
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.observe.engine import BatchCopied
from polynya.observe.events import Event, EventSink
from polynya.observe.latency import BUCKET, DatasetBacklog, LatencyMeter, LatencySample
from polynya.observe.maintenance import LatencyFailed
from polynya.store.clock import Clock

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

log = logging.getLogger(__name__)

#: How often a process looks whether it is time to write, in seconds.
_CHECK_SECONDS: Final = 10.0
#: How often it maintains the tables that it wrote.
_MAINTAIN: Final = timedelta(days=1)
#: Samples that wait while the catalog does not take them; then the oldest are dropped.
_MOST_WAITING: Final = 100_000


class LatencyRecorder:
    """Measures the datasets of a process, and writes to the table of each internal schema.

    Args:
        project: its settings, tasks and target. Without `latency` nothing is done.
        clock: of the buckets.
        tell: takes an event when something cannot be written; reported once while it lasts.
        open_catalog: the catalog that takes commits; default: that of the target.

    Attributes:
        look: what waits of each dataset now; None before the engine has begun.
    """

    look: Callable[[], Mapping[str, DatasetBacklog]] | None = None

    def __init__(
        self,
        project: LoadedProject,
        *,
        clock: Clock,
        tell: EventSink,
        open_catalog: Callable[[], Catalog] | None = None,
    ) -> None:
        self._clock, self._tell = clock, tell
        self._given = open_catalog
        self._lock = threading.Lock()
        self.configure(project)
        self._meter = LatencyMeter()
        self._waiting: list[LatencySample] = []
        self._written_at = clock.now()
        self._maintained: dict[str, datetime] = {}
        self._reported = ""
        self._stop = threading.Event()

    def configure(self, project: LoadedProject) -> None:
        """Take the settings and the schemas of a project, from its next event on."""
        target = project.target
        self._settings: LatencySettings | None = project.project.latency
        self._name = project.project.name
        self._open = self._given or (lambda: python_catalog(target))
        self._refused = target.database is not None and self._given is None
        self._schemas = {
            task.schema_: (task.name, task.internal_schema or f"{task.schema_}_internal")
            for task in project.tasks
        }

    def take(self, event: Event) -> None:
        """Learn of an event, from any thread."""
        found = self._schemas.get(event.subject.partition(".")[0])
        if self._settings is None or found is None:
            return
        task = event.task or found[0]
        with self._lock:
            if isinstance(event, BatchCopied) and self.look is not None:
                # What this batch was is listed until the next look at the landing zone.
                waits = self.look().get(event.subject, DatasetBacklog())
                self._see({event.subject: waits}, task)
            self._meter = self._meter.after(event, self._clock.now(), task)

    def see_backlog(self) -> None:
        """Look at what waits."""
        if self._settings is None or self.look is None:
            return
        known = {
            name: one
            for name, one in self.look().items()
            if name.partition(".")[0] in self._schemas
        }
        with self._lock:
            self._see(known, None)

    def _see(self, backlogs: Mapping[str, DatasetBacklog], task: str | None) -> None:
        def task_of(name: str) -> str:
            return task or self._schemas[name.partition(".")[0]][0]

        self._meter = self._meter.with_backlog(backlogs, self._clock.now(), task_of)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write now and then until the block ends, and then what is left."""
        if self._settings is None:
            yield
            return
        thread = threading.Thread(target=self._work, name="latency", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(_CHECK_SECONDS)
            self.see_backlog()
            self.write(self._clock.now() + BUCKET)

    def start(self) -> None:
        """Write now and then, while the settings ask for it, on a daemon thread."""
        threading.Thread(target=self._work, name="latency", daemon=True).start()

    def _work(self) -> None:
        while not self._stop.wait(_CHECK_SECONDS):
            self.see_backlog()
            self.write_if_due()

    def write_if_due(self) -> None:
        """Write the buckets that are over, if it is time."""
        now = self._clock.now()
        if self._settings is not None and now - self._written_at >= self._settings.every:
            self._written_at = now
            self.write(now)

    def write(self, before: datetime) -> None:
        """Write the buckets that had ended before a moment; what cannot be written is kept."""
        with self._lock:
            taken, self._meter = self._meter.taken(before)
        self._waiting = [*self._waiting, *taken][-_MOST_WAITING:]
        if not self._waiting:
            return
        try:
            self._write()
        except Exception as error:  # noqa: BLE001 - the edge: data work goes on
            self._trouble(as_polynya(error))
        else:
            self._reported = ""

    def _write(self) -> None:
        if self._refused:
            self._waiting = []
            raise LATENCY_NOT_KEPT(where=self._name)
        assert self._settings is not None, "there is nothing to write without settings"
        # Start-up time: PyIceberg's writers.
        from polynya.lake.warehouse.latency_table import LatencyTable

        catalog, now = self._open(), self._clock.now()
        for schema in sorted({self._schema_of(one) for one in self._waiting}):
            of_schema = [one for one in self._waiting if self._schema_of(one) == schema]
            table = LatencyTable(catalog, schema)
            table.append(of_schema)
            self._waiting = [one for one in self._waiting if self._schema_of(one) != schema]
            if now - self._maintained.get(schema, datetime.min.replace(tzinfo=now.tzinfo)) >= (
                _MAINTAIN
            ):
                self._maintained[schema] = now
                table.maintain(keep=self._settings.keep, now=now)

    def _schema_of(self, one: LatencySample) -> str:
        schema = one.dataset.partition(".")[0]
        return self._schemas[schema][1] if schema in self._schemas else f"{schema}_internal"

    def _trouble(self, error: PolynyaError) -> None:
        if str(error) != self._reported:
            self._reported = str(error)
            self._tell(LatencyFailed(subject=self._name, error=error))


def read_latencies(
    project: LoadedProject, since: datetime, dataset: str | None = None, task: str | None = None
) -> list[LatencySample]:
    """The kept samples of a project, of one `schema.name` or task, from a moment on.

    Needs no JVM.
    """
    if not has_tables(project.target):
        return []
    # Start-up time: PyIceberg.
    from polynya.lake.warehouse.latency_table import LatencyTable

    catalog = python_catalog(project.target)
    schemas = project.internal_schemas
    if dataset is not None or task is not None:
        named = None if dataset is None else dataset.partition(".")[0]
        schemas = {
            one.internal_schema or f"{one.schema_}_internal"
            for one in project.tasks
            if named in (None, one.schema_) and task in (None, one.name)
        }
    return [
        one
        for schema in sorted(schemas)
        for one in LatencyTable(catalog, schema).read(since, dataset, task)
    ]
