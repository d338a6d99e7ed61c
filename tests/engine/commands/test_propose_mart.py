"""What a mart is proposed from: the values of tables, within limits."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from polynya.engine.commands import propose_mart
from polynya.engine.commands.propose_mart import JudgedTables, judged_tables
from polynya.formats.values.arrow_types import from_arrow
from polynya.model.types import DataType
from polynya.query.committed_rows import RowLimits
from polynya.query.translate import NotEmbeddedError


@dataclass
class Stored:
    """A view with rows in memory."""

    name: str
    table: pa.Table
    keys: Sequence[str] = ("id",)
    asked: list[str] = field(default_factory=list)

    @property
    def columns(self) -> Mapping[str, DataType]:
        """Names and types."""
        return {one.name: from_arrow(one.type) for one in self.table.schema}

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """Some columns."""
        self.asked = list(columns)
        if self.table.num_rows > limits.rows:
            raise NotEmbeddedError(f"more than {limits.rows:,} rows, or too many bytes")
        return self.table.select(list(columns)).to_reader()


def customers() -> Stored:
    """Three customers, with a column that a mart cannot have."""
    columns = {"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", "b", "c"], "hdr__x": [1, 1, 1]}
    return Stored("shop.customers", pa.table(columns))


def orders(*customer: int | None) -> Stored:
    """Orders of these customers, one a day."""
    days = [dt.datetime(2026, 1, 1 + n, tzinfo=dt.UTC) for n in range(len(customer))]
    columns = {
        "id": range(10, 10 + len(customer)),
        "customer_id": pa.array(customer, pa.int64()),
        "at": pa.array(days, pa.timestamp("us", "UTC")),
        "note": ["x"] * len(customer),
    }
    return Stored("shop.orders", pa.table(columns))


def reasons(found: JudgedTables) -> list[tuple[str, ...]]:
    """Confidence and reasons of each reference with a name."""
    return [(one.confidence.value, *one.reasons) for one in found.references if one.reference.name]


def test_only_columns_that_may_refer_and_times_are_read() -> None:
    stored = orders(1, 1, None, 2)
    found = judged_tables([(customers(), False), (stored, True)])

    assert reasons(found) == [
        ("strong", "`customer_id` names `customers`", "bigint to int", "2 of 2 values found",
         "many to one, 1.5 rows for each", "NULL in 1 rows")
    ]  # fmt: skip
    assert stored.asked == ["at", "customer_id"]
    (shown, ordered) = found.tables
    assert list(shown.columns) == ["id", "name"]
    assert (ordered.columns["at"].first, ordered.columns["at"].last, ordered.history) == (
        dt.date(2026, 1, 1), dt.date(2026, 1, 4), True
    )  # fmt: skip


def test_references_of_two_columns_are_compared_as_pairs() -> None:
    lines = pa.table({"order_no": ["a", "a", "b"], "line_no": [1, 2, 1]})
    refunds = pa.table({"id": [1, 2, 3], "order_no": ["a", "b", None], "line_no": [2, 2, 1]})
    found = judged_tables(
        [
            (Stored("shop.order_lines", lines, ("order_no", "line_no")), False),
            (Stored("shop.refunds", refunds), False),
        ]
    )
    pairs = [one for one in reasons(found) if "1 of 2 values found" in one]
    assert [one[0] for one in pairs] == ["likely"]
    assert pairs[0][-1] == "NULL in 1 rows"


def test_a_table_that_is_too_large_is_judged_by_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = RowLimits(rows=3, file_bytes=1 << 20, memory_bytes=1 << 20)
    monkeypatch.setattr(propose_mart, "_LIMITS", limits)
    found = judged_tables([(customers(), False), (orders(1, 1, 2, 2), False)])

    assert reasons(found) == [
        ("likely", "`customer_id` names `customers`", "bigint to int",
         "not looked at: more than 3 rows, or too many bytes")
    ]  # fmt: skip


def test_a_table_without_rows_refutes_nothing() -> None:
    none = Stored("shop.customers", customers().table.slice(0, 0))
    found = judged_tables([(none, False), (orders(1), False)])

    assert reasons(found)[0][0] == "likely"
    assert reasons(found)[0][-1] == "shop.customers has no rows"
