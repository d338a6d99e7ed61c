"""Metrics of captures that run without an agent, as an agent publishes those of its own."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from polynya.cluster.jobs import AgentJob
from polynya.cluster.report import AgentFacts, MetricsOutlet, Node, node_report
from polynya.cluster.unit import JobKey
from polynya.engine.tasks.capture_supervisor import CaptureSupervisor
from polynya.model.config.connected import ConnectedCapture
from polynya.observe.events import Event
from polynya.observe.metrics import MetricsSink
from polynya.store.clock import Clock

#: How often it is checked whether a minute of the clock has begun, in seconds.
_CHECK_SECONDS: Final = 5.0


class CaptureMetrics:
    """Publishes the metrics of captures once in each minute of the clock.

    Args:
        tasks: those that are captured.
        node: its id, and the cluster as the dimension of the metrics.
        sink: takes the metrics of a minute.
        clock: of this machine.
    """

    def __init__(
        self, tasks: Sequence[ConnectedCapture], node: Node, sink: MetricsSink, clock: Clock
    ) -> None:
        self._jobs = {
            task.name: AgentJob(JobKey(task.name, task.name), task, "run", running="run")
            for task in tasks
        }
        self._node, self._outlet, self._clock = node, MetricsOutlet(sink), clock

    def observed(self, event: Event) -> None:
        """Take note of what a capture did."""
        if event.task in self._jobs:
            self._jobs[event.task].observed(event, self._clock.now())

    def publish(self, supervisors: Mapping[str, CaptureSupervisor]) -> str | None:
        """Publish how the captures are if a minute has begun; returns what was wrong."""
        now, jobs = self._clock.monotonic(), list(self._jobs.values())
        for name, supervisor in supervisors.items():
            self._jobs[name].backlog.captured(name, supervisor.figures(), now)
        facts = AgentFacts(
            node=self._node,
            at=self._clock.now(),
            state="running",
            in_force=None,
            unread=None,
            unused=(),
            jobs=jobs,
            backlogs=[job.waiting(now) for job in jobs],
            streams=[{} for _ in jobs],
            captures=[job.backlog.captures(now) for job in jobs],
            mirrors=[{} for _ in jobs],
        )
        return self._outlet.put(node_report(facts))

    def keep_publishing(
        self, supervisors: Mapping[str, CaptureSupervisor], stop: threading.Event
    ) -> None:
        """Publish on a thread of its own until `stop` is set."""

        def work() -> None:
            while not stop.wait(_CHECK_SECONDS):
                self.publish(supervisors)

        threading.Thread(target=work, name="metrics", daemon=True).start()
