"""Spans at a collector of OpenTelemetry: steps, requests and operations, and what is not sent."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from polynya.model.errors import ConfigError
from polynya.observe import otlp, trace
from polynya.observe.events import Event
from polynya.observe.trace import count, span
from polynya.server.access.control import AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.lab.lab import Lab, put
from tests.observe.collector import Collector, collector
from tests.server.operations.test_client import PROJECT
from tests.server.operations.test_operations_api import ended

SERVER, INTERNAL = 2, 1
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the environment names."""
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.endpoint)
        yield found
        otlp.end()


def begun(**environment: str) -> list[Event]:
    """The events of a beginning in this environment."""
    events: list[Event] = []
    otlp.begin(environment, events.append)
    return events


def exporting(found: Collector, **more: str) -> None:
    assert begun(OTEL_EXPORTER_OTLP_ENDPOINT=found.endpoint, **more) == []


def codes(events: list[Event]) -> list[str]:
    return [str(event.as_json()["code"]) for event in events]


def test_a_step_arrives_with_its_phases_and_figures(taken: Collector) -> None:
    exporting(taken, POLYNYA_NODE_ID="n1")
    with span("step", dataset="shop.users"), span("copy"):
        count("files", 2)
        time.sleep(0.01)

    otlp.end()

    step, copy = taken.one("step"), taken.one("copy")
    assert (step.kind, step.parent, copy.parent, copy.trace) == (INTERNAL, "", step.id, step.trace)
    assert step.attributes == {"polynya.dataset": "shop.users", "polynya.files": 2}
    assert 0.01 <= copy.seconds <= step.seconds < 5
    assert (step.resource["service.name"], step.resource["service.instance.id"]) == (
        "polynya",
        "n1",
    )


def test_a_step_that_found_nothing_to_do_is_not_sent(taken: Collector) -> None:
    exporting(taken)
    with span("step", dataset="shop.users"), span("look"):
        pass
    with pytest.raises(ConfigError), span("step", dataset="shop.orders"), span("look"):
        raise ConfigError("POLYNYA-LAND-001", "the row of Ann is wrong")

    otlp.end()

    assert [one.attributes["polynya.dataset"] for one in taken.named("step")] == ["shop.orders"]


def test_a_failure_is_told_by_its_type_and_code_and_not_by_its_text(taken: Collector) -> None:
    exporting(taken)
    with pytest.raises(ConfigError), span("step"), span("copy"):
        raise ConfigError("POLYNYA-LAND-001", "the row of Ann is wrong")

    otlp.end()

    copy = taken.one("copy")
    assert copy.failed
    assert copy.attributes == {"error.type": "ConfigError", "polynya.code": "POLYNYA-LAND-001"}
    assert not [body for body in taken.bodies if b"Ann" in body]


def test_spans_of_a_process_belong_to_what_has_started_it(taken: Collector) -> None:
    exporting(taken, TRACEPARENT=TRACEPARENT)
    with span("step"), span("copy"):
        pass

    otlp.end()

    step = taken.one("step")
    assert (step.trace, step.parent) == (TRACE, CALLER)


def test_a_name_that_is_no_unicode_loses_no_batch(taken: Collector) -> None:
    exporting(taken)
    with span("step", dataset="shop.\udcff"), span("copy"):
        pass

    otlp.end()

    assert taken.one("step").attributes == {"polynya.dataset": "shop.?"}


@pytest.mark.parametrize(
    "environment",
    [{}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}],
)
def test_without_a_collector_or_where_it_is_turned_off_nothing_is_sent(
    taken: Collector, environment: dict[str, str]
) -> None:
    named = {"OTEL_EXPORTER_OTLP_ENDPOINT": taken.endpoint} if environment else {}

    assert begun(**named, **environment) == []

    with span("step"), span("copy"):
        pass
    assert (taken.bodies, trace.begun("work", None)) == ([], None)


def test_nothing_of_opentelemetry_is_loaded_without_a_collector() -> None:
    code = (
        "import os, sys; from polynya.observe import otlp; otlp.begin({}, print); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_collector_without_the_extra_is_a_warning_that_names_it(
    taken: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)

    (event,) = begun(OTEL_EXPORTER_OTLP_ENDPOINT="http://kim:hunter2@collector:4318/x?key=1")

    assert codes([event]) == ["POLYNYA-RUN-005"]
    assert "pip install 'polynya[otel]'" in event.text()
    assert "http://collector:4318/x" in event.text()
    assert "hunter2" not in event.text()


def test_settings_that_cannot_work_are_a_warning(taken: Collector) -> None:
    wrong = begun(OTEL_EXPORTER_OTLP_ENDPOINT=taken.endpoint, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")

    assert codes(wrong) == ["POLYNYA-RUN-005"]
    assert "the protocol is `grpc`" in wrong[0].text()


def test_a_collector_that_takes_nothing_is_told_once_and_stops_no_work(
    taken: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken.status = 400
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    events = begun(OTEL_EXPORTER_OTLP_ENDPOINT=taken.endpoint)
    for _ in range(3):
        with span("step"), span("copy"):
            pass
        time.sleep(0.1)

    otlp.end()

    assert len(taken.headers) >= 2
    assert codes(events) == ["POLYNYA-RUN-006"]


def test_a_collector_that_never_answers_holds_a_process_for_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setattr(otlp, "_CLOSE_SECONDS", 0.3)
        assert begun(OTEL_EXPORTER_OTLP_ENDPOINT=url) == []
        with span("step"), span("copy"):
            pass
        start = time.monotonic()

        otlp.end()

        assert time.monotonic() - start < 2


def test_a_request_and_the_operation_that_it_starts_are_one_trace(
    tmp_path: Path, taken: Collector
) -> None:
    (tmp_path / "polynya.yml").write_text(PROJECT)
    exporting(taken)
    app = app_of(ServerState(tmp_path, None, SystemClock()))
    guard(app, AccessSettings(loopback=True))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        headers = {"traceparent": TRACEPARENT}
        answer = client.post("/api/v1/actions/validate", json={}, headers=headers)
        assert answer.status_code == 202, answer.text
        ended(client, answer.json()["id"])
        client.get("/api/v1/datasets/shop.users/record?key=mail=ann@x.de")
        client.get("/nowhere/ann")
        client.get("/health")

    otlp.end()

    posted = taken.one("POST /api/v1/actions/validate")
    assert (posted.kind, posted.trace, posted.parent) == (SERVER, TRACE, CALLER)
    assert posted.attributes == {
        "http.request.method": "POST",
        "http.route": "/api/v1/actions/validate",
        "http.response.status_code": 202,
    }
    operation = taken.one("operation validate")
    assert (operation.trace, operation.parent) == (TRACE, posted.id)
    assert operation.attributes == {
        "polynya.operation": answer.json()["id"],
        "polynya.result": "succeeded",
        "polynya.exit_code": 0,
    }
    record = taken.one("GET /api/v1/datasets/{name}/record")
    assert record.attributes["http.response.status_code"] == 404
    assert str(record.attributes["polynya.code"]).startswith("POLYNYA-")
    assert taken.one("GET").attributes["http.response.status_code"] == 404
    assert not [one for one in taken.spans if "health" in one.name]
    assert not [body for body in taken.bodies if b"ann" in body]


@pytest.mark.spark
def test_a_run_sends_the_copy_and_the_apply_of_a_dataset(lab: Lab, taken: Collector) -> None:
    exporting(taken)

    users = lab.feed()
    users.copy(*(put(key, key, name="ann") for key in range(5)))
    users.apply()

    otlp.end()
    steps = [one for one in taken.named("step") if "(" not in one.attributes["polynya.dataset"]]
    assert {one.attributes["polynya.dataset"] for one in steps} == {f"{lab.schema}.users"}
    phases = {one.name: one for step in steps for one in taken.inside(step)}
    assert {"copy", "apply"} <= set(phases)
    for phase in ("copy", "apply"):
        assert "commit" in {one.name for one in taken.inside(phases[phase])}
    assert not [body for body in taken.bodies if b"ann" in body]
