"""Current without inherited values against the independent fold: random lives, one query for many.

A life is a record or two: batches of events, some applied before others are copied. Its stored rows
are those of the independent fold, so that nothing but the text of the view is tried.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from polynya.lake.fold.newest import current_by_places, current_of_newest
from polynya.lake.fold.shape import Shape
from polynya.lake.spark.api import SparkSession
from polynya.model import headers as h
from polynya.model.types import BIGINT, STRING
from tests.oracle.fold import DELETE, UPSERT, Event, Version, fold

SHAPE = Shape(("life", "id"), {"life": BIGINT, "id": BIGINT, "name": STRING})
#: One example of a push's hundred: each is a query, over many lives.
EXAMPLES = settings().max_examples // 100
LIVES = 150
_STORED = pa.schema(
    {
        h.PARTITION: pa.string(),
        h.CHANGE_IDENTIFIER: pa.string(),
        h.SEQUENCE_TAIL: pa.string(),
        h.SOURCE_POSITION: pa.string(),
        h.OPERATION: pa.string(),
        h.TO_TIMESTAMP: pa.timestamp("us", "UTC"),
        h.UNSENT: pa.string(),
        h.COPY_CHANGE_IDENTIFIER: pa.string(),
        "_file": pa.string(),
        "_pos": pa.int64(),
        "life": pa.int64(),
        "id": pa.int64(),
        "name": pa.string(),
    }
)


@dataclass(frozen=True)
class Life:
    """Batches in the order in which they were copied; the first `applied` of them were applied."""

    batches: Sequence[Sequence[Event]]
    applied: int

    def rows(self, number: int, *, history: bool) -> Iterator[dict[str, Any]]:
        """What the table holds."""
        stored = fold(self._of(self.batches[: self.applied]), rank=content).versions
        for versions in stored.values():
            kept = versions if history else versions[-1:]
            yield from (version_row(number, one, last=one is versions[-1]) for one in kept)
        for index, batch in enumerate(self.batches[self.applied :], self.applied):
            newest = max((e.sequence for e in self._of(self.batches[:index])), default=0)
            follows = min(e.sequence for e in batch) > newest
            yield from (pending_row(number, event, follows=follows) for event in batch)

    def shown(self, number: int) -> set[tuple[Any, ...]]:
        """What Current has to show."""
        current = fold(self._of(self.batches), rank=content).current()
        return {(number, *key, version.values["name"]) for key, version in current.items()}

    @staticmethod
    def _of(batches: Sequence[Sequence[Event]]) -> list[Event]:
        return [event for batch in batches for event in batch]


def content(event: Event) -> str:
    """The content hash of semantics section 4 in its own words: columns by name, no NULLs."""
    said = {name: value for name, value in sorted(event.values.items()) if value is not None}
    return hashlib.sha1(json.dumps(said, separators=(",", ":")).encode()).hexdigest()


def position(sequence: int, values: dict[str, Any] | Any) -> str | None:
    """Some events have a place in the source, which depends on what they say."""
    return f"{len(values.get('name') or '')}" if sequence % 3 == 0 else None


def version_row(life: int, version: Version, *, last: bool) -> dict[str, Any]:
    """A version as it is stored."""
    return {
        h.PARTITION: "current" if last and not version.deleted else "prior",
        h.CHANGE_IDENTIFIER: f"{version.sequence:035d}",
        h.SOURCE_POSITION: position(version.sequence, {} if version.deleted else version.values),
        h.OPERATION: version.op,
        h.TO_TIMESTAMP: version.to_ts if last else 0,
        "life": life,
        "id": version.key[0],
        "name": version.values.get("name"),
    }


def pending_row(life: int, event: Event, *, follows: bool) -> dict[str, Any]:
    """An event as it is copied."""
    return {
        h.PARTITION: "changes",
        h.CHANGE_IDENTIFIER: f"{event.sequence:035d}",
        h.SOURCE_POSITION: position(event.sequence, event.values),
        h.OPERATION: "D" if event.op == DELETE else "U",
        h.COPY_CHANGE_IDENTIFIER: "something older" if follows else None,
        "life": life,
        "id": event.key[0],
        "name": event.values.get("name"),
    }


@st.composite
def events(draw: Any) -> Event:
    """An event of one of two records; few sequences and values, so that some are the same."""
    key, sequence = (draw(st.integers(1, 2)),), draw(st.integers(1, 9))
    if draw(st.integers(0, 3)) == 0:
        return Event(key, sequence, DELETE, position=position(sequence, {}))
    values = {"name": draw(st.sampled_from(["a", "b", "long", None]))}
    return Event(key, sequence, UPSERT, values, position=position(sequence, values))


@st.composite
def lives(draw: Any) -> Life:
    """Batches in any order, or each after the one before, as most sources give them."""
    batches = draw(st.lists(st.lists(events(), min_size=1, max_size=4), min_size=1, max_size=4))
    if draw(st.booleans()):
        batches = [
            [replace(event, sequence=event.sequence + 9 * index) for event in batch]
            for index, batch in enumerate(batches)
        ]
        batches = [[placed(event) for event in batch] for batch in batches]
    return Life(batches, draw(st.integers(0, len(batches))))


def placed(event: Event) -> Event:
    """The event with the position that its sequence gives."""
    return replace(event, position=position(event.sequence, event.values))


@pytest.mark.spark
@pytest.mark.parametrize("written", [current_of_newest, current_by_places])
@pytest.mark.parametrize("history", [True, False], ids=["history", "current_only"])
@settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == 1,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(drawn=st.lists(lives(), min_size=LIVES, max_size=LIVES))
def test_current_is_that_of_the_fold(
    spark: SparkSession,
    written: Callable[[Shape, str], str],
    history: bool,
    drawn: list[Life],
) -> None:
    rows = [row for n, life in enumerate(drawn) for row in life.rows(n, history=history)]
    # In files of two rows, which Iceberg knows of every row.
    rows = [{**row, "_file": f"{n // 2}", "_pos": n % 2} for n, row in enumerate(rows)]
    table = pa.Table.from_pylist(rows, _STORED)
    spark.createDataFrame(table).createOrReplaceTempView("lives_of_records")

    try:
        text = written(replace(SHAPE, history=history), "lives_of_records")
        found = spark.sql(text).toArrow().to_pylist()
    finally:
        spark.catalog.dropTempView("lives_of_records")

    shown = sorted(tuple(row.values()) for row in found)
    assert shown == sorted((one for n, life in enumerate(drawn) for one in life.shown(n)), key=repr)
