"""A streaming transform over what a landing lands from a source in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from polynya.engine.commands.reload import ReloadRequest, ReloadResult, reload
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.engine.tasks.streams import LandingTask
from polynya.engine.unit import Unit
from polynya.model.config.dataset import DELETING
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.streams.landing import LandedLog
from polynya.streams.source import MessageSource
from tests.lab.lab import Lab, Look
from tests.lab.transformed import KAFKA, landing_of, storage_of


@dataclass
class StreamedTable:
    """See the module. `landing` and `transform` hold the settings that a test is about."""

    lab: Lab
    source: MessageSource
    transform: dict[str, Any]
    landing: dict[str, Any] = field(default_factory=dict)

    @property
    def lands(self) -> StreamingLanding:
        """The landing as its file would say."""
        return landing_of(self.lab.schema, KAFKA, **self.landing)

    @property
    def task(self) -> StorageTask:
        """The storage task that the transform is."""
        return storage_of(self.lab.schema, self.lands, self.transform)

    @property
    def look(self) -> Look:
        """The table as its readers see it."""
        return Look(self.lab, resolved(self.task, self.task.datasets[0]))

    @property
    def log(self) -> LandedLog:
        """The landed batches."""
        return LandedLog(self.context().landing, self.lands.place, "clicks")

    def context(self) -> EngineContext:
        """A new process that knows the project."""
        context = self.lab.context("always")
        context.landed_readers.know([self.task, self.lands])
        return context

    def land(self) -> None:
        """Land what the source holds."""
        context = self.context()
        task = LandingTask(context, self.lands, self.source)
        _run(context, [Unit("clicks", "clicks", task.step, lands=True)])

    def copy(self) -> None:
        """Copy what has landed, and apply it."""
        context = self.context()
        _run(context, units(context, [self.task]))

    def run(self) -> None:
        """As `polynya run --once`; whatever fails is raised."""
        self.land()
        self.copy()

    def reload(self, mode: Any = DELETING, **how: Any) -> ReloadResult:
        """As `polynya reload --from source`."""
        done = reload(
            self.context(),
            ReloadRequest(
                self.task,
                self.look.dataset,
                mode=mode,
                source=self.source,
                **{"from_source": True, **how},
            ),
        )
        assert done is not None
        return done


def _run(context: EngineContext, work: list[Unit]) -> None:
    for failure in run_once(context, work).failures.values():
        raise failure
