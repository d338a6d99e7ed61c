"""A streaming transform over landed batches that a test writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from polynya.engine.policy import ApplyMode
from polynya.engine.runner import run_once, units
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.headers import StreamSource
from polynya.streams.landing import ByHand, Message
from tests.lab.lab import STARTED, Lab, Look
from tests.lab.transformed import KAFKA, landing_of, storage_of

FILES = {"files": {"url": "in", "pattern": "<yyyy>/part-*"}}


@dataclass
class LandedTable:
    """See the module. `transform` holds the settings that a test is about."""

    lab: Lab
    transform: dict[str, Any]
    source: dict[str, Any] = field(default_factory=lambda: dict(KAFKA))
    batches: int = 0
    messages: int = 0

    @property
    def landing(self) -> StreamingLanding:
        """The landing as its file would say."""
        return landing_of(self.lab.schema, self.source)

    @property
    def task(self) -> StorageTask:
        """The storage task that the transform is."""
        return storage_of(self.lab.schema, self.landing, self.transform)

    @property
    def look(self) -> Look:
        """The table as its readers see it."""
        return Look(self.lab, resolved(self.task, self.task.datasets[0]))

    def land(self, *messages: dict[str, Any] | bytes, at: datetime = STARTED) -> None:
        """Land a batch of messages; `at` is when they were taken, and when they were landed."""
        values = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
        (kind,) = self.landing.source.chosen
        landed = ByHand("clicks", "clicks", cast("StreamSource", kind))
        given = [Message(value, {}) for value in values]
        path, data = landed.batch(self.batches + 1, self.messages, given, at)
        self.batches += 1
        self.messages += len(values)
        file = self.lab.landing / self.task.landing.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def run(self, apply: ApplyMode = "always") -> None:
        """As `polynya run --once`; whatever fails is raised."""
        context = self.lab.context(apply)
        for failure in run_once(context, units(context, [self.task])).failures.values():
            raise failure

    def take(self, *messages: dict[str, Any] | bytes, at: datetime = STARTED) -> None:
        """Land a batch and copy it."""
        self.land(*messages, at=at)
        self.run()
