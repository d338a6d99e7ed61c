"""A process that notifies: killed and started again, without its store, with channels that fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.model.error_catalogue.notifications import APPRISE_MISSING, NOTIFICATION_NOT_SENT
from polynya.model.loader import LoadedProject, load_project
from polynya.notify.decide import ATTEMPTS, ObjectLag
from polynya.notify.history import FOLDER as HISTORY
from polynya.notify.history import NotificationHistory
from polynya.notify.memory import NotificationStore
from polynya.notify.message import NotificationMessage
from polynya.notify.notifier import Notifier
from polynya.observe.engine import BatchCopied, UnitFailed, UnitRecovered
from polynya.observe.events import Event
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.projects import USERS, write_project

FAILED = UnitFailed(subject="shop.users", error=APPRISE_MISSING())
RECOVERED = UnitRecovered(subject="shop.users")
RULE = """\
apiVersion: polynya/v1
kind: notification
channels:
  ops: {type: webhook, url: "https://hooks.example.com/a"}
  boss: {type: webhook, url: "https://hooks.example.com/b"}
rules:
  all: {at_most_every: 0s}
"""


def project(tmp_path: Path, rule: str = RULE) -> LoadedProject:
    folder = write_project(tmp_path, users=USERS)
    (folder / "notifications").mkdir(exist_ok=True)
    (folder / "notifications" / "oncall.yml").write_text(rule)
    return load_project(folder)


class World:
    """What outlasts a process: the project, the time, the warehouse, and what people got."""

    def __init__(self, folder: Path, rule: str = RULE) -> None:
        self.project = project(folder, rule)
        self.clock = FakeClock()
        self.objects = MemoryObjectStore()
        self.got: list[str] = []
        self.messages: list[NotificationMessage] = []
        self.events: list[Event] = []
        self.broken: set[str] = set()
        self.hanging = threading.Event()

    def process(self, **more: Any) -> Notifier:
        """A new process that runs the task."""
        values: dict[str, Any] = {
            "tasks": ["users"], "store": NotificationStore(lambda: self.objects), **more
        }  # fmt: skip
        return Notifier(
            self.project, clock=self.clock, tell=self.events.append, name="n1",
            sender_of=self.sender_of, **values,
        )  # fmt: skip

    def sender_of(self, name: str, channel: Any, access: Any) -> Callable[..., None]:
        def send(message: NotificationMessage, now: datetime) -> None:
            if name in self.broken:
                raise NOTIFICATION_NOT_SENT(channel=name, why="no answer")
            if name == "oncall.hangs":
                self.hanging.wait(30)
            self.messages.append(message)
            self.got += [f"{name} {one['kind']} {one['name']}" for one in message.body["notices"]]

        return send

    def turn(self, notifier: Notifier, *events: Event, minutes: float = 1) -> list[str]:
        """Let things happen and time pass, and return what people got."""
        before = len(self.got)
        for event in events:
            notifier.take(event)
        self.clock.advance(timedelta(minutes=minutes))
        notifier.turn()
        return sorted(self.got[before:])

    def open(self) -> list[str]:
        """The objects of what is open and of channels that fail."""
        return [path for path in self.objects.objects if not path.startswith(HISTORY)]

    def history(self) -> list[tuple[str, str, str, str]]:
        """What became of each notice, the oldest first: route, result, kind and reason."""
        found, _ = NotificationHistory(lambda: self.objects).page(1000)
        return [
            (one.route.removeprefix("oncall."), one.result, one.kind, one.reason)
            for one in reversed(found)
        ]

    def told(self) -> list[str]:
        return [event.type for event in self.events]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


OPENED = ["oncall.boss opened shop.users", "oncall.ops opened shop.users"]
RESOLVED = ["oncall.boss resolved shop.users", "oncall.ops resolved shop.users"]


def test_each_channel_is_told_once_and_at_the_end(world: World) -> None:
    one = world.process()

    assert world.turn(one, FAILED) == OPENED
    assert world.turn(one, FAILED) == []
    assert world.turn(one, RECOVERED) == RESOLVED
    assert world.turn(one) == []
    assert world.open() == []


def test_what_became_of_each_notice_is_kept_with_its_reason(tmp_path: Path) -> None:
    rule = RULE.replace('  boss: {type: webhook, url: "https://hooks.example.com/b"}\n', "")
    world = World(tmp_path, rule.replace("0s", "10m"))
    one = world.process()
    world.turn(one, FAILED)
    world.turn(one, RECOVERED)
    world.turn(one, FAILED)
    world.turn(one, RECOVERED, minutes=20)
    world.broken = {"oncall.ops"}
    world.turn(one, FAILED, minutes=20)
    for _ in range(ATTEMPTS - 1):
        world.turn(one, minutes=31)

    kinds = [(result, kind) for _, result, kind, _ in world.history()]
    assert kinds == [
        ("sent", "opened"),
        ("held", "resolved"),
        ("dropped", "resolved"),
        ("sent", "resolved"),
        ("failed", "opened"),
        ("given_up", "opened"),
    ]
    reasons = [reason for *_, reason in world.history()]
    assert reasons[:3] == ["it was not told yet", "`at_most_every`", "it began again"]
    assert "no answer" in reasons[4]


def test_what_was_over_before_it_could_be_sent_is_kept_as_dropped(tmp_path: Path) -> None:
    every_minute = '{rrule: "FREQ=MINUTELY", duration: 2m, time_zone: UTC}'
    world = World(tmp_path, RULE.replace("0s}", f"0s, to: [ops], quiet: [{every_minute}]}}"))
    one = world.process()
    assert world.turn(one, FAILED) == []
    assert world.turn(one, RECOVERED) == []

    held, dropped = world.history()
    assert held == ("all.ops", "held", "opened", "quiet hours")
    assert dropped == ("all.ops", "dropped", "opened", "it was over before it could be sent")


def test_history_is_kept_for_thirty_days(world: World) -> None:
    one = world.process()
    world.turn(one, FAILED)
    world.turn(one, RECOVERED, minutes=60 * 24 * 29)
    assert len(world.history()) == 4
    world.turn(one, FAILED, minutes=60 * 24 * 2)

    assert [kind for _, _, kind, _ in world.history()] == ["resolved"] * 2 + ["opened"] * 2


def test_damaged_history_hides_nothing_else(world: World) -> None:
    world.turn(world.process(), FAILED)
    for name, data in {"0-a": b"{", "1-b": b'{"entries": [{}]}', "2-c": b"\xff"}.items():
        world.objects.put(f"{HISTORY}/99990101/{name}.json", data)

    assert len(world.history()) == 2


def test_a_process_that_was_killed_is_followed_by_one_that_neither_repeats_nor_forgets(
    world: World,
) -> None:
    world.turn(world.process(), FAILED)

    again = world.process()
    assert world.turn(again, FAILED) == []
    third = world.process()
    third.ended("shop.users", "users", None)
    assert world.turn(third) == RESOLVED


def test_what_a_killed_process_had_no_time_to_tell_is_told_by_the_next(world: World) -> None:
    world.broken = {"oncall.ops", "oncall.boss"}
    assert world.turn(world.process(), FAILED) == []

    world.broken = set()
    assert world.turn(world.process()) == OPENED


@contextmanager
def dying(where: str) -> Iterator[None]:
    """A process that dies when it writes what was told."""

    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"polynya.notify.notifier.{where}", killed)
        with pytest.raises(Killed):
            yield


def test_a_process_killed_before_it_sends_forgets_nothing(world: World) -> None:
    with dying("decide"):
        world.turn(world.process(), FAILED)

    assert world.turn(world.process()) == OPENED


def test_a_message_sent_by_a_killed_process_comes_again_with_the_same_id(world: World) -> None:
    # Between the answer of a server and the note of it nothing can be known for sure.
    one = world.process()
    with dying("after_delivery"):
        world.turn(one, FAILED)

    assert sorted(world.got) == OPENED
    world.turn(world.process())
    ids = {message.id for message in world.messages}
    assert len(world.messages) == 4 and len(ids) == 2


def test_a_channel_that_fails_keeps_no_other_from_being_used_and_is_shown(world: World) -> None:
    world.broken = {"oncall.ops"}
    one, store = world.process(), NotificationStore(lambda: world.objects)

    assert world.turn(one, FAILED) == [OPENED[0]]
    assert world.turn(one) == []
    [shown] = store.failing_channels()
    assert (shown.route, shown.failures) == ("oncall.all.ops", 2)
    assert shown.why == "POLYNYA-NTF-004: no answer"
    assert world.told().count("notification.failed") == 1

    world.broken = set()
    assert world.turn(one, minutes=5) == [OPENED[1]]
    assert store.failing_channels() == []


def test_a_message_is_given_up_and_the_next_one_is_sent(world: World) -> None:
    world.broken = {"oncall.ops"}
    one = world.process()
    world.turn(one, FAILED)
    for _ in range(ATTEMPTS):
        world.turn(one, minutes=31)

    assert world.told().count("notification.given_up") == 1
    world.broken = set()
    assert world.turn(one, RECOVERED, minutes=31) == RESOLVED


def test_a_server_that_never_answers_delays_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polynya.notify.notifier.EVERY_SECONDS", 0.1)
    world = World(tmp_path, RULE.replace("  boss:", "  hangs:"))
    one = world.process()

    assert world.turn(one, FAILED) == ["oncall.ops opened shop.users"]
    assert world.turn(one, RECOVERED) == ["oncall.ops resolved shop.users"]
    world.hanging.set()


def test_a_store_that_fails_is_an_event_and_stops_no_message(world: World) -> None:
    def refusing(*_: Any) -> Any:
        raise OSError("no room")

    world.objects.put = world.objects.list = refusing  # type: ignore[method-assign]
    one = world.process()

    assert world.turn(one, FAILED) == OPENED
    assert world.turn(one, FAILED) == []
    assert world.told().count("notification.memory") == 1


@pytest.mark.parametrize("data", [b"", b"{", b'{"name": 1}', b'{"format": 9, "name": "x"}'])
def test_a_damaged_object_counts_as_none(world: World, data: bytes) -> None:
    world.turn(world.process(), FAILED)
    [path] = world.open()
    world.objects.put(path, data)

    assert world.turn(world.process(), FAILED) == OPENED


def test_a_rule_that_is_removed_tells_nothing_more(world: World, tmp_path: Path) -> None:
    one = world.process()
    world.turn(one, FAILED)

    one.configure(project(tmp_path, RULE.replace("  all:", "  others:")))
    assert world.turn(one) == OPENED
    assert world.turn(one, RECOVERED) == RESOLVED


def test_a_broken_file_stays_as_it_was(world: World, tmp_path: Path) -> None:
    one = world.process()
    (tmp_path / "notifications" / "oncall.yml").write_text(RULE.replace("all:", "all: {to: x}, b:"))
    broken = load_project(tmp_path, tolerant=True)

    assert broken.errors and broken.notifications == ()
    one.configure(broken)
    assert world.turn(one, FAILED) == OPENED


def test_nothing_is_read_or_written_without_a_rule(world: World) -> None:
    world.project = load_project(write_project(world.project.directory / "other", users=USERS))

    def refusing() -> Any:
        raise AssertionError("no request without notifications")

    one = world.process(store=NotificationStore(refusing))
    assert world.turn(one, FAILED) == []


def test_a_run_tells_what_waits_for_too_long(world: World) -> None:
    waiting = {"shop.users": ObjectLag("users", 3600.0)}
    one = world.process(look=lambda: waiting)

    assert world.turn(one) == OPENED
    waiting["shop.users"] = ObjectLag("users", 0.0)
    assert world.turn(world.process(look=lambda: waiting)) == RESOLVED


def report(at: datetime, **states: str) -> dict[str, Any]:
    """The report of a node of a cluster with a unit in each state."""
    quiet = {"streams": {}, "captures": {}, "mirrors": {}, "lag_seconds": 0.0, "held": False}
    jobs = {
        f"shop.{name}": {
            **quiet, "state": state, "reason": "POLYNYA-NTF-003: gone",
            "failed_in_a_row": int(state == "waiting"),
        }
        for name, state in states.items()
    }  # fmt: skip
    sharing = {"leading": False, "leader": "n9", "troubles": [], "stream_trouble": None,
               "unowned": None}  # fmt: skip
    return {"state": "running", "at": at, "cluster": "main", "node": "n1", "sharing": sharing,
            "configuration": {"errors": [], "unread": None},
            "tasks": {"users": {"jobs": jobs}}}  # fmt: skip


def test_a_unit_that_moves_is_told_by_its_owner_only(world: World) -> None:
    first, second = world.process(tasks=None), world.process(tasks=None)

    def turns(first_is: str, second_is: str) -> list[str]:
        first.put(report(world.clock.now(), users=first_is))
        second.put(report(world.clock.now(), users=second_is))
        return sorted(world.turn(first) + world.turn(second))

    assert turns("waiting", "elsewhere") == OPENED
    assert turns("elsewhere", "waiting") == []
    assert turns("elsewhere", "running") == RESOLVED
    assert turns("waiting", "elsewhere") == OPENED
    assert world.turn(second) == []


def test_a_unit_that_leaves_the_configuration_leaves_nothing_behind(world: World) -> None:
    one = world.process(tasks=None)
    one.put(report(world.clock.now(), users="waiting"))
    assert world.turn(one) == OPENED

    one.put(report(world.clock.now(), orders="running"))
    assert world.turn(one) == []
    assert world.open() == []


def test_an_agent_tells_nothing_before_it_knows_its_units(world: World) -> None:
    world.turn(world.process(), FAILED)

    again = world.process(tasks=None)
    assert world.turn(again, FAILED) == []
    again.put(report(world.clock.now(), users="waiting"))
    assert world.turn(again) == []


def test_a_message_holds_no_row_and_no_error_text(world: World) -> None:
    error = APPRISE_MISSING("value row-4711 of column iban", where="row-4711", why="row-4711")
    rejected = BatchCopied(
        subject="shop.users", rows_in=2, rows_out=1, rows_filtered=0, rows_quarantined=1, files=1,
        seconds=1.0,
    )  # fmt: skip
    world.turn(world.process(), UnitFailed(subject="shop.users", error=error), rejected)

    assert len(world.messages) == 2
    for message in world.messages:
        assert "row-4711" not in repr(message)
        assert len(message.body["notices"]) == 2


def test_a_process_that_ends_sends_what_is_due(world: World) -> None:
    one = world.process()
    with one.running():
        one.take(FAILED)

    assert sorted(world.got) == OPENED
