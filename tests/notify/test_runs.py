"""A run of real tables: what people are told, what the server publishes, what stays of latency."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import USERS, write_project
from tests.server.test_metrics import Published
from tests.streams.rest.server import Asked, local_api

SECRET = "row-4711"


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_tells_of_quarantine_once_and_the_server_publishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    project = write_project(tmp_path, users=USERS)
    with (project / "polynya.yml").open("a") as file:
        file.write("latency: {}\n")
    landing = project / "landing" / "users"
    landing.mkdir(parents=True)
    right = '{"userId": 1, "sequenceNum": 1, "operation": "INSERT"}\n'
    (landing / "1.json").write_text(right + f'{{"userId": "{SECRET}\n')

    def taking(asked: Asked) -> Any:
        return {}

    def call(*words: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "polynya", *words, "--json", "-p", str(project)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    with local_api(taking) as api:
        (project / "notifications").mkdir()
        (project / "notifications" / "oncall.yml").write_text(
            "apiVersion: polynya/v1\nkind: notification\n"
            f'channels: {{hook: {{type: webhook, url: "{api.url}"}}}}\n'
            "rules: {all: {at_most_every: 0s}}\n"
        )
        call("run", "--once", "--apply", "always")
        call("run", "--once")
        opened = call("notification", "list")

    [asked] = api.asked
    body = json.loads(asked.body)
    assert [(one["kind"], one["cause"], one["name"], one["count"]) for one in body["notices"]] == [
        ("opened", "quarantine", "shop.users", 1)
    ]
    assert SECRET not in asked.body
    assert [one["told"] for one in opened if one["type"] == "notification.open"] == [
        ["oncall.all.hook"]
    ]

    client = TestClient(app_of(ServerState(project, None, SystemClock())))
    published = Published(client.get("/api/v1/metrics").text)
    assert published.values["polynya_dataset_records_total", "shop.users"] == 2.0
    assert published.values["polynya_dataset_quarantined_total", "shop.users"] == 1.0

    [step] = [one for one in call("latency", "--step", "1d") if one["type"] == "latency"]
    assert (step["dataset"], step["rows"]) == ("shop.users", 2)
    assert 0 < step["copy_seconds"]["p95"] < 600 and "apply_seconds" in step
    assert step["waiting_bytes"]["p95"] > 0, "its file waited before it was copied"
    # The table of latencies disturbs no other command.
    for words in (("status",), ("verify",), ("maintain",), ("views",)):
        assert not [one for one in call(*words) if one["type"] == "error"], words
