"""The search for many keys at once, against dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from polynya.lake.apply.key_index_file import SortedRows

COLUMNS = {
    pa.int64(): st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    pa.string(): st.sampled_from(["", "a", "aa", "b", "ä", "\x00", "Z", "zz" * 20]),
    pa.decimal128(9, 2): st.integers(-3, 3).map(lambda n: Decimal(n) / 4),
    pa.date32(): st.sampled_from([date(1, 1, 1), date(1970, 1, 1), date(2026, 1, 2)]),
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=2),
}
KEYS = st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3).flatmap(
    lambda types: st.tuples(
        st.just(types),
        st.lists(st.tuples(*(COLUMNS[one] for one in types)), max_size=40),
        st.lists(st.tuples(*(COLUMNS[one] for one in types)), max_size=20, unique=True),
    )
)


def by_key(types: Sequence[pa.DataType], keys: Sequence[tuple[Any, ...]], name: str) -> SortedRows:
    columns = [pa.array([key[n] for key in keys], kind) for n, kind in enumerate(types)]
    return SortedRows.of(columns, name)


@given(KEYS)
def test_every_row_with_a_wanted_key_is_found(
    drawn: tuple[list[pa.DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]],
) -> None:
    types, rows, wanted = drawn

    pairs = by_key(types, rows, "pos").matches(by_key(types, wanted, "record"))

    found = sorted(zip(*(pairs[name].to_pylist() for name in ("record", "pos")), strict=True))
    assert found == [
        (number, place)
        for number, key in enumerate(wanted)
        for place, other in enumerate(rows)
        if key == other
    ]
