"""Notifications through the API: rules, what is open, what was told, a test message. No JVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.notify.conditions import Condition, Key, after_event
from polynya.notify.decide import Notice, NoticeKind, RouteState, Told
from polynya.notify.history import NoticeResult, NotificationHistory
from polynya.notify.memory import NotificationStore
from polynya.store.object_store import LocalObjectStore
from tests.notify.test_notifier import FAILED
from tests.projects import USERS
from tests.server.access.served import Served, served
from tests.streams.rest.server import Asked, local_api

API = "/api/v1/notifications"
SECRET = "s3cr3t"
ROUTE = "oncall.all.hook"
ONCALL = """apiVersion: polynya/v1
kind: notification
channels:
  hook: {type: webhook, url: "URL", secret: "${env:HOOK_KEY}"}
rules: {all: {remind_every: 4h}, urgent: {severity: critical}}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    monkeypatch.setenv("HOOK_KEY", SECRET)
    for folder in ("notifications", "tasks", "warehouse"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tasks" / "users.yml").write_text(USERS)
    write(tmp_path, "http://127.0.0.1:9")
    return served(tmp_path, None)


def write(root: Path, url: str) -> None:
    (root / "notifications" / "oncall.yml").write_text(ONCALL.replace("URL", url))


@pytest.fixture
def ask(here: Served) -> Callable[..., Any]:
    def asked(path: str, method: str = "GET", status: int = 200, **more: Any) -> Any:
        answer = here.client.request(method, f"{API}{path}", **more)
        assert answer.status_code == status, answer.text
        assert SECRET not in answer.text
        return answer.json()

    return asked


def store_of(here: Served) -> NotificationStore:
    return NotificationStore(lambda: LocalObjectStore(here.root / "warehouse"))


def test_rules_have_their_settings_and_channels_that_fail(here: Served, ask) -> None:
    failure = RouteState(failures=3, why="no answer")
    store_of(here).failing(ROUTE, "n1", failure, here.clock.now())

    page = ask("/rules?limit=1")
    (rule,) = page["items"]
    (other,) = ask(f"/rules?cursor={page['next']}")["items"]

    assert (rule["route"], other["route"]) == (ROUTE, "oncall.urgent.hook")
    assert rule["rule_settings"]["remind_every"] == "4h"
    assert rule["channel_settings"]["secret"].strip("*") == ""
    assert (rule["failing"][0]["failures"], other["failing"]) == (3, [])


def test_what_is_open_says_who_was_told(here: Served, ask) -> None:
    now = here.clock.now()
    conditions = after_event({}, FAILED, now, lambda _: "users")
    ((key, condition),) = conditions.items()
    store_of(here).write(conditions, {ROUTE: {key: Told(now, condition)}})

    (one,) = ask("/open")["items"]

    assert (one["name"], one["cause"], one["task"]) == ("shop.users", "failed", "users")
    assert [told["route"] for told in one["told"]] == [ROUTE]


def test_history_comes_in_pages_and_by_result(here: Served, ask) -> None:
    history = NotificationHistory(store_of(here).opened)
    results: list[tuple[NoticeResult, NoticeKind]] = [
        ("sent", "opened"), ("held", "resolved"), ("sent", "resolved")
    ]  # fmt: skip
    for minutes, (result, kind) in enumerate(results):
        at = here.clock.now() + timedelta(minutes=minutes)
        key = Key("failed", "shop.users\u202e<b>")
        condition = Condition(key, "users", "error", "it failed", at, at)
        change = (at, ROUTE, result, "because", None, Notice(kind, condition, "because"))
        history.write("n1", [change, change], at)

    first = ask("/history?limit=3")
    rest = ask("/history", params={"cursor": first["next"]})

    listed = [one["result"] for one in (*first["items"], *rest["items"])]
    assert listed == ["sent", "sent", "held", "held", "sent", "sent"]
    assert rest["next"] is None
    assert len(ask("/history?result=held")["items"]) == 2
    assert ask("/history?name=shop.orders")["items"] == []
    for cursor in ("x", "../../x:0", "20260101/../../a.json:0"):
        ask("/history", status=422, params={"cursor": cursor})


def test_a_test_message_says_which_channel_did_not_take_it(here: Served, ask) -> None:
    (failed,) = ask("/test", "POST", json={"name": "oncall"})
    with local_api(lambda _: {}) as api:
        write(here.root, api.url)
        (sent,) = ask("/test", "POST", json={"name": "oncall.all"})
        asked: list[Asked] = list(api.asked)

    assert (failed["channel"], failed["error"]["code"]) == ("oncall.hook", "POLYNYA-NTF-004")
    assert sent["error"] is None
    assert json.loads(asked[0].body)["test"] is True
    assert ask("/test", "POST", 422, json={"name": "none"})["code"] == "POLYNYA-NTF-006"
