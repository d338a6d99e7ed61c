"""A process that dies at a commit: the next one finds only what is in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from polynya.lake.iceberg import commit
from polynya.lake.iceberg.table import IcebergTable


class Killed(BaseException):
    """Nothing catches it, so that no code cleans up, as after `kill -9`."""


@dataclass(frozen=True)
class Kill:
    """At the commit of this number, just before it or just after it."""

    number: int
    after: bool

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} commit {self.number}"


def in_spite_of(kill: Kill | None, step: Callable[[], object]) -> None:
    """Do it; a process that is killed is followed by another one that does it again."""
    if kill is not None:
        try:
            with killed_at(kill.number, after=kill.after):
                step()
        except BaseException as error:
            if not _is_kill(error):
                raise
    step()


@contextmanager
def killed_at(number: int, *, after: bool) -> Iterator[None]:
    """Die there."""
    seen = 0
    dying = False
    validate, show = commit._validate, IcebergTable.show_to_spark

    def count(*arguments: Any) -> None:
        nonlocal seen, dying
        seen += 1
        if seen == number and not after:
            raise Killed
        dying = seen == number
        validate(*arguments)

    def die(table: IcebergTable) -> None:
        if dying:
            raise Killed
        show(table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "_validate", count)
        patch.setattr(IcebergTable, "show_to_spark", die)
        yield


def _is_kill(error: BaseException | None) -> bool:
    """Whether an error is, or comes from, a kill."""
    while error is not None:
        if isinstance(error, Killed):
            return True
        error = error.__cause__
    return False
