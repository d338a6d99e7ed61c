"""The demo of streams in small form; and its judge sees damage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.packs.driver import ROOT, environment
from tests.streams_demo import __main__ as demo
from tests.streams_demo.judge import verdicts
from tests.streams_demo.messages import KINDS, Message, messages

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MARK = "POLYNYA_TEST_DEMO"


def order(number: int, user: dict[str, Any], *items: tuple[str, int], bad: str = "") -> Message:
    event = {
        "n": number,
        "type": "order",
        "at": at(number).isoformat(),
        "user": {**user, "name": "Ann", "address": {"city": " Oslo", "zip": "0150"}},
        "items": [{"sku": sku, "qty": qty} for sku, qty in items],
    }
    return Message(number, "user 7", json.dumps(event).encode(), event, bad)


def at(number: int) -> datetime:
    return BEGIN + timedelta(seconds=number)


GONE = {"n": 3, "type": "unsubscribe", "at": at(3).isoformat(), "user": {"id": 7}}
WRITTEN = [
    order(0, {"id": 7}, ("A-1", 2), ("B-7", 1)),
    Message(1, "user 7", b'{"n": 1, "ty', None, "cut"),
    order(2, {}, bad="no user"),
    Message(3, "user 7", b"gone", GONE),
    Message(4, "user 7", b"ping", {"n": 4, "type": "ping"}),
]


class Stored:
    """What has to be there after these messages, as rows of the tables; written by hand."""

    def __init__(self) -> None:
        self.landed = [message.value for message in WRITTEN]
        self.lines = [
            self._line(0, 7, 1, "A-1", 2),
            self._line(0, 7, 2, "B-7", 1),
            self._line(2, None, None, None, None),
            self._refused("bad_json", WRITTEN[1]),
        ]
        self.users = [
            self._user("prior", "I", 0, 3),
            self._user("current", "D", 3, None),
            self._refused("bad_json", WRITTEN[1]),
            self._refused("null_key", WRITTEN[2]),
        ]

    def wrong(self) -> dict[str, tuple[int, int, int]]:
        """Lost, doubled, wrong, where one of them is not 0."""
        found = verdicts("s", WRITTEN, self.landed, self.lines, self.users)
        return {
            one.name.removeprefix("s "): (one.lost, one.doubled, one.wrong)
            for one in found
            if not one.holds
        }

    def _line(self, n: int, user: int | None, *item: Any) -> dict[str, Any]:
        names = ("line", "sku", "qty")
        head = {"hdr__partition": "current", "n": n, "user_id": user, "city": "OSLO"}
        return head | dict(zip(names, item, strict=True))

    def _user(self, part: str, op: str, begin: int, end: int | None) -> dict[str, Any]:
        return {
            "hdr__partition": part,
            "hdr__operation": op,
            "hdr__from_timestamp": at(begin),
            "hdr__to_timestamp": None if end is None else at(end),
            "user_id": 7,
            "city": "OSLO",
            "n": 0,
            "user_name": "Ann",
            "user_address_city": " Oslo",
            "user_address_zip": "0150",
        }

    def _refused(self, rule: str, message: Message) -> dict[str, Any]:
        raw = b'{"source": "kafka"}\n' + message.value
        return {"hdr__partition": "quarantine", "hdr__quarantine": {"rule": rule, "raw": raw}}


def change(rows: list[dict[str, Any]], at: int, **values: Any) -> None:
    rows[at] = {**rows[at], **values}


def test_the_judge_finds_nothing_wrong_with_what_has_to_be_there() -> None:
    assert Stored().wrong() == {}


@pytest.mark.parametrize(
    ("plant", "seen"),
    [
        (lambda s: s.landed.pop(4), {"landed messages": (1, 0, 0)}),
        (lambda s: s.landed.append(b"gone"), {"landed messages": (0, 1, 0)}),
        (lambda s: s.lines.pop(1), {"lines, appended": (1, 0, 0)}),
        (lambda s: s.lines.append(s.lines[1]), {"lines, appended": (0, 1, 0)}),
        (lambda s: change(s.lines, 0, qty=3), {"lines, appended": (1, 0, 1)}),
        (lambda s: s.lines.pop(3), {"lines, quarantine": (1, 0, 0)}),
        (lambda s: s.lines.append(s.users[3]), {"lines, quarantine": (0, 0, 1)}),
        (lambda s: s.users.append(s.users[3]), {"users, quarantine": (0, 1, 0)}),
        (lambda s: s.users.pop(0), {"users, history": (1, 0, 0)}),
        (lambda s: s.users.append(s.users[0]), {"users, history": (0, 1, 0)}),
        (lambda s: change(s.users, 0, hdr__to_timestamp=at(2)), {"users, history": (1, 0, 1)}),
        (lambda s: change(s.users, 0, hdr__operation="U"), {"users, history": (1, 0, 1)}),
        (
            lambda s: change(s.users, 1, hdr__operation="U"),
            {"users, current": (1, 0, 1), "users, history": (1, 0, 1)},
        ),
        (
            lambda s: s.users.append({"hdr__partition": "changes", "user_id": 7, "n": 0}),
            {"users, current": (0, 0, 1), "users, history": (0, 0, 1)},
        ),
    ],
)
def test_the_judge_sees_what_is_lost_doubled_or_wrong(
    plant: Callable[[Stored], object], seen: dict[str, tuple[int, int, int]]
) -> None:
    stored = Stored()

    plant(stored)

    assert stored.wrong() == seen


def test_messages_of_a_user_keep_their_order_and_every_kind_is_among_them() -> None:
    groups = [*islice(messages(1, 25), 60)]

    for group in groups:
        assert len({message.key for message in group}) == 25
    all_of_them = [*chain(*groups)]
    assert [message.number for message in all_of_them] == list(range(1500))
    assert len({message.value for message in all_of_them}) == 1500
    assert {message.bad for message in all_of_them} == {"", *KINDS.values()}
    meant = [message.meaning for message in all_of_them if message.meaning is not None]
    assert {event["type"] for event in meant} == {"order", "ping", "unsubscribe"}


@pytest.mark.spark
@pytest.mark.slow
def test_killed_servers_and_processes_lose_and_double_nothing(tmp_path: Path) -> None:
    said: list[str] = []

    assert demo.tell(tmp_path / "demo", rate=20, out=said.append) == 0, said

    text = "\n".join(said)
    assert "4 faults" in text
    assert "0 lost, 0 doubled, 0 wrong" in text


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_leaves_nothing_running(tmp_path: Path) -> None:
    line = [sys.executable, "-u", "-m", "tests.streams_demo", "--folder", str(tmp_path / "demo")]
    process = subprocess.Popen(
        line, cwd=ROOT, env={**environment(), MARK: str(tmp_path)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for said in process.stdout:
        if "polynya run" in said:
            break
    time.sleep(3)
    assert len(marked(tmp_path)) >= 4

    os.killpg(process.pid, signal.SIGINT)

    rest = process.stdout.read()
    assert process.wait(120) == 130, rest
    deadline = time.monotonic() + 20
    while marked(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert marked(tmp_path) == []


def marked(folder: Path) -> list[int]:
    """Processes that the demo started, itself included: they have its environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={folder}".encode() in (
                entry / "environ"
            ).read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
