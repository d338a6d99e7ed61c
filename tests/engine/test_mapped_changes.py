"""What a source does to its columns, where the table has others made of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polynya.engine.evolution import schema_changes_of
from polynya.lake.table.state import SourceColumns
from tests.lake.copy.batches import dataset, mapped, read


@pytest.mark.parametrize(
    ("gone", "come", "change"),
    [
        (["a"], [], ("drop_column", "a", "ignore")),
        (["b"], [], ("drop_column", "b", "apply")),
        (["a"], ["z"], ("rename_column", "z", "suspend")),
        (["b"], ["z"], ("rename_column", "z", "apply")),
    ],
)
def test_a_column_that_an_expression_reads_neither_goes_nor_moves(
    gone: list[str], come: list[str], change: tuple[str, str, str]
) -> None:
    policies = {"drop_column": "propagate", "rename_column": "propagate"}
    one = dataset([{"name": "x", "expression": "a"}], schema_evolution=policies)
    batch = read(one, [{"a": 1, "b": 2, **dict.fromkeys(come, 3)}])
    declared = tuple(name for name in batch.schema if name not in gone)
    found = mapped(one, replace(batch, declared=declared))
    before = dict.fromkeys(("a", "b"), "bigint")
    columns = SourceColumns({"x": "bigint", "b": "bigint"}, declared=["a", "b"], source=before)

    changes = schema_changes_of(found, one, columns, {}).changes

    assert [(c.kind, c.column, c.policy) for c in changes] == [change]
