"""Runs of automations: one at a time, logged step by step, and never done twice."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from polynya.automation.commands import ActionEnd, Surroundings, arguments_of
from polynya.automation.due import TaskEnds
from polynya.automation.runner import AutomationRunner
from polynya.automation.state import FOLDER, AutomationStore
from polynya.model.errors import ConflictError, OperationError
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.automation.automations import VALIDATE, automation

GOOD = ActionEnd(success=True)
BAD = ActionEnd(success=False, code="POLYNYA-TST-001", message="it broke")
EVERY_HOUR = {"schedule": "0 * * * *"}


class Killed(BaseException):
    """The process of a run ends."""


class Scripted:
    """Commands that end as a script says; `None` ends the process, a callable is called."""

    def __init__(self, *ends):
        self.ends, self.called = list(ends), []

    def run(self, arguments, limit, goes_on):
        self.called.append(" ".join(arguments))
        end = self.ends.pop(0) if self.ends else GOOD
        if end is None:
            raise Killed
        if callable(end):
            end()
            return GOOD if goes_on() else ActionEnd(success=False, stopped=True)
        return end


class Place:
    """A warehouse and a landing zone with processes that look at one automation."""

    def __init__(self, folder, **settings):
        self.one = automation(**{"triggers": [EVERY_HOUR], **settings})
        self.landing = LocalObjectStore(folder / "landing")
        self.landing.root.mkdir()
        (folder / "warehouse").mkdir()
        self.store = AutomationStore(LocalObjectStore(folder / "warehouse"))
        self.folder, self.clock, self.told = folder, FakeClock(), []

    def process(self, *ends):
        self.commands = Scripted(*ends)
        return AutomationRunner(
            automations=[self.one], store=self.store, landing=self.landing, directory=self.folder,
            commands=self.commands, clock=self.clock, tell=self.told.append,
            stop=threading.Event(),
        )  # fmt: skip

    def look(self, runner):
        failed = []
        runner.carry_out_due(failed.append)
        assert failed == []

    def hour(self):
        self.clock.advance(timedelta(seconds=3600))

    def runs(self):
        return [
            (run.state, [step.state for step in run.steps]) for run in self.store.runs("nightly")
        ]


@pytest.fixture
def place(tmp_path):
    return lambda **settings: Place(tmp_path, **settings)


def test_actions_run_in_order_with_their_conditions(place):
    here = place(
        actions=[
            VALIDATE,
            {**VALIDATE, "when": "failure"},
            VALIDATE,
            {**VALIDATE, "when": "always"},
        ]
    )
    runner = here.process(BAD)
    here.look(runner)
    here.hour()
    here.look(runner)

    assert here.runs() == [("failure", ["failure", "success", "skipped", "success"])]
    assert (here.told[0].code, here.told[0].message) == ("POLYNYA-TST-001", "it broke")


def test_a_failed_action_is_tried_again_after_pauses_that_double(place):
    here = place(actions=[{**VALIDATE, "retries": 3, "pause": "10s"}])
    runner = here.process(BAD, BAD, GOOD)
    before = here.clock.now()

    runner.carry_out("nightly", runner.begin_by_hand("nightly", "by hand"))

    (run,) = here.store.runs("nightly")
    assert (run.state, run.steps[0].tries) == ("success", 3)
    assert here.clock.now() - before == timedelta(seconds=30)


def test_of_two_processes_one_starts_the_run_of_a_moment(place):
    here = place()
    first, second = here.process(), here.process()
    for runner in (first, second):
        here.look(runner)
    here.hour()
    barrier = threading.Barrier(2)

    def look(runner):
        barrier.wait()
        here.look(runner)

    threads = [threading.Thread(target=look, args=[runner]) for runner in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert here.runs() == [("success", ["success"])]


@pytest.mark.parametrize(
    ("ends", "steps"),
    [([None], ["unknown"]), ([GOOD, None], ["success", "unknown"])],
)
def test_a_killed_run_is_reported_and_not_done_again(place, ends, steps):
    here = place(actions=[VALIDATE, VALIDATE])
    runner = here.process(*ends)
    here.look(runner)
    here.hour()
    with pytest.raises(Killed):
        here.look(runner)
    after = here.process()
    here.look(after)
    assert here.runs() == [("running", [*steps[:-1], "running"])]

    here.clock.advance(timedelta(seconds=301))
    here.look(after)

    assert here.runs() == [("interrupted", steps)]
    assert [(run.state, run.code) for run in here.told] == [("interrupted", "POLYNYA-AUT-006")]
    assert after._commands.called == []


def test_a_kill_before_the_first_action_is_reported(place):
    here = place()
    here.process().begin_by_hand("nightly", "by hand")
    here.clock.advance(timedelta(seconds=301))

    here.look(here.process())

    assert here.runs() == [("interrupted", [])]


def test_a_kill_after_the_last_action_leaves_a_run_that_has_ended(place, monkeypatch):
    here = place()
    runner = here.process()
    run = runner.begin_by_hand("nightly", "by hand")
    monkeypatch.setattr(here.store, "forget", lambda *_: None)
    state = here.store.read("nightly")[0]
    runner.carry_out("nightly", run)
    here.store.change("nightly", lambda _: state)
    here.clock.advance(timedelta(seconds=301))

    here.look(here.process())

    assert here.runs() == [("success", ["success"])]
    assert here.store.read("nightly")[0].running is None


def test_a_process_that_counted_as_dead_does_nothing_more(place):
    here = place(actions=[VALIDATE, VALIDATE])
    other = here.process()
    asleep = here.process(lambda: (here.clock.advance(timedelta(seconds=301)), here.look(other)))
    mine = here.commands

    asleep.carry_out("nightly", asleep.begin_by_hand("nightly", "by hand"))

    assert here.runs() == [("interrupted", ["unknown"])]
    assert len(mine.called) == 1


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("skip", ["left_out", "success"]),
        ("queue", ["success", "success"]),
        ("cancel", ["cancelled", "success"]),
    ],
)
def test_a_trigger_during_a_run_follows_the_policy(place, overlap, expected):
    here = place(overlap=overlap)
    other = here.process()
    here.look(other)

    def during():
        # The next moment comes, and another process sees it; this one shows signs of life.
        here.clock.advance(timedelta(seconds=200))
        here.look(other)

    runner = here.process(during)
    here.clock.advance(timedelta(seconds=3500))
    runner.carry_out("nightly", runner.begin_by_hand("nightly", "by hand"))
    here.look(runner)

    assert sorted(state for state, _ in here.runs()) == sorted(expected)


def test_a_run_by_hand_is_refused_during_a_run(place):
    runner = place().process()
    runner.begin_by_hand("nightly", "by hand")

    with pytest.raises(ConflictError, match="runs already"):
        runner.begin_by_hand("nightly", "by hand")


def test_a_paused_automation_does_not_make_up_for_the_pause(place):
    here = place()
    runner = here.process()
    here.look(runner)
    pause = here.clock.now()
    here.store.change("nightly", lambda state: state.model_copy(update={"paused": pause}))
    here.hour()
    here.look(runner)
    here.store.change("nightly", lambda state: state.model_copy(update={"paused": None}))
    here.look(runner)
    assert here.runs() == []

    here.hour()
    here.look(runner)

    assert here.runs() == [("success", ["success"])]


def test_a_file_in_the_landing_zone_starts_a_run(place):
    here = place(triggers=[{"file": "ready/*.done"}])
    runner = here.process()
    here.look(runner)
    here.landing.put("ready/other.txt", b"")
    here.landing.put("ready/a.done", b"")

    here.look(runner)
    here.look(runner)

    assert [run.why for run in here.told] == ["ready/a.done appeared"]


def test_logs_are_kept_for_thirty_days(place):
    here = place()
    runner = here.process()
    for _ in range(3):
        runner.carry_out("nightly", runner.begin_by_hand("nightly", "by hand"))
        here.clock.advance(timedelta(seconds=16 * 86_400))

    assert len(here.runs()) == 2


def test_a_state_of_a_newer_version_stops_only_its_automation(place):
    here = place()
    (here.folder / "warehouse" / FOLDER / "state").mkdir(parents=True)
    (here.folder / "warehouse" / FOLDER / "state/nightly.json").write_text('{"waiting": 7}')
    failed = []

    here.process().carry_out_due(failed.append)

    assert [type(error) for error in failed] == [OperationError]


def test_actions_are_the_commands_of_a_user(place):
    here = place(
        actions=[
            {"run": ["shop"], "apply": "always"},
            {"reload": "shop", "dataset": "users"},
            {"maintain": ["shop.*"]},
            {"verify": "all"},
            {"export": "out/{time}.tar.gz"},
        ]
    )
    now = here.clock.now()

    lines = [arguments_of(action, here.folder, now) for action in here.one.settings.actions]

    assert lines == [
        ["run", "shop", "--once", "--apply", "always"],
        ["reload", "shop", "--dataset", "users", "--mode", "compare_and_apply_with_deleted_rows"],
        ["maintain", "shop.*"],
        ["verify"],
        ["export", str(here.folder), f"{here.folder}/out/20260101T000000Z.tar.gz"],
    ]


@pytest.mark.parametrize(
    ("surroundings", "states", "commands"),
    [
        (Surroundings.RUN, ["success"] * 3, 3),
        (Surroundings.OPERATOR, ["success", "success", "success"], 3),
        (Surroundings.CLUSTER, ["success", "success", "success"], 3),
    ],
)
def test_where_agents_own_the_tables_actions_ask_them(place, surroundings, states, commands):
    here = place(actions=[{"run": ["shop"]}, {"reload": "shop"}, {"export": "a.tar.gz"}])
    runner = here.process()
    runner._surroundings = surroundings
    runner.carry_out("nightly", runner.begin_by_hand("nightly", "by hand"))

    (run,) = here.store.runs("nightly")
    assert [step.state for step in run.steps] == states
    assert len(here.commands.called) == commands
    waits = [line for line in here.commands.called if line.endswith("--wait")]
    assert len(waits) == 2 * int(surroundings is not Surroundings.RUN)


class Overtaken(AutomationStore):
    """A store in which another process looks right after this one has read the end of a task."""

    def __init__(self, store, then):
        super().__init__(store)
        self.then = then

    def ends(self, task):
        found = super().ends(task)
        then, self.then = self.then, lambda: None
        then()
        return found


def test_an_end_that_another_process_used_meanwhile_starts_nothing(place):
    here = place(triggers=[{"after": ["shop"]}])
    other, objects = here.process(), LocalObjectStore(here.folder / "warehouse")

    def end_and_look():
        here.hour()
        here.store.ended("shop", here.clock.now(), success=True)
        here.look(other)

    here.look(other)
    end_and_look()
    here.store = Overtaken(objects, end_and_look)
    slow = here.process()
    here.store = AutomationStore(objects)
    here.look(slow)

    assert [run.state for run in here.told] == ["success", "success"]


def test_ends_of_tasks_never_go_back(place):
    here = place()
    now = here.clock.now()
    here.store.ended("shop", now, success=True)
    here.store.ended("shop", now - timedelta(hours=1), success=True)
    here.store.ended("shop", now - timedelta(hours=2), success=False)

    assert here.store.ends("shop") == TaskEnds(now, now - timedelta(hours=2))
