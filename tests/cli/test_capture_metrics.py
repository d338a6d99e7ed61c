"""Captures without an agent publish their figures once in each minute of the clock."""

from __future__ import annotations

from polynya.cli.capture_metrics import CaptureMetrics
from polynya.cluster.report import Node
from polynya.model.config.connected import ConnectedCapture
from polynya.observe.capture import CaptureLanded
from polynya.observe.metrics import Minute
from tests.engine.tasks.test_capture_supervisor import LAG, LANDED, STREAMING, FakeProcess, Zone
from tests.engine.tasks.test_capture_unit import TASK


def test_each_minute_has_the_figures_of_each_capture_once() -> None:
    zone, minutes = (
        Zone(coming=[FakeProcess([[STREAMING, LANDED, LAG], *[[]] * 200])]),
        list[Minute](),
    )
    task = ConnectedCapture.model_validate(TASK)
    metrics = CaptureMetrics(
        [task], Node("n1", "shop", zone.clock.now()), minutes.append, zone.clock
    )

    for _ in range(30):
        zone.look()
        for event in zone.told(CaptureLanded):
            metrics.observed(event)
        zone.events.clear()
        metrics.publish({"shop_db": zone.supervisor})
        zone.clock.sleep(5)

    assert len(minutes) in (3, 4)
    figures = {
        metric.name: metric.value
        for group in minutes[0].figures
        if group.of == {"Task": "shop_db"}
        for metric in group.metrics
    }
    assert (figures["Records"], figures["CaptureEvents"]) == (3, 3)
    assert (figures["CaptureLagSeconds"], figures["CaptureLagBytes"]) == (2.5, 5000)
    assert all(minute.cluster == "shop" for minute in minutes)
