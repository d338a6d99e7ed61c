"""The commands of one cluster: given by people, taken and ended by a network agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from polynya.cluster.coordination.register import Register
from polynya.cluster.coordination.shelf import Shelf
from polynya.cluster.network.documents import (
    COMMANDS,
    Command,
    command_id,
    command_path,
    id_of,
)

T = TypeVar("T")

#: What became of a command can be looked up for so long.
_KEPT: Final = timedelta(days=7)


def give(register: Register, command: Command) -> str:
    """Put a command into the queue; returns its id.

    Raises:
        DependencyError: it is not known whether it was written.
    """
    name = command_id(command.since, register.token())
    register.write(command_path(name), command, None)
    return name


def one_after_the_other(calls: Sequence[Callable[[], T]], /) -> list[T]:
    """Requests in their order: there are few of them."""
    return [call() for call in calls]


class Queue:
    """The commands as they were read last. Raises what the store raises."""

    def __init__(self, register: Register) -> None:
        self._register = register
        self._shelf = Shelf(register, Command, COMMANDS, one_after_the_other)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Commands that cannot be understood, and why."""
        return self._shelf.troubles

    def refresh(self) -> None:
        """Read what changed."""
        self._shelf.refresh(lambda: True)

    def all(self) -> list[tuple[str, Command]]:
        """All commands with their ids, the oldest first."""
        return [(id_of(path), one.document) for path, one in sorted(self._shelf.documents.items())]

    def get(self, name: str) -> Command | None:
        """The command of this id."""
        found = self._shelf.documents.get(command_path(name))
        return found.document if found is not None else None

    def open(self) -> list[tuple[str, Command]]:
        """Those with something still to do."""
        return [(name, one) for name, one in self.all() if one.is_open]

    def newer(self, name: str) -> Command | None:
        """The newest `stop` or `start` after a command that was taken, or done."""
        later = [
            one
            for other, one in self.all()
            if other > name and one.kind in ("stop", "start") and one.state in ("taken", "done")
        ]
        return later[-1] if later else None

    def change(self, name: str, command: Command) -> bool:
        """Write what became of a command if it is as it was read, then look again.

        False when somebody else changed it meanwhile.
        """
        path = command_path(name)
        known = self._shelf.documents.get(path)
        written = known is not None and self._register.write(path, command, known.version)
        # Its version is known after the next look only.
        self._shelf.doubt(path)
        self.refresh()
        return written

    def tidy(self, now: datetime) -> None:
        """Delete what ended long ago."""
        for path, found in list(self._shelf.documents.items()):
            ended = found.document.ended_at
            if ended is not None and now - ended > _KEPT:
                self._register.delete(path, found.version)
                self._shelf.deleted(path)
