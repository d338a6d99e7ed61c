"""What all maintenance actions share: their names, their limits, and their outcome.

An action is a function of a `DatasetTable` that this process has taken over. It commits in pieces,
so that finished pieces stay when the action gives way or the process dies. Once another owner has
taken the table over, no commit of the old owner succeeds: a change of rows or of their files is a
step, like a copy or an apply, and a change of metadata follows metadata whose owner was checked
(`lake/maintenance/fenced.py`). Expired snapshots and orphan files need no such fence, because
nobody can need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from polynya.model.config.maintenance import ActionName

__all__ = ["ActionLimits", "ActionName", "ActionOutcome", "GiveWay", "never"]

#: Asked between small pieces of work: whether a copy or an apply wants the machine or the table.
GiveWay: TypeAlias = Callable[[], bool]


def never() -> bool:
    """Nobody waits: what `polynya maintain` gives an action that it runs by itself."""
    return False


@dataclass(frozen=True, slots=True)
class ActionLimits:
    """What one run of an action may do.

    `now` is the time by the injected clock. `budget_bytes` is what it may write, None for no limit.
    `give_way` is asked often; once it is true the action commits what is whole, and ends.
    """

    now: datetime
    budget_bytes: int | None = None
    give_way: GiveWay = never


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """What an action did. Sizes in bytes.

    `why` says in a sentence why it ended as it did. `whole` is False when it gave way, lost against
    another commit or ran out of budget: there is more to do.
    """

    action: ActionName
    why: str
    whole: bool = True
    commits: int = 0
    files_removed: int = 0
    files_added: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    freed_bytes: int = 0
    seconds: float = 0.0
