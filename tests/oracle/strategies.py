"""Hypothesis strategies over the generator of `histories`: event sets that shrink, and arrivals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.oracle.fold import Event
from tests.oracle.histories import Shape, captured_history, native_history

T = TypeVar("T")


@dataclass(frozen=True)
class DrawnChoices:
    """Decisions drawn by Hypothesis: slower than a seed, but failures shrink."""

    draw: Any

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(list(options)))


@st.composite
def native_events(draw: Any, shape: Shape | None = None, *, most: int = 14) -> list[Event]:
    """Events of any order and sense, as native records can say them."""
    shape = shape or Shape(key_count=3, truncates=8, bad=5)
    return native_history(DrawnChoices(draw), shape, draw(st.integers(0, most)))


@st.composite
def captured_events(draw: Any, shape: Shape | None = None, *, most: int = 14) -> list[Event]:
    """Events of a captured database, some of them lost."""
    shape = shape or Shape(columns=("name", "note"), key_count=3, truncates=5, loads=30)
    return captured_history(DrawnChoices(draw), shape, draw(st.integers(0, most)))


@st.composite
def deliveries(draw: Any, events: Sequence[Event]) -> list[list[Event]]:
    """Any order, any split into batches, some events delivered again."""
    again = [event for event in events if draw(st.integers(0, 9)) == 0]
    order = draw(st.permutations([*events, *again]))
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=4)))
    bounds = [0, *cuts, len(order)]
    return [order[low:high] for low, high in itertools.pairwise(bounds)]
