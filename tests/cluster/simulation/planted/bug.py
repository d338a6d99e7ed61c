"""A planted bug: what it is, whose bug it was, and how the code under test gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.simulation.drill import Under


@dataclass(frozen=True, slots=True)
class Patch:
    """An attribute that is another one while the bug is there."""

    owner: Any
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug. `seen_in` names where it was met; `patches` are made when it is planted."""

    name: str
    seen_in: str
    patches: Callable[[], tuple[Patch, ...]] = tuple
    under: Under = field(default_factory=Under)

    @contextmanager
    def planted(self) -> Iterator[Under]:
        """The code under test has it within."""
        patches = self.patches()
        before = [(patch.owner, patch.name, patch.owner.__dict__[patch.name]) for patch in patches]
        try:
            for patch in patches:
                setattr(patch.owner, patch.name, patch.value)
            yield self.under
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)
