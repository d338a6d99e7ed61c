"""What the actions of maintenance have in common: their names, their limits, how one ended.

An action is a function of a `DatasetTable` that this process has taken over. It commits in pieces,
so that what was committed stays when it gives way or the process dies. No commit of it is made once
another owner has taken the table over: those that change rows or their files are steps, as a copy
or an apply is, and others follow metadata whose owner was looked at (`fenced.py`). Expired
snapshots and files are the exception, since nobody can need them (`expiry/`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from polynya.model.config.maintenance import ActionName

__all__ = ["ActionName", "GiveWay", "Limits", "Outcome", "never"]

#: Asked between small pieces of work: whether a copy or an apply wants the machine or the table.
GiveWay: TypeAlias = Callable[[], bool]


def never() -> bool:
    """Nobody waits: what `polynya maintain` gives an action that it runs by itself."""
    return False


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of an action may do.

    `now` is the time by the injected clock. `budget_bytes` is what it may write, None for no limit.
    `give_way` is asked often; once it is true the action commits what is whole, and ends.
    """

    now: datetime
    budget_bytes: int | None = None
    give_way: GiveWay = never


@dataclass(frozen=True, slots=True)
class Outcome:
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
