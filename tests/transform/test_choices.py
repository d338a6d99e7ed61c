"""Conditions that need no Spark: one column, compared with texts."""

from __future__ import annotations

import pytest

from polynya.transform.expressions import TextCondition, choice_of


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("op = 'D'", {"D"}),
        ("(`op` = 'it''s')", {"it's"}),
        ("op IN ('D', 'DELETE')", {"D", "DELETE"}),
    ],
)
def test_one_column_is_one_of_some_texts(text: str, texts: set[str]) -> None:
    assert choice_of(text) == TextCondition("op", frozenset(texts))


@pytest.mark.parametrize(
    "text",
    ["op = 1", "op <> 'D'", "op NOT IN ('D')", "'D' = op", "op = other", "lower(op) = 'd'",
     "op = 'D' OR gone", "NOT op = 'D'", "a.op = 'D'", "op IN ('D', NULL)", "op <=> 'D'"],
)  # fmt: skip
def test_any_other_condition_is_for_spark(text: str) -> None:
    assert choice_of(text) is None
