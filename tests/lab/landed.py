"""A streaming transform over landed batches that a test writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from polynya.engine.runner import run_once, units
from polynya.engine.work.policy import ApplyMode
from polynya.formats.landed.batch import batch_name
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.config.streaming.transform import StreamingTransform
from polynya.model.config.task import StorageTask, resolved
from polynya.model.reading.transforms import as_storage
from tests.formats.stream.streams import landed
from tests.lab.lab import Lab, Look

HEAD = {"apiVersion": "polynya/v1"}
KAFKA = {"kafka": {"bootstrap_servers": "b:1", "topics": ["clicks"]}}


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
        return StreamingLanding.model_validate(
            {
                **HEAD, "kind": "streaming_landing", "name": "clicks", "source": self.source,
                "folder": self.lab.schema,
            }
        )  # fmt: skip

    @property
    def task(self) -> StorageTask:
        """The storage task that the transform is."""
        transform = StreamingTransform.model_validate(
            {
                **HEAD, "kind": "streaming_transform", "name": "facts", "from": "clicks",
                "schema": self.lab.schema, **self.transform,
            }
        )  # fmt: skip
        return as_storage(transform, self.landing)

    @property
    def look(self) -> Look:
        """The table as its readers see it."""
        return Look(self.lab, resolved(self.task, self.task.datasets[0]))

    def land(self, *messages: dict[str, Any] | bytes) -> None:
        """Land a batch of these messages of a topic; bytes stand for themselves."""
        values = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
        self.put(landed(values, self.batches + 1, self.messages))
        self.messages += len(values)

    def put(self, data: bytes) -> None:
        """Put a landed batch after those that there are."""
        self.batches += 1
        file = self.lab.landing / self.task.landing.path / "clicks" / batch_name(self.batches)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def run(self, apply: ApplyMode = "always") -> None:
        """As `polynya run --once`; whatever fails is raised."""
        context = self.lab.context(apply)
        for failure in run_once(context, units(context, [self.task])).failures.values():
            raise failure

    def take(self, *messages: dict[str, Any] | bytes) -> None:
        """Land a batch and copy it."""
        self.land(*messages)
        self.run()
