"""Calls of automations: taken once, joined while a run waits, and carried out by the next look."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from polynya.automation.calls import MOST_HEARD, AutomationCall, take_call, with_call
from polynya.automation.due import DueMoment
from polynya.automation.state import AutomationState, HeardCall
from polynya.model.errors import ConflictError
from tests.automation.automations import VALIDATE
from tests.automation.test_runner import GOOD, Place

NOW = datetime(2026, 11, 29, 8, tzinfo=UTC)
HOOK = {"webhook": "deploys", "secret": "${file:/etc/hook}"}


@pytest.fixture
def place(tmp_path):
    return lambda **settings: Place(tmp_path, **{"triggers": [HOOK], **settings})


def call(here, mark="a", key=None):
    known_until = here.clock.now() + timedelta(hours=1)
    wanted = AutomationCall("it called", mark, key, known_until)
    return take_call(here.store, here.one.settings, wanted, here.clock.now())


def test_a_call_starts_one_run_which_has_the_id_that_the_caller_got(place):
    here = place()
    runner = here.process()

    taken = call(here)
    here.look(runner)
    here.look(runner)

    (run,) = here.store.runs("nightly")
    assert (run.id, run.state, run.why) == (taken.run, "success", "it called")


def test_a_call_while_another_one_waits_is_the_same_run(place):
    here = place()
    first, second = call(here, "a"), call(here, "b")
    here.look(here.process())

    assert (second.run, first.has_joined, second.has_joined) == (first.run, False, True)
    assert here.runs() == [("success", ["success"])]


def test_a_repeated_key_is_the_same_call_also_after_its_run(place):
    here = place()
    first = call(here, "a", "k")
    here.look(here.process())
    again = call(here, "b", "k")
    here.look(here.process())
    here.clock.advance(timedelta(hours=2))
    later = call(here, "c", "k")

    assert (again.run, again.is_repeated, later.is_repeated) == (first.run, True, False)
    assert len(here.runs()) == 1


def test_of_many_servers_that_get_one_message_one_takes_it(place):
    here = place()
    taken = []
    barrier = threading.Barrier(4)

    def ask(mark):
        barrier.wait()
        taken.append(call(here, mark, "one message"))

    threads = [threading.Thread(target=ask, args=[mark]) for mark in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    here.look(here.process())

    assert sorted(one.is_repeated for one in taken) == [False, True, True, True]
    assert len({one.run for one in taken}) == 1
    assert len(here.runs()) == 1


@pytest.mark.parametrize(
    ("overlap", "states"),
    [("skip", ["success", "left_out"]), ("queue", ["success"]), ("cancel", ["cancelled"])],
)
def test_a_call_during_a_run_follows_the_rule_for_overlaps(place, overlap, states):
    here = place(overlap=overlap, actions=[VALIDATE])
    taken = []

    def during():
        taken.append(call(here, "b"))
        here.look(other)
        # Longer than from one sign of life to the next, which sees the cancel.
        here.clock.advance(timedelta(seconds=21))

    other = here.process()
    runner = here.process(during)
    call(here)
    runner.carry_out("nightly", runner._look_at(here.one))
    ended = {run.id: run.state for run in here.store.runs("nightly")}
    here.look(here.process())
    after = {run.id: run.state for run in here.store.runs("nightly")}

    assert sorted(ended.values()) == sorted(states)
    assert after[taken[0].run] == ("left_out" if overlap == "skip" else "success")


def test_a_call_in_a_pause_is_refused_and_one_before_it_is_left_out(place):
    here = place()
    before = call(here)
    here.store.set_pause("nightly", here.clock.now())
    here.look(here.process())
    with pytest.raises(ConflictError, match="paused"):
        call(here)
    here.store.set_pause("nightly", None)
    here.look(here.process())

    (run,) = here.store.runs("nightly")
    assert (run.id, run.state) == (before.run, "left_out")


@pytest.mark.parametrize(("missed", "state"), [("run_once", "success"), ("skip", "left_out")])
def test_a_call_that_nothing_saw_in_time_follows_the_rule_for_missed_moments(place, missed, state):
    here = place(missed=missed)
    taken = call(here)
    here.clock.advance(timedelta(hours=1))
    here.look(here.process())

    (run,) = here.store.runs("nightly")
    assert (run.id, run.state) == (taken.run, state)


def test_a_call_and_a_moment_are_one_run(place):
    here = place(triggers=[{"schedule": "0 * * * *"}, HOOK])
    runner = here.process(GOOD)
    here.look(runner)
    here.hour()
    taken = call(here)
    here.look(runner)

    (run,) = here.store.runs("nightly")
    assert run.id == taken.run
    assert run.why == "`0 * * * *` named it; it called"


def test_runs_beyond_the_limit_are_logged_as_left_out(place):
    here = place(triggers=[{"schedule": "0 * * * *"}], missed="all", missed_limit=2)
    waiting = tuple(DueMoment(NOW, "earlier", f"r{n}") for n in range(2))
    here.look(here.process())
    here.store.change("nightly", lambda state: state.model_copy(update={"waiting": waiting}))
    here.hour()
    here.look(here.process())

    assert here.store.run("nightly", "r0").state == "left_out"


def test_a_disabled_automation_and_too_many_calls_are_refused(place):
    here = place(enabled=False)
    with pytest.raises(ConflictError, match="disabled"):
        call(here)
    settings = here.one.settings.model_copy(update={"enabled": True})
    heard = {str(n): HeardCall(run="r", until=NOW + timedelta(hours=1)) for n in range(MOST_HEARD)}
    state = AutomationState(heard=heard)
    with pytest.raises(ConflictError, match="2000 calls"):
        with_call(state, settings, AutomationCall("x", "m", "new", NOW), NOW)
    _, taken = with_call(state, settings, AutomationCall("x", "m", "0", NOW), NOW)
    assert taken.is_repeated
    later = NOW + timedelta(hours=2)
    after, _ = with_call(
        state, settings, AutomationCall("x", "m", "new", later + timedelta(1)), later
    )
    assert list(after.heard) == ["new"]
