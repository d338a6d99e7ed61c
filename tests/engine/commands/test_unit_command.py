"""What the owner of a unit does at once because an operator or an automation asks for it."""

from __future__ import annotations

import pytest

from polynya.engine.commands.unit_command import UnitCommand, execute
from polynya.engine.policy import ApplyMode
from polynya.model.errors import OperationError
from tests.lab.lab import Feed, Lab, put


def carried_out(users: Feed, command: UnitCommand, unit: str = "") -> str | None:
    return execute(users.lab.context(), users.task, unit or users.view, command)


@pytest.mark.parametrize(("mode", "stored"), [("never", 0), ("always", 2)])
def test_a_run_takes_in_what_has_landed_and_applies_it_if_it_should(
    lab: Lab, mode: ApplyMode, stored: int
) -> None:
    users = lab.feed()
    users.land(put(1, 1, name="Ann"), put(2, 2, name="Ben"))

    said = carried_out(users, UnitCommand("run", apply=mode))

    assert said == f"{users.view}: everything that waited is taken in"
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]
    assert users.table().state.apply.applies == int(mode == "always")


def test_a_run_that_fails_says_why(lab: Lab) -> None:
    users = lab.feed(on_bad_record="suspend")
    users.land(b"not json")

    with pytest.raises(OperationError):
        carried_out(users, UnitCommand("run"))


def test_maintenance_that_does_not_pay_says_so(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))

    assert carried_out(users, UnitCommand("maintain")) == f"{users.view}: nothing pays now"
