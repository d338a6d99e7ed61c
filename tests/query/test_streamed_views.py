"""A statement that reads a view once gets its rows as they come, and holds none of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from polynya.model.errors import OperationError
from polynya.model.types import BIGINT, DataType
from polynya.query import database
from polynya.query.committed_rows import RowLimits
from polynya.query.embedded import STATEMENT_LIMITS, answer_here
from polynya.query.statement_stop import StatementStop, current_stop
from polynya.query.translate import NotEmbeddedError

SCHEMA = pa.schema([pa.field("n", pa.int64())])
#: Rows of a batch.
MANY = 50_000


@dataclass
class Numbers:
    """A view of numbers from 0; `ends` is raised in place of the batch with this number."""

    batches: int = 40
    ends: tuple[int, Exception] | None = None
    name: str = "s.numbers"
    keys: Sequence[str] = ("n",)
    columns: Mapping[str, DataType] = field(default_factory=lambda: {"n": BIGINT})
    read: int = 0
    stops: set[StatementStop] = field(default_factory=set)

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """All rows, as they come."""
        del columns, limits
        return pa.RecordBatchReader.from_batches(SCHEMA, self._rows())

    def _rows(self) -> Iterator[pa.RecordBatch]:
        for number in range(self.batches):
            if self.ends is not None and self.ends[0] == number:
                raise self.ends[1]
            self.read += 1
            self.stops.add(current_stop())
            numbers = pa.arange(number * MANY, (number + 1) * MANY)
            yield pa.record_batch([numbers], schema=SCHEMA)


def answered(
    view: Numbers,
    statement: str,
    *,
    limit: int | None = None,
    limits: RowLimits = STATEMENT_LIMITS,
) -> list[tuple[object, ...]]:
    """The rows of a statement over a view."""
    _, batches = answer_here(statement, lambda _: view, limit=limit, limits=limits)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


#: Less than one batch takes.
LITTLE_MEMORY = replace(STATEMENT_LIMITS, memory_bytes=MANY)


def test_rows_that_are_read_once_are_not_held() -> None:
    view = Numbers()

    rows = answered(view, "SELECT count(*), max(n) FROM s.numbers", limits=LITTLE_MEMORY)

    assert rows == [(40 * MANY, 40 * MANY - 1)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a.n FROM s.numbers a JOIN s.numbers b ON a.n = b.n",
        "WITH x AS (SELECT n FROM s.numbers) SELECT x.n FROM x JOIN x y ON x.n = y.n",
    ],
)
def test_rows_that_are_read_twice_are_held_within_the_limit(statement: str) -> None:
    assert len(answered(Numbers(batches=1), statement)) == MANY
    with pytest.raises(NotEmbeddedError, match="more than 50,000 bytes in memory"):
        answered(Numbers(), statement, limits=LITTLE_MEMORY)


def test_no_more_rows_are_read_than_an_answer_needs() -> None:
    view = Numbers(batches=1000)

    assert len(answered(view, "SELECT n FROM s.numbers", limit=10)) == 10
    assert view.read < 100


def test_what_does_not_fit_into_the_memory_of_the_database_is_left_to_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(database._SETTINGS, "memory_limit", "30MB")
    monkeypatch.setattr(database, "_idle", defaultdict(list))

    with pytest.raises(NotEmbeddedError, match="Out of Memory"):
        answered(
            Numbers(batches=100),
            "SELECT count(*) FROM (SELECT n, count(*) AS m FROM s.numbers GROUP BY n)",
        )


def test_an_error_amid_the_rows_is_told_as_it_is() -> None:
    refusal = NotEmbeddedError("a file of s.numbers was not read")

    with pytest.raises(NotEmbeddedError, match=r"^a file of s\.numbers was not read$"):
        answered(Numbers(ends=(7, refusal)), "SELECT sum(n) FROM s.numbers")
    # The database that is used again knows nothing of it.
    assert answered(Numbers(batches=1), "SELECT count(*) FROM s.numbers") == [(MANY,)]


def test_a_stop_amid_the_rows_ends_the_statement() -> None:
    stop, error = StatementStop(), OperationError("POLYNYA-SRV-102", "stopped")
    view = Numbers(ends=(7, error))

    with pytest.raises(OperationError, match="stopped"), stop.running():
        answered(view, "SELECT sum(n) FROM s.numbers")

    # Whichever thread asked for them, the rows were read for this statement.
    assert view.stops == {stop}
