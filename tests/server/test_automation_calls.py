"""Calls of automations over HTTP: signed webhooks, tokens, replays, rates and garbage. No JVM."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from polynya.automation.state import AutomationStore
from polynya.cli.commands import run_command_line
from polynya.cluster.automations import AutomationPlace, ClusterAutomations
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.network.prices import PriceWatch
from polynya.cluster.network.relay import Relay
from polynya.cluster.network.sign_of_life import AgentIdentity
from polynya.model.loader import load_project
from polynya.observe.events import discard
from polynya.server.access.actions import Action
from polynya.server.access.control import AccessSettings
from polynya.server.access.rates import Rate
from polynya.server.routes.automation_calls import CALLS, MOST_BYTES, STRANGERS
from polynya.store.jobs import Bounds, GroupFacts
from polynya.store.object_store import LocalObjectStore
from polynya.store.signature import SIGNATURE, signature_of
from tests.cluster.network.given import CLUSTER, Groups, Prices, Wire
from tests.cluster.test_automations import Recorded
from tests.server.access.served import ROLES, Served, served

SECRET = "of-the-hook-0123456789"
AUTOMATION = """apiVersion: polynya/v1
kind: automation
name: nightly
triggers:
  - {webhook: deploys, secret: "${env:HOOK_SECRET}"}
  - {webhook: short, secret: "${env:SHORT_SECRET}"}
  - {webhook: gone, secret: "${file:/nowhere/secret}"}
  - api: true
actions: [{validate: true}]
"""
OTHER = """apiVersion: polynya/v1
kind: automation
name: other
triggers: [{webhook: deploys, secret: "${env:OTHER_SECRET}"}]
actions: [{validate: true}]
"""
HOOK = "/api/v1/automations/nightly/webhooks/deploys"
CALLS_PATH = "/api/v1/automations/nightly/calls"
BODY = b'{"ref": "refs/heads/main"}'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    monkeypatch.setenv("SHORT_SECRET", "short")
    monkeypatch.setenv("OTHER_SECRET", SECRET[::-1])
    for folder in ("automations", "warehouse"):
        (tmp_path / folder).mkdir()
    (tmp_path / "automations" / "nightly.yml").write_text(AUTOMATION)
    (tmp_path / "automations" / "other.yml").write_text(OTHER)
    many = Rate(1e6, 1e6)
    return served(tmp_path, ROLES, AccessSettings(address_rate=many, person_rate=many))


def send(
    here: Served,
    path: str = HOOK,
    body: bytes = BODY,
    secret: str = SECRET,
    at: datetime | None = None,
    **headers: str,
) -> tuple[int, Any]:
    """The status and the answer of a call, signed now unless `at` is another time."""
    signed = {SIGNATURE: signature_of(secret, at or here.clock.now(), body)}
    answer = here.client.post(path, content=body, headers={**signed, **headers})
    assert SECRET not in answer.text
    return answer.status_code, answer.json()


def calls(here: Served) -> list[str]:
    """The runs that were called for and wait."""
    state, _ = AutomationStore(LocalObjectStore(here.root / "warehouse")).read("nightly")
    return [] if state.call is None else [state.call.run]


def test_a_signed_call_is_answered_with_its_run_and_a_line_in_the_audit_log(here: Served) -> None:
    status, taken = send(here)

    assert (status, calls(here)) == (202, [taken["run"]])
    token = here.token("vera@example.com", Action.VIEW_AUTOMATIONS)
    place = f"/api/v1/automations/nightly/runs/{taken['run']}"
    assert here.client.get(place, headers=token).json()["state"] == "waiting"
    line = here.control.audit.page(None, 1)[0]
    assert (line.who, line.action) == ("webhook:nightly/deploys", "automation.webhook")


def test_the_secret_of_a_webhook_is_in_no_answer(here: Served, capsys: Any) -> None:
    owner = here.token("ann@example.com")
    for path in ("automations", "automations/nightly", "automations/export", "openapi.json"):
        answer = here.client.get(f"/api/v1/{path}", headers=owner)
        assert answer.status_code == 200
        assert SECRET not in answer.text
    for words in (["show", "nightly"], ["list"], ["runs", "nightly"]):
        assert run_command_line(["automation", *words, "-p", str(here.root), "--json"]) == 0
    assert SECRET not in "".join(capsys.readouterr())


def test_a_call_that_was_recorded_starts_nothing(here: Served) -> None:
    assert send(here)[0] == 202
    status, refused = send(here)
    assert (status, refused["code"]) == (409, "POLYNYA-AUT-011")

    here.clock.advance(timedelta(seconds=299))
    assert send(here, at=here.clock.now() - timedelta(seconds=299))[0] == 409
    here.clock.advance(timedelta(seconds=2))
    status, refused = send(here, at=here.clock.now() - timedelta(seconds=301))
    assert (status, refused["code"]) == (401, "POLYNYA-AUT-010")


def test_a_call_of_a_clock_that_is_ahead_is_known_until_its_time_is_over(here: Served) -> None:
    at = here.clock.now() + timedelta(seconds=300)
    assert send(here, at=at)[0] == 202
    here.clock.advance(timedelta(seconds=599))
    assert send(here, at=at)[0] == 409
    here.clock.advance(timedelta(seconds=2))
    assert send(here, at=at)[0] == 401


@pytest.mark.parametrize(
    "change",
    [
        {"secret": SECRET[:-1]},
        {"secret": ""},
        {"secret": "${env:HOOK_SECRET}"},
        {"path": "/api/v1/automations/other/webhooks/deploys"},
        {"path": "/api/v1/automations/nightly/webhooks/none"},
        {"path": "/api/v1/automations/none/webhooks/deploys"},
        {"path": "/api/v1/automations/%00/webhooks/..deploys"},
    ],
)
def test_what_is_not_signed_with_the_secret_of_the_webhook_is_refused_alike(
    here: Served, change: dict[str, str]
) -> None:
    status, refused = send(here, **change)  # type: ignore[arg-type]

    assert (status, refused["code"]) == (401, "POLYNYA-AUT-010")
    assert "not of its secret" in refused["title"]
    assert calls(here) == []


def test_a_body_that_was_changed_or_is_too_large_is_refused(here: Served) -> None:
    headers = {SIGNATURE: signature_of(SECRET, here.clock.now(), BODY)}
    changed = here.client.post(HOOK, content=BODY + b" ", headers=headers)
    assert changed.status_code == 401
    assert send(here, body=b"\xff\0" * (MOST_BYTES // 2))[0] == 202
    assert send(here, body=b"x" * (MOST_BYTES + 1))[0] == 413


@pytest.mark.parametrize("header", ["", "x", "t=1,v1=", "t=99999999999999,v1=00", "\xff" * 60])
def test_garbage_in_place_of_a_signature_is_refused(here: Served, header: str) -> None:
    headers = {SIGNATURE: header.encode("latin-1")}
    answer = here.client.post(HOOK, content=BODY, headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 401
    assert here.client.post(HOOK, content=BODY).status_code == 401
    assert calls(here) == []


@pytest.mark.parametrize("name", ["short", "gone"])
def test_a_secret_that_is_weak_or_gone_lets_nobody_sign(here: Served, name: str) -> None:
    path = f"/api/v1/automations/nightly/webhooks/{name}"
    for secret in ("short", "", SECRET):
        status, refused = send(here, path, secret=secret)
        assert (status, refused["code"]) == (503, "POLYNYA-AUT-014")


def test_who_guesses_has_to_wait_and_who_calls_too_often_too(here: Served) -> None:
    guesses = [send(here, secret="wrong")[0] for _ in range(int(STRANGERS.at_once) + 1)]
    assert guesses == [401] * int(STRANGERS.at_once) + [429]

    # Who knows the secret is not held back by others with the same address.
    bodies = [str(n).encode() for n in range(int(CALLS.at_once) + 1)]
    statuses = [send(here, body=body)[0] for body in bodies]
    assert statuses == [202] * int(CALLS.at_once) + [429]


def test_a_session_of_a_browser_changes_nothing_about_a_webhook(here: Served) -> None:
    owner = here.session("ann@example.com")
    assert send(here, secret="wrong", **owner)[0] == 401
    assert send(here, **{"Origin": "https://evil.example"})[0] == 403


def test_a_program_calls_with_a_token_and_a_key(here: Served) -> None:
    headers = {**here.token("oleg@example.com", Action.CALL_AUTOMATION), "Idempotency-Key": "1"}

    first = here.client.post(CALLS_PATH, json={"reason": "deploy 7"}, headers=headers)
    again = here.client.post(CALLS_PATH, json={}, headers=headers).json()

    assert first.status_code == 202
    assert first.headers["location"].endswith(first.json()["run"])
    assert (again["run"], again["repeated"]) == (first.json()["run"], True)
    headers = {**here.token("max@example.com"), "Idempotency-Key": "1"}
    assert here.client.post(CALLS_PATH, json={}, headers=headers).json()["joined"] is True


@pytest.mark.parametrize(
    ("person", "action", "path", "body", "status"),
    [
        ("vera@example.com", Action.CALL_AUTOMATION, CALLS_PATH, {}, 403),
        ("oleg@example.com", Action.RUN, CALLS_PATH, {}, 403),
        ("oleg@example.com", Action.CALL_AUTOMATION, "/api/v1/automations/other/calls", {}, 409),
        ("oleg@example.com", Action.CALL_AUTOMATION, "/api/v1/automations/none/calls", {}, 404),
        ("oleg@example.com", Action.CALL_AUTOMATION, CALLS_PATH, {"reason": "a\nb"}, 422),
        ("oleg@example.com", Action.CALL_AUTOMATION, CALLS_PATH, {"actions": []}, 422),
    ],
)
def test_a_call_needs_the_action_and_the_trigger(
    here: Served, person: str, action: Action, path: str, body: Any, status: int
) -> None:
    answer = here.client.post(path, json=body, headers=here.token(person, action))
    assert answer.status_code == status, answer.text
    assert calls(here) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (AUTOMATION.replace("${env:HOOK_SECRET}", "written-out-0123456789"), "POLYNYA-CFG-035"),
        (AUTOMATION.replace("${env:SHORT_SECRET}", "${env:HOOK_SECRET}"), "POLYNYA-AUT-009"),
        (AUTOMATION.replace("webhook: short", "webhook: deploys"), "POLYNYA-CFG-"),
    ],
)
def test_validate_finds_webhooks_that_are_not_safe(
    here: Served, capsys: pytest.CaptureFixture[str], text: str, code: str
) -> None:
    (here.root / "automations" / "nightly.yml").write_text(text)
    assert run_command_line(["validate", "-p", str(here.root), "--json"]) == 2
    said = capsys.readouterr()
    assert code in said.out + said.err
    assert "automations/nightly.yml:" in said.out + said.err


def test_a_call_in_an_empty_cluster_gets_a_node_which_begins_its_run(
    here: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYNYA_COORDINATION", str(here.root / "coordination"))
    monkeypatch.setenv("POLYNYA_CLUSTER", CLUSTER)

    assert send(here)[0] == 202

    documents = DocumentStore(LocalObjectStore(here.root / "coordination"), CLUSTER, Random(1))
    group = Groups(Wire(), GroupFacts(Bounds(0, 2, 0)))
    identity = AgentIdentity("gateway", "token", "1")
    prices = PriceWatch(Prices(), here.clock, beside=lambda work: work())
    relay = Relay(
        CLUSTER, documents, group, identity, clock=here.clock, tell=discard, prices=prices
    )
    relay.turn()
    assert group.asked == ["want 1"]

    node = AutomationPlace("n1", here.root, str(here.root / "coordination"), CLUSTER)
    commands = Recorded()
    automations = ClusterAutomations(
        node, clock=here.clock, tell=discard, commands_of=lambda _: commands
    )
    automations.configure(load_project(here.root))
    automations.put({"state": "running", "sharing": {"leading": True, "leader": "n1"}})
    automations.look()
    for thread in threading.enumerate():
        if thread.name == "automation nightly":
            thread.join(20)
    assert commands.lines == ["validate"]


def test_a_call_that_cannot_wake_the_cluster_waits_and_its_repetition_tries_again(
    here: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here.root / "coordination").write_text("a file where the folder should be")
    monkeypatch.setenv("POLYNYA_COORDINATION", str(here.root / "coordination"))
    token = {**here.token("oleg@example.com", Action.CALL_AUTOMATION), "Idempotency-Key": "one"}

    answer = here.client.post(CALLS_PATH, json={}, headers=token)
    assert (answer.status_code, answer.json()["code"]) == (503, "POLYNYA-AUT-016")
    (run,) = calls(here)

    (here.root / "coordination").unlink()
    again = here.client.post(CALLS_PATH, json={}, headers=token)
    assert (again.status_code, again.json()["run"]) == (202, run)
    assert list((here.root / "coordination").rglob("wake"))
