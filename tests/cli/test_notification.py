"""`polynya notification`, and failing channels in `polynya status`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.commands import run_command_line
from polynya.notify.conditions import after_event
from polynya.notify.decide import RouteState
from polynya.notify.memory import NotificationStore
from polynya.store.object_store import LocalObjectStore
from tests.notify.test_notifier import FAILED
from tests.projects import USERS, write_project
from tests.streams.rest.server import Asked, local_api

NOW = datetime(2026, 11, 29, 8, tzinfo=UTC)
SECRET = "s3cr3t"


@pytest.fixture
def call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    """Run a command on the project; its exit code and its JSON."""
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    monkeypatch.setenv("HOOK_KEY", SECRET)

    def run(*words: str) -> tuple[int, list[dict[str, Any]]]:
        code = run_command_line([*words, "--json", "-p", str(tmp_path)])
        said = capsys.readouterr()
        assert SECRET not in said.out + said.err
        return code, [json.loads(line) for line in (said.out + said.err).splitlines()][1:]

    return run


def write(folder: Path, url: str) -> None:
    write_project(folder, users=USERS)
    (folder / "notifications").mkdir()
    (folder / "notifications" / "oncall.yml").write_text(
        "apiVersion: polynya/v1\nkind: notification\nchannels:\n"
        f'  hook: {{type: webhook, url: "{url}", secret: "${{env:HOOK_KEY}}"}}\n'
        "rules: {all: {remind_every: 4h}, urgent: {severity: critical}}\n"
    )


def test_a_test_message_goes_through_each_channel_once(tmp_path: Path, call: Any) -> None:
    def taking(asked: Asked) -> Any:
        return {}

    with local_api(taking) as api:
        write(tmp_path, api.url)
        code, said = call("notification", "test", "oncall")

    assert (code, [one["channel"] for one in said]) == (0, ["oncall.hook"])
    [asked] = api.asked
    assert json.loads(asked.body)["test"] is True


def test_a_channel_that_does_not_work_is_an_error_with_its_code(tmp_path: Path, call: Any) -> None:
    write(tmp_path, "http://127.0.0.1:9")

    code, said = call("notification", "test", "oncall.hook")
    assert code != 0 and said[0]["code"] == "POLYNYA-NTF-004"
    code, said = call("notification", "show", "oncal")
    assert said[0]["code"] == "POLYNYA-NTF-006" and "`oncall`" in said[0]["fix"]


def test_rules_and_what_is_open_are_listed_and_shown(tmp_path: Path, call: Any) -> None:
    write(tmp_path, "http://127.0.0.1:9")
    (tmp_path / "warehouse").mkdir()
    store = NotificationStore(lambda: LocalObjectStore(tmp_path / "warehouse"))
    store.write(after_event({}, FAILED, NOW, lambda _: "users"), {})
    store.failing("oncall.all.hook", "n1", RouteState(failures=3, why="no answer"), NOW)

    _, said = call("notification", "list")
    assert [one.get("route") or one["name"] for one in said] == [
        "oncall.all.hook", "oncall.urgent.hook", "shop.users"
    ]  # fmt: skip
    _, said = call("notification", "show", "oncall.all")
    assert said[0]["rule"]["remind_every"] == "4h"
    _, said = call("status")
    assert [(one["type"], one.get("failures")) for one in said] == [
        ("notification.failing", 3), ("dataset.new", None)
    ]  # fmt: skip
