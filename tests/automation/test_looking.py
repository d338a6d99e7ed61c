"""The loop that looks at automations, on a clock that the test moves: each moment once."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

from polynya.automation.runner import AutomationRunner
from polynya.automation.state import FOLDER
from tests.automation.automations import automation
from tests.automation.test_runner import GOOD, Place, Scripted

EVERY_MINUTE = {"schedule": "* * * * *"}


class Ticking(threading.Event):
    """A stop whose waits move the clock; runs end meanwhile, but for that of `blocked`.

    It is set after so many waits and a last look.
    """

    def __init__(self, clock, waits, then=lambda: None, blocked=""):
        super().__init__()
        self.clock, self.waits, self.then, self.blocked = clock, waits, then, blocked

    def wait(self, timeout=None):
        for thread in threading.enumerate():
            if thread.name.startswith("automation ") and thread.name != self.blocked:
                thread.join(30)
        self.clock.advance(timedelta(seconds=timeout))
        self.waits -= 1
        if self.waits < 0:
            self.then()
            self.set()
        return self.is_set()


def looking(here, stop, *automations, commands=None):
    here.commands = commands or Scripted()
    runner = AutomationRunner(
        automations=list(automations) or [here.one], store=here.store, landing=here.landing,
        directory=here.folder, commands=here.commands, clock=here.clock, tell=here.told.append,
        stop=stop,
    )  # fmt: skip
    failed = []
    runner.keep_looking(failed.append)
    return failed


def test_each_moment_has_one_run_while_the_loop_looks(tmp_path):
    here = Place(tmp_path, triggers=[EVERY_MINUTE])

    # Ten minutes, by a look every five seconds.
    assert looking(here, Ticking(here.clock, 120)) == []

    look = here.store.last_look()
    assert look is not None
    assert timedelta(0) <= here.clock.now() - look.at <= timedelta(minutes=1, seconds=5)
    moments = [run.due for run in here.store.runs("nightly")]
    assert len(moments) == 10
    assert len(set(moments)) == 10
    assert {run.state for run in here.told} == {"success"}


def test_an_automation_that_takes_long_holds_no_other_back_and_ends_with_the_loop(tmp_path):
    here = Place(tmp_path)
    slow, quick = (automation(name, triggers=[EVERY_MINUTE]) for name in ("slow", "quick"))
    released = threading.Event()

    class Commands(Scripted):
        def run(self, arguments, limit, goes_on):
            if threading.current_thread().name == "automation slow":
                released.wait(30)
            return GOOD

    stop = Ticking(here.clock, 60, released.set, "automation slow")
    assert looking(here, stop, slow, quick, commands=Commands()) == []

    ends = Counter((run.automation, run.state) for run in here.told)
    assert ends["quick", "success"] == 5
    assert ends["slow", "success"] == 1
    assert not [one for one in threading.enumerate() if one.name.startswith("automation ")]


def test_what_fails_is_told_once_and_stops_no_other(tmp_path):
    here = Place(tmp_path)
    broken, good = (automation(name, triggers=[EVERY_MINUTE]) for name in ("broken", "good"))
    state = tmp_path / "warehouse" / FOLDER / "state" / "broken.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"waiting": 7}')

    failed = looking(here, Ticking(here.clock, 36), broken, good)

    assert [error.code for error in failed] == ["POLYNYA-AUT-008"]
    assert [run.automation for run in here.told] == ["good"] * 3
