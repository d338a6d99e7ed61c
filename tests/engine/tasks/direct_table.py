"""A table of the lab that reads a cluster of Kafka in memory by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from polynya.engine.commands.reload import ReloadRequest, ReloadResult, reload
from polynya.engine.commands.replay import ReplayResult, replay
from polynya.engine.inventory import ProjectTable
from polynya.engine.policy import ApplyMode
from polynya.engine.runner import run_once
from polynya.engine.tasks.direct import DirectUnit
from polynya.engine.unit import TimeSlice, Unit
from polynya.lake.table import dataset as committing
from polynya.model.config.dataset import DELETING
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.config.task import resolved
from polynya.model.config.transform import StreamingTransform
from polynya.model.errors import PolynyaError
from polynya.model.positions import DirectPosition
from polynya.model.project_transforms import as_storage
from polynya.observe.events import Event
from tests.lab.lab import Lab, Look
from tests.streams.kafka.fake import FakeKafka, FakePartition

HEAD = {"apiVersion": "polynya/v1"}
#: Messages are merged by `id`, with history.
MERGED: dict[str, Any] = {
    "mode": "merge",
    "columns": [{"name": "id", "expression": "id", "type": "bigint", "key": 1}],
    "soft_delete": "gone",
    "history": True,
    "partition_by": "none",
}


class PowerCut(BaseException):
    """The process is gone."""


def message(key: Any, **values: Any) -> bytes:
    """An event as JSON; `gone` is a column from the first one on."""
    return json.dumps({"id": key, "name": None, "gone": False, **values}).encode()


@dataclass
class DirectTable:
    """See the module. Each `run` is a process of its own."""

    lab: Lab
    source: FakeKafka = field(default_factory=lambda: FakeKafka("clicks"))
    landing: dict[str, Any] = field(default_factory=dict)
    transform: dict[str, Any] = field(default_factory=lambda: dict(MERGED))

    @property
    def written(self) -> dict[str, Any]:
        """The source as its file would say."""
        return {"kafka": {"bootstrap_servers": "b:1", "topics": self.source.wanted}}

    @property
    def task(self) -> DirectTask:
        """The task as its files would say."""
        landing = StreamingLanding.model_validate(
            {
                **HEAD, "kind": "streaming_landing", "name": "clicks", "source": self.written,
                "direct": True, **self.landing,
            }
        )  # fmt: skip
        transform = StreamingTransform.model_validate(
            {
                **HEAD, "kind": "streaming_transform", "name": "facts", "from": "clicks",
                "schema": self.lab.schema, **self.transform,
            }
        )  # fmt: skip
        made = as_storage(transform, landing)
        assert isinstance(made, DirectTask)
        return made

    @property
    def look(self) -> Look:
        """The table as its readers see it."""
        return Look(self.lab, resolved(self.task, self.task.datasets[0]))

    @property
    def partition(self) -> FakePartition:
        """The only partition of the topic, which is made when it is first asked for."""
        if "clicks" not in self.source.topics:
            self.source.topic("clicks")
        return self.source.topics["clicks"].partitions[0]

    def unit(self, apply: ApplyMode = "never") -> Unit:
        """The unit of a new process."""
        context, dataset = self.lab.context(apply), self.look.dataset
        whole = DirectUnit(context, self.task, dataset, self.source)
        return Unit(dataset.relations.current, self.task.name, whole.step)

    def run(self, apply: ApplyMode = "never") -> None:
        """As `polynya run --once`; whatever fails is raised."""
        for failure in self.failures(apply).values():
            raise failure

    def failures(self, apply: ApplyMode = "never") -> dict[str, PolynyaError]:
        """The same; what failed, by unit."""
        return run_once(self.lab.context(apply), [self.unit(apply)]).failures

    def work(self) -> None:
        """The steps of a process that may be killed at any of them."""
        unit = self.unit()
        while unit.step(TimeSlice()).more:
            pass

    def reload(self, mode: Any = DELETING, **how: Any) -> ReloadResult:
        """As `polynya reload`."""
        context, dataset = self.lab.context(), self.look.dataset
        done = reload(
            context, ReloadRequest(self.task, dataset, mode=mode, source=self.source, **how)
        )
        assert done is not None
        return done

    def replay(self) -> ReplayResult:
        """As `polynya quarantine replay --all`."""
        entry = ProjectTable(self.task, self.look.dataset, None)
        return replay(self.lab.context(), entry, None)

    @property
    def position(self) -> DirectPosition:
        """How far the table has read."""
        found = self.look.table().state.copy.position.stream
        assert found is not None
        return found

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.lab.events if isinstance(event, kind)]


@contextmanager
def killed(at: int, *, before: bool) -> Iterator[list[int]]:
    """Cut the power just before, or just after, a commit; the list tells how many there were."""
    real, commits = committing.commit_row_delta, list[int]()

    def commit(*args: Any) -> Any:
        commits.append(1)
        if before and len(commits) == at:
            raise PowerCut
        done = real(*args)
        if len(commits) == at:
            raise PowerCut
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(committing, "commit_row_delta", commit)
        yield commits
