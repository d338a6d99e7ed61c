"""Commands that were given to a cluster's network agent: shown, and waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from polynya.cli.output import Output
from polynya.cli.sharing.place import Place
from polynya.model.errors import DependencyError, OperationError
from polynya.store.clock import Clock, SystemClock

if TYPE_CHECKING:
    from polynya.cluster.network.documents import Command

_STEP_SECONDS: Final = 2.0


def shown(output: Output, place: Place, name: str, command: Command) -> None:
    """Say what became of a command."""
    data = {
        "cluster": place.cluster,
        "id": name,
        "command": command.kind,
        "nodes": command.nodes,
        "by": command.by,
        "reason": command.reason,
        "since": command.since,
        "state": command.state,
        "outcome": command.outcome,
        "asked": list(command.steps),
        "ended_at": command.ended_at,
    }
    why = f": {command.outcome}" if command.outcome else ""
    by = f"by {command.by}, {command.since:%Y-%m-%d %H:%M:%S} UTC"
    output.result("cluster.command", data, f"{name}: {command.text()}: {command.state}{why}, {by}")


def waited_for(output: Output, place: Place, name: str, *, clock: Clock | None = None) -> Command:
    """The command when it has ended well.

    Raises:
        OperationError: it did not (POLYNYA-AGT-061).
        DependencyError: nobody took it in time (POLYNYA-AGT-062).
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.network.documents import TAKEN_WITHIN, Command, command_path

    clock, register, said = clock or SystemClock(), place.register(), ""
    while True:
        found = register.read(Command, command_path(name))
        if found is None:
            raise _untaken(place, name, "its object was deleted")
        command = found.document
        if not command.is_open:
            break
        if command.state == "pending" and clock.now() - command.since > TAKEN_WITHIN:
            raise _untaken(place, name, f"nobody took it within {TAKEN_WITHIN}")
        news = command.outcome or "no network agent has taken it yet"
        if news != said:
            output.note(f"{command.text()}: {news}")
            said = news
        clock.sleep(_STEP_SECONDS)
    if command.state != "done":
        raise OperationError(
            "POLYNYA-AGT-061",
            f"the command `{command.text()}` was not carried out: {command.state}",
            where=f"{place.cluster}, {name}",
            why=command.outcome,
            state="the nodes that there are work on",
            fix="do what the reason says, then give the command again",
        )
    return command


def _untaken(place: Place, name: str, why: str) -> DependencyError:
    return DependencyError(
        "POLYNYA-AGT-062",
        "no network agent carried out the command",
        where=f"{place.cluster}, {name}",
        why=why,
        state="nothing was asked of the group; its nodes work on",
        fix="see with `polynya cluster status` whether the network agent is connected",
    )
