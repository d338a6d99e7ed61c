"""What a node publishes: one value in each minute, its own work, and as the leader unowned work."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.cluster.report import MetricsOutlet
from polynya.engine.backlog import REMOTE_WORK_SECONDS
from polynya.observe.maintenance import HealthSummary
from polynya.observe.metrics import Minute, PrometheusText
from stacks.settings.prices import METRIC_MONTH

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def report(
    at: datetime,
    *,
    node: str = "n1",
    backlog: float = 0.0,
    oldest: float = 0.0,
    busy: float = 0.0,
    records: int = 0,
    unowned: dict[str, float] | None = None,
    keeps_node: bool = False,
) -> dict[str, Any]:
    stream = {"records": records, "bytes": 100 * records, "behind_seconds": 12.5}
    job = {
        "state": "running", "held": False, "captures": {}, "mirrors": {}, "quarantined": 0,
        "records": records, "failures": 0, "fenced_total": 0, "maintenance_bytes": 0,
        "health_percent": None, "shape": None, "lag_seconds": oldest,
        "backlog": {
            "seconds": backlog, "bytes": int(backlog * 1000), "elsewhere": False,
            "keeps_node": False,
        },
        "streams": {"in/clicks": stream} if records else {},
    }  # fmt: skip
    return {
        "at": at,
        "node": node,
        "cluster": "shop",
        "state": "running",
        "backlog": {
            "seconds": backlog,
            "oldest_seconds": oldest,
            "bytes": 0,
            "elsewhere": False,
            "keeps_node": keeps_node,
        },
        "engine": {"threads": 4, "busy_seconds": busy},
        "sharing": {"unowned": unowned},
        "tasks": {'web"1': {"state": "running", "jobs": {"x": job}}},
    }


def value(minute: Minute, name: str, **of: str) -> float | None:
    (figures,) = [one for one in minute.figures if one.of == of]
    return {one.name: one.value for one in figures.metrics}.get(name)


@pytest.mark.parametrize("every", [1.0, 10.0, 10.7])
def test_each_minute_of_the_clock_has_one_value_however_often_a_node_reports(every: float) -> None:
    """CloudWatch adds the values of a minute up: one too many or too few is a wrong sum."""
    minutes: list[Minute] = []
    outlet = MetricsOutlet(minutes.append)

    for number in range(int(3590 / every)):
        outlet.put(report(NOON + timedelta(seconds=3.3 + number * every)))

    assert [one.at.minute for one in minutes] == list(range(60))


def test_the_sum_over_the_nodes_is_the_work_of_the_cluster_with_unowned_work_once() -> None:
    minutes: list[Minute] = []
    leader = report(
        NOON,
        backlog=60.0,
        oldest=20.0,
        unowned={"units": 3, "seconds": 100.0, "oldest_seconds": 500.0},
    )
    for one in (leader, report(NOON, node="n2", backlog=30.0, oldest=40.0)):
        MetricsOutlet(minutes.append).put(one)

    assert sum(value(one, "BacklogSeconds") or 0 for one in minutes) == 190.0
    assert max(value(one, "OldestUnmergedAge") or 0 for one in minutes) == 500.0
    assert [value(one, "UnownedUnits") for one in minutes] == [3, None]
    # Of the node alone: what no node has is not its own.
    assert value(minutes[0], "BacklogSeconds", Node="n1") == 60.0


def test_a_node_that_waits_for_a_service_has_enough_to_do_to_be_kept() -> None:
    minutes: list[Minute] = []

    for backlog in (0.0, 200.0):
        MetricsOutlet(minutes.append).put(report(NOON, backlog=backlog, keeps_node=True))

    assert [value(one, "BacklogSeconds") for one in minutes] == [REMOTE_WORK_SECONDS, 200.0]
    assert value(minutes[0], "BacklogSeconds", Node="n1") == REMOTE_WORK_SECONDS


@pytest.mark.parametrize("before", [{"state": "starting"}, {"state": "draining", "cluster": None}])
def test_a_node_without_a_configuration_publishes_nothing(before: dict[str, Any]) -> None:
    minutes: list[Minute] = []

    assert MetricsOutlet(minutes.append).put({**report(NOON), **before}) is None
    assert minutes == []


def test_saturation_is_the_part_of_the_threads_time_that_was_work() -> None:
    minutes: list[Minute] = []
    outlet = MetricsOutlet(minutes.append)

    for minute, busy in enumerate([1000.0, 1120.0, 1360.0, 1601.0]):
        outlet.put(report(NOON + timedelta(minutes=minute), busy=busy))

    assert [value(one, "Saturation") for one in minutes] == [None, 50.0, 100.0, 100.0]
    assert value(minutes[1], "Saturation", Node="n1") == 50.0


def test_the_speed_is_that_of_what_is_worked_on() -> None:
    """The file of a suspended task would make it look fast, and a cluster without nodes idle."""
    minutes: list[Minute] = []
    mixed = report(NOON, backlog=50.0)
    mixed["backlog"]["bytes"] = 9_050_000
    job = mixed["tasks"]['web"1']["jobs"]["x"]
    suspended = {**job, "backlog": {"seconds": 0, "bytes": 9e6, "elsewhere": False}}
    away = {**job, "backlog": {"seconds": 7, "bytes": 9e9, "elsewhere": True, "keeps_node": True}}
    mixed["tasks"]["ill"] = {"state": "suspended", "jobs": {"y": suspended}}
    mixed["tasks"]["away"] = {"state": "running", "jobs": {"z": away}}

    for one in (mixed, report(NOON)):
        MetricsOutlet(minutes.append).put(one)

    assert [value(one, "BytesPerSecond") for one in minutes] == [1000.0, None]


def test_the_same_figures_for_prometheus() -> None:
    minutes: list[Minute] = []
    outlet, text = MetricsOutlet(minutes.append), PrometheusText()
    for minute in range(2):
        at = NOON + timedelta(minutes=minute)
        outlet.put(report(at, backlog=90.5, busy=120.0 * minute, records=100 * (minute + 1)))

    before, now = (text.of(one) for one in minutes)

    node = 'cluster="shop",node="n1"'
    assert f"# TYPE polynya_backlog_seconds gauge\npolynya_backlog_seconds{{{node}}} 90.5" in now
    assert f"polynya_saturation_percent{{{node}}} 50" in now
    assert f"\npolynya_bytes_per_second{{{node}}} 1000\n" in now
    assert f"polynya_oldest_unmerged_age_seconds{{{node}}} 0" in now
    # What grows is a total there, and a growth in CloudWatch.
    assert f"# TYPE polynya_records_total counter\npolynya_records_total{{{node}}} 200" in now
    assert f"polynya_records_total{{{node}}} 100" in before
    stream = f'{{{node},task="web\\"1",stream="in/clicks"}}'
    assert f"polynya_task_stream_bytes_total{stream} 20000" in now
    assert f"polynya_task_stream_records_per_second{stream} 1.667" in now
    assert f"polynya_task_stream_behind_seconds{stream} 12.5" in now
    assert "stream_records_per_second" not in before
    # A name of a person's choice cannot end its label.
    assert f'polynya_task_records_total{{{node},task="web\\"1"}} 200' in now
    assert all(line.count("{") == 1 for line in now.splitlines() if not line.startswith("#"))
    series = [line.rpartition(" ")[0] for line in now.splitlines()]
    assert len(series) == len(set(series))


def test_a_page_says_how_many_metrics_are_paid_for() -> None:
    """CloudWatch bills each of them by the month; a task whose tables were looked at has most."""
    minutes: list[Minute] = []
    outlet = MetricsOutlet(minutes.append)
    shape = HealthSummary(
        health_percent=100, files=1, size_bytes=1, deleted_share=0.0, rows_not_optimised=0,
        metadata_bytes=1, snapshots=1, removed_orphan_bytes=0,
    )  # fmt: skip
    for minute in range(2):  # rates are there from the second minute
        one = report(NOON + timedelta(minutes=minute), records=100 * (minute + 1))
        one["tasks"]['web"1']["jobs"]["x"]["shape"] = asdict(shape)
        outlet.put(one)

    paid = {frozenset(each.of): len(each.metrics) for each in minutes[-1].figures}
    node, task = paid[frozenset({"Node"})], paid[frozenset({"Task"})]
    page = PAGE.read_text()
    assert f"the metrics of each node (${node * METRIC_MONTH:.2f};" in page
    assert f"each task ({task} metrics, ${task * METRIC_MONTH:.2f}, and five more for each" in page
    assert paid[frozenset({"Task", "Stream"})] == 5


def test_a_capture_has_figures_of_its_task_and_the_worst_stands_for_the_cluster() -> None:
    def capture(lag: float, retries: int, **fields: Any) -> dict[str, Any]:
        return {
            "events": 10, "bytes": 1000, "lag_bytes": 500, "lag_seconds": lag,
            "silent_seconds": 3.0, "retries": retries, "log_bytes": None, "log_limit_bytes": None,
            "tables": {"running": 3, "error": 1}, **fields,
        }  # fmt: skip

    minutes: list[Minute] = []
    one = report(NOON)
    jobs = one["tasks"]['web"1']["jobs"]
    captures = {
        "shop": capture(4.0, 0, log_bytes=30, log_limit_bytes=40),
        "crm": capture(90.0, 2, silent_seconds=None),
    }
    one["tasks"] = {
        name: {"state": "running", "jobs": {name: {**jobs["x"], "captures": {name: figures}}}}
        for name, figures in captures.items()
    }

    MetricsOutlet(minutes.append).put(one)

    (minute,) = minutes
    assert value(minute, "CaptureLagSeconds") == 90.0
    assert value(minute, "CaptureRetries") == 2
    assert value(minute, "CaptureLogPercent") == 75.0
    assert value(minute, "SuspendedDatasets") == 2
    assert value(minute, "CaptureLagSeconds", Task="shop") == 4.0
    assert value(minute, "CaptureEvents", Task="shop") == 10
    assert value(minute, "CaptureTables", Task="shop") == 4
    assert value(minute, "CaptureLogPercent", Task="crm") is None
    assert value(minute, "CaptureSilentSeconds", Task="crm") is None
    text = PrometheusText().of(minute)
    assert 'polynya_task_capture_lag_seconds{cluster="shop",node="n1",task="crm"} 90' in text
    assert "polynya_capture_retries{" in text


def test_a_mirror_has_its_staleness_as_a_figure_of_its_task_and_of_the_cluster() -> None:
    def table(behind: float, *, stale: bool) -> dict[str, Any]:
        return {"behind_seconds": behind, "stale": stale, "failures": 0, "code": None}

    minutes: list[Minute] = []
    one = report(NOON)
    job = one["tasks"]['web"1']["jobs"]["x"]
    mirrored = {
        "sales": {"shop.users": table(0.0, stale=False), "shop.orders": table(90.5, stale=False)},
        "finance": {"shop.orders": table(1200.0, stale=True)},
    }
    for name, tables in mirrored.items():
        jobs = {name: {**job, "mirrors": tables}}
        one["tasks"][name] = {"state": "running", "jobs": jobs}

    MetricsOutlet(minutes.append).put(one)

    (minute,) = minutes
    assert value(minute, "MirrorBehindSeconds") == 1200.0
    assert (value(minute, "MirrorTables"), value(minute, "MirrorTablesStale")) == (3, 1)
    assert value(minute, "MirrorBehindSeconds", Task="sales") == 90.5
    assert value(minute, "MirrorTablesStale", Task="sales") == 0
    assert value(minute, "MirrorBehindSeconds", Task='web"1') is None
    text = PrometheusText().of(minute)
    assert (
        'polynya_task_mirror_behind_seconds{cluster="shop",node="n1",task="finance"} 1200' in text
    )
