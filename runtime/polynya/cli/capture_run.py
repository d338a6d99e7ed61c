"""`polynya landing run`: runs captures in this process, without Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from socket import gethostname

from polynya.cli.capture_choice import store_of
from polynya.cli.capture_metrics import CaptureMetrics
from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.cli.run import RunReport
from polynya.cli.stopping import Stopping, stop_with_parent
from polynya.cluster.report import Node
from polynya.engine.tasks.capture import supervisor_of
from polynya.engine.tasks.captures_alone import StandaloneCaptures
from polynya.model.config.connected import ConnectedCapture
from polynya.model.loader import LoadedProject
from polynya.notify.memory import NotificationStore
from polynya.notify.notifier import Notifier
from polynya.observe.events import Event, RunStarted
from polynya.observe.metrics import MetricsSink
from polynya.store.clock import SystemClock


def run_captures(
    context: CommandContext,
    project: LoadedProject,
    tasks: Sequence[ConnectedCapture],
    stopping: Stopping,
    *,
    once: bool,
    metrics: MetricsSink | None = None,
) -> int:
    """Run captures until they are done or somebody stops them; the exit code."""
    clock, stop, name = SystemClock(), stopping.stop, project.project.name
    started, report = clock.monotonic(), RunReport(name)
    published = None
    if metrics is not None:
        node = os.environ.get("POLYNYA_NODE_ID") or gethostname()
        cluster = os.environ.get("POLYNYA_CLUSTER") or project.cluster_name
        published = CaptureMetrics(tasks, Node(node, cluster, clock.now()), metrics, clock)

    notifier = Notifier(
        project,
        clock=clock,
        tell=context.output.event,
        name=gethostname(),
        tasks=[task.name for task in tasks],
        # A process near its database need not reach the warehouse.
        store=NotificationStore(lambda: store_of(project)),
    )

    def tell(event: Event) -> None:
        report.take(event)
        notifier.take(event)
        if published is not None:
            published.observed(event)
        context.output.event(event)

    store = store_of(project)
    stop_with_parent(stop, os.environ)
    with context.output.live(), notifier.running():
        names = tuple(task.name for task in tasks)
        tell(RunStarted(subject=name, target=project.target.name, tasks=names))
        supervisors = {
            task.name: supervisor_of(task, project.target, store, clock=clock, sink=tell)
            for task in tasks
        }
        stopping.starting = False
        if published is not None:
            published.keep_publishing(supervisors, stop)
        failures = StandaloneCaptures(supervisors, tell, stop).run(once=once)
        for task in tasks:
            notifier.ended(task.name, task.name, failures.get(task.name))
    for failure in failures.values():
        if context.output.is_json or not once:
            context.output.error(failure)
    seconds = clock.monotonic() - started
    data = {"ok": not failures, "failed": sorted(failures), "landed": report.landed}
    text = f"{report.landed:,} events landed in {seconds:.1f} s"
    context.output.note(f"{'done':8} {name}: {text}")
    context.output.result("landing.run", {**data, "seconds": round(seconds, 3)})
    if stopping.interrupted:
        return ExitCode.INTERRUPTED
    return max((failure.exit_code for failure in failures.values()), default=ExitCode.OK)
