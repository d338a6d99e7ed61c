"""SQL of wide tables: as flat as that of narrow ones."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from polynya.lake.fold import fold, live_views
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import joined
from polynya.model.types import STRING

_WIDE = Shape(
    keys=("id",),
    columns=dict.fromkeys(("id", *(f"c{number}" for number in range(5000))), STRING),
    history=True,
)


def longest_chain(sql: str) -> int:
    """The most operators AND, or OR, that stand side by side between two parentheses."""
    counts, longest = [0], 0
    for token in re.findall(r"[()]| AND | OR ", sql):
        if token == "(":
            counts.append(0)
        elif token == ")":
            longest = max(longest, counts.pop())
        else:
            counts[-1] += 1
    return max(longest, *counts)


@pytest.mark.parametrize(
    "shape",
    [_WIDE, replace(_WIDE, coalesce=True), replace(_WIDE, partial=tuple(_WIDE.values))],
    ids=["plain", "coalesced", "partial"],
)
def test_conditions_over_thousands_of_columns_make_no_deep_tree(shape: Shape) -> None:
    """Spark walks the tree by recursion: a chain of fifteen hundred ended its stack."""
    for sql in (fold.placed(shape), live_views.history_view(shape, "t")):
        assert longest_chain(sql) < 40


def test_joined_conditions_keep_their_order_and_their_number() -> None:
    names = [f"c{number}" for number in range(5000)]

    assert re.findall(r"c\d+", joined(names, "AND")) == names
    assert joined(names[:3], "OR") == "c0 OR c1 OR c2"
    assert joined([], "AND") == ""
