"""`/metrics`, and that the dashboard asks for nothing that is not published."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from polynya.cluster.report import MetricsOutlet
from polynya.notify.conditions import after_event
from polynya.notify.memory import NotificationStore
from polynya.observe.maintenance import HealthSummary
from polynya.observe.metrics import Minute, PrometheusText
from polynya.observe.table_metrics import (
    COUNTERS,
    GAUGES,
    ProjectFigures,
    TableFigures,
    families,
)
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.notify.test_notifier import FAILED, RULE, project

DASHBOARD = Path(__file__).resolve().parents[2] / "examples" / "grafana" / "polynya.json"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Published:
    """Names of time series with their labels, as a text of Prometheus has them."""

    def __init__(self, *texts: str) -> None:
        self.labels: dict[str, set[str]] = {}
        self.values: dict[tuple[str, str], float] = {}
        for text in texts:
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    self.labels.setdefault(sample.name, set()).update(sample.labels)
                    self.values[sample.name, sample.labels.get("dataset", "")] = sample.value


def of_tables(figures: ProjectFigures, now: float = 0.0) -> str:
    registry = CollectorRegistry()

    class Collector:
        def collect(self) -> Iterator[Any]:
            yield from families(figures, now)

    registry.register(Collector())  # type: ignore[arg-type]
    return generate_latest(registry).decode()


def of_agent() -> str:
    """What an agent publishes of a capture, a stream, a mirror, a table, and as the leader."""
    capture = {"events": 1, "bytes": 1, "lag_bytes": 1, "lag_seconds": 1.0, "silent_seconds": 1.0,
               "retries": 0, "log_bytes": 1, "log_limit_bytes": 2,
               "tables": {"running": 1}}  # fmt: skip
    waiting = {"seconds": 1.0, "bytes": 1, "oldest_seconds": 1.0, "elsewhere": False,
               "keeps_node": False}  # fmt: skip
    job = {
        "state": "running", "held": False, "quarantined": 1, "records": 2, "failures": 1,
        "fenced_total": 0, "maintenance_bytes": 1, "lag_seconds": 1.0, "backlog": waiting,
        "shape": asdict(HealthSummary(99, 1, 1, 0.1, 0, 1, 1, 0)),
        "streams": {"clicks": {"records": 1, "bytes": 1, "behind_seconds": 1.0}},
        "captures": {"crm": capture},
        "mirrors": {"t": {"behind_seconds": 1.0, "stale": False}},
    }  # fmt: skip
    minutes: list[Minute] = []
    outlet = MetricsOutlet(minutes.append)
    for minute in range(2):
        at, busy = NOON + timedelta(minutes=minute), 60.0 * minute
        outlet.put({
            "at": at, "node": "n1", "cluster": "main", "state": "running", "backlog": waiting,
            "engine": {"threads": 4, "busy_seconds": busy}, "tasks": {"crm": {
                "state": "running", "jobs": {"crm": job}}},
            "sharing": {"unowned": {"units": 0, "seconds": 0.0, "oldest_seconds": 0.0}},
        })  # fmt: skip
    text = PrometheusText()
    return "".join(text.of(minute) for minute in minutes[-1:])


EVERYTHING = ProjectFigures(
    "shop",
    (TableFigures("users", "shop.users", {**dict.fromkeys([*GAUGES, *COUNTERS], 1.0)}, 0.0),),
    {("failed", "error"): 1},
    {"oncall.all.ops": 2},
)
_WORDS = {"sum", "by", "max", "min", "rate", "increase", "topk", "label_values"}
_GROUPS = re.compile(r"\bby \(([^)]*)\)")
_SERIES = re.compile(r"\b([a-z_]+[a-z])(?:\{([^}]*)\})?")


def asked(dashboard: Any) -> Iterator[tuple[str, set[str]]]:
    """Yield what a dashboard asks for: time series and labels."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            for group in _GROUPS.findall(expression):
                labels |= {name.strip() for name in group.split(",")}
            bare = _GROUPS.sub("", re.sub(r"\[\w+\]", "", expression))
            for name, matchers in _SERIES.findall(re.sub(r'"[^"]*"', '""', bare)):
                if name not in _WORDS:
                    yield name, labels | set(re.findall(r"(\w+)\s*=", matchers))
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            name, label = re.findall(r"\((\w+), (\w+)\)", variable["query"])[0]
            yield name, {label}


def unpublished(dashboard: Any, published: Published) -> list[str]:
    """What a dashboard asks for and nothing publishes."""
    return [
        f"{name}{sorted(labels - published.labels.get(name, set()))}"
        for name, labels in asked(dashboard)
        if not labels <= published.labels.get(name, set())
    ]


def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text())


def test_the_dashboard_asks_for_what_is_published() -> None:
    published = Published(of_agent(), of_tables(EVERYTHING))

    assert len(list(asked(dashboard()))) > 20
    assert unpublished(dashboard(), published) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("polynya_backlog_seconds{", "polynya_backlog{"),
        ("by (task, stream)", "by (task, topic)"),
        ("{{dataset}}", "{{table}}"),
        ("label_values(polynya_backlog_seconds, cluster)", "label_values(polynya_x, cluster)"),
    ],
)
def test_a_dashboard_with_a_wrong_name_is_found(right: str, wrong: str) -> None:
    text = DASHBOARD.read_text()
    assert right in text

    published = Published(of_agent(), of_tables(EVERYTHING))
    assert unpublished(json.loads(text.replace(right, wrong)), published) != []


def test_ages_grow_between_two_measurements() -> None:
    published = Published(of_tables(EVERYTHING, now=30.0))

    assert published.values["polynya_dataset_freshness_seconds", "shop.users"] == 31.0
    assert published.values["polynya_dataset_pending_rows", "shop.users"] == 1.0


def test_a_label_of_a_hostile_name_stays_one_label() -> None:
    name = 'a"} 1\npolynya_dataset_suspended{dataset="b'
    table = TableFigures("users", name, {"polynya_dataset_suspended": 1.0}, 0.0)

    published = Published(of_tables(ProjectFigures("shop", (table,))))
    assert published.values["polynya_dataset_suspended", name] == 1.0


def test_a_server_publishes_open_conditions_and_its_process(tmp_path: Path) -> None:
    shop = project(tmp_path, RULE)
    warehouse = LocalObjectStore(tmp_path / "warehouse")
    (tmp_path / "warehouse").mkdir()
    found = after_event({}, FAILED, NOON, lambda _: "users")
    NotificationStore(lambda: warehouse).write(found, {})
    client = TestClient(app_of(ServerState(shop.directory, None, FakeClock())))

    answer = client.get("/api/v1/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    published = Published(answer.text)
    assert published.values["polynya_open_conditions", ""] == 1.0
    assert published.labels["polynya_open_conditions"] == {"project", "cause", "severity"}
    assert "process_cpu_seconds_total" in published.labels
