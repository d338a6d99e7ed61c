"""A whole life of a project through the API, in real processes with Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from polynya.cli.commands import run_command_line
from polynya.client import Operation, PolynyaClient
from polynya.server.operations.verbs import (
    MigrateParameters,
    NoParameters,
    ReloadParameters,
    ReplayParameters,
    RunParameters,
    VerifyParameters,
)
from polynya.store.signature import SIGNATURE, signature_of
from tests.server.operations.test_client import served
from tests.streams.rest.server import LocalApi, local_api

ONCALL = """apiVersion: polynya/v1
kind: notification
channels: {hook: {type: webhook, url: "URL", secret: "${env:HOOK_SECRET}"}}
rules: {all: {at_most_every: 0s}}
"""
NIGHTLY = """apiVersion: polynya/v1
kind: automation
name: checks
triggers:
  - {schedule: "* * * * *", time_zone: UTC}
  - {webhook: deploys, secret: "${env:HOOK_SECRET}"}
overlap: queue
actions: [{validate: true}, {verify: all}]
"""
SECRET = "of-the-hooks-0123456789"


def done(
    client: PolynyaClient, action: str, parameters: NoParameters | None = None
) -> tuple[Operation, list[dict[str, Any]]]:
    """The end of an operation, and what its command said."""
    lines: list[dict[str, Any]] = []
    end = client.start(action, parameters)
    for event in client.events(end.id):
        if isinstance(event, Operation):
            end = event
        else:
            lines.append(dict(event))
    return end, lines


def written(client: PolynyaClient, path: str, text: str) -> None:
    """Make a document of the project."""
    headers = {"If-None-Match": "*", "Content-Type": "text/plain"}
    headers |= {} if client.token is None else {"Authorization": f"Bearer {client.token}"}
    place = f"{client.url}/api/v1/documents/{path}"
    with urlopen(Request(place, text.encode(), headers, method="PUT")) as answer:
        assert json.load(answer)["written"] is True


def called(url: str) -> str:
    """The run that a signed call of the webhook starts."""
    headers = {SIGNATURE: signature_of(SECRET, datetime.now(UTC), b"deployed")}
    place = f"{url}/api/v1/automations/checks/webhooks/deploys"
    with urlopen(Request(place, b"deployed", headers)) as answer:
        assert answer.status == 202
        return str(json.load(answer)["run"])


def until(seconds: float, found: Callable[[], Any]) -> Any:
    """What is found at last."""
    ends = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < ends
        time.sleep(0.5)
    return value


def told(api: LocalApi) -> list[str]:
    """Which notices the receiver of notifications got."""
    bodies = [json.loads(asked.body) for asked in api.asked]
    return [f"{one['cause']} {one['kind']}" for body in bodies for one in body["notices"]]


@pytest.mark.spark
def test_validate_plan_migrate_run_replay_reload_schedule_and_notify_through_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made_shop(tmp_path, monkeypatch)
    with served(root) as url:
        live(url)


def made_shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose landing zone has good records and one without its key."""
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    root = folder / "shop"
    assert run_command_line(["init", str(root)]) == 0
    good = (root / "landing" / "users" / "0001.json").read_text().splitlines()
    without_key = {key: one for key, one in json.loads(good[0]).items() if key != "userId"}
    (root / "landing" / "users" / "0002.json").write_text(json.dumps(without_key) + "\n")
    return root


def live(url: str, token: str | None = None) -> None:
    """The whole life of the project of a server, as the owner of a token if it asks for one."""
    client = PolynyaClient(url, token)
    with local_api(lambda _: {}) as receiver:
        written(client, "notifications/oncall.yml", ONCALL.replace("URL", receiver.url))
        assert done(client, "validate")[0].exit_code == 0
        plan, _ = done(client, "plan")
        assert (plan.status, plan.exit_code) == ("succeeded", 3)
        refused, said = done(client, "migrate")
        assert refused.status == "failed", said
        migrated, said = done(client, "migrate", MigrateParameters(yes=True))
        assert migrated.status == "succeeded", said
        ran, said = done(client, "run", RunParameters(once=True, apply="always"))
        assert ran.status == "succeeded", said
        assert any(line.get("rows_quarantined") == 1 for line in said), said
        replayed, said = done(client, "quarantine-replay", ReplayParameters(all=True))
        # The record still has no key: nothing was replayed, and it stays.
        assert replayed.exit_code in {0, 1}, said
        whole = ReloadParameters(task="users", files="0001.json")
        reloaded, said = done(client, "reload", whole)
        assert reloaded.status == "succeeded", said
        verified, said = done(client, "verify", VerifyParameters())
        assert verified.status == "succeeded", said

        # The run told of the rejected record, and a test message goes through as well.
        assert told(receiver) == ["quarantine opened"]
        [sent] = client.ask("GET", "/notifications/history")["items"]
        assert (sent["result"], sent["cause"]) == ("sent", "quarantine")
        [tried] = client.ask_list("POST", "/notifications/test", {"name": "oncall"})
        assert tried["error"] is None

        # A run that goes on carries out the automation at its moments, and when it is called.
        written(client, "automations/checks.yml", NIGHTLY)
        client.ask("POST", "/automations/checks/pause")
        running = client.start("run", RunParameters(apply="always"))
        until(240, lambda: client.operation(running.id).progress)
        client.ask("POST", "/automations/checks/resume")
        path = "/automations/checks/runs"
        until(240, lambda: client.ask("GET", path)["items"])
        run = called(url)
        until(240, lambda: client.ask("GET", f"{path}/{run}")["ended"])
        client.cancel(running.id)
        ended = until(240, lambda: client.operation(running.id).ended)
        assert ended
        assert client.operation(running.id).status == "cancelled"
        runs = client.ask("GET", path)["items"]
        by_call = [one for one in runs if one["id"] == run]
        assert [(one["state"], len(one["steps"])) for one in by_call] == [("success", 2)]
        assert any("named it" in one["why"] for one in runs if one["state"] == "success")
