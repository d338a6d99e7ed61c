"""A run whose table was taken over waits, and goes on when the other process is silent."""

from __future__ import annotations

from datetime import timedelta

from polynya.engine.context import QUIET_SECONDS
from polynya.engine.runner import RunOutcome, run_once, units
from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.model.errors import ConflictError
from tests.lab.lab import STARTED, Lab, put


def test_run_continues_after_a_command_took_its_table_over(lab: Lab) -> None:
    users = lab.feed()
    context = lab.context("always")
    work = units(context, [users.task])
    users.land(put(1, 1, name="Ann"))
    assert not run_once(context, work).failures

    def run() -> RunOutcome:
        lab.clock.advance(timedelta(seconds=QUIET_SECONDS - 10))
        return run_once(context, work)

    command = users.table("a command")
    command.take_over()
    users.land(put(2, 2, name="Ben"))
    (refused,) = run().failures.values()
    assert isinstance(refused, ConflictError)
    (waiting,) = run().failures.values()
    assert waiting.code == "POLYNYA-LAKE-002"
    assert "a command works on" in waiting.message
    assert "nothing was committed there for 60 s" in waiting.message
    # The command is still at work.
    copy_batch(command, users.batch(put(3, 3, name="Cid")), FastApplier(), now=STARTED)
    assert run().failures
    lab.clock.advance(timedelta(seconds=QUIET_SECONDS))
    assert not run().failures

    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert context.memory.takeover_backoff.is_empty
    assert [event.text() for event in lab.events if event.type == "unit.recovered"] == [
        f"recovered {users.view}: works again"
    ]
