"""Rows of a step are compared in memory as Spark's `<=>` compares them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from polynya.lake.copy.compared_rows import _differing
from polynya.lake.copy.stored_values import any_unequal
from polynya.lake.fold.shape import Shape
from polynya.model import headers as h
from polynya.model.types import BIGINT, DOUBLE, STRING

SHAPE = Shape(("a", "b"), {"a": BIGINT, "b": STRING, "x": DOUBLE, "y": STRING})
NAN = float("nan")
KEYS = st.tuples(st.integers(0, 3), st.sampled_from("pq"))
ROWS = st.dictionaries(
    KEYS,
    st.tuples(
        st.sampled_from([0.0, -0.0, 1.5, NAN, None]),
        st.sampled_from(["", "x", None]),
    ),
)


def table(rows: dict[tuple[int, str], tuple[Any, Any]]) -> pa.Table:
    """Rows by their keys."""
    columns = list(zip(*(key + values for key, values in rows.items()), strict=True)) or [()] * 4
    types = (pa.int64(), pa.string(), pa.float64(), pa.string())
    arrays = [pa.array(one, kind) for one, kind in zip(columns, types, strict=True)]
    return pa.table(arrays, list(SHAPE.columns))


def same(one: Any, other: Any) -> bool:
    """As `<=>` has it."""
    return one == other or (one != one and other != other)


@given(ROWS, ROWS)
def test_only_rows_that_differ_make_events(
    rows: dict[tuple[int, str], Any], stored: dict[tuple[int, str], Any]
) -> None:
    changed, gone = _differing(table(rows), table(stored), SHAPE, any_unequal)

    found = {
        (row["a"], row["b"]): row[h.OPERATION] for row in [*changed.to_pylist(), *gone.to_pylist()]
    }
    expected = dict.fromkeys(rows.keys() - stored.keys(), "i")
    expected |= dict.fromkeys(stored.keys() - rows.keys(), "d")
    expected |= {
        key: "u"
        for key in rows.keys() & stored.keys()
        if not all(map(same, rows[key], stored[key]))
    }
    assert found == expected
