"""What the records of a batch are: their operation, or the rule that refuses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from polynya.formats.batch import DatasetBatch
from polynya.lake.copy.derive import ERRORS, decided
from polynya.lake.copy.mapping.values import Session
from polynya.lake.copy.said_in_arrow import choice_in, chosen
from polynya.model.config.dataset import ResolvedDataset


def operations(batch: DatasetBatch, dataset: ResolvedDataset, session: Session) -> list[str]:
    """The operation of each row of a batch; `session` is asked for where it takes SQL."""
    if not batch.rows.num_rows:
        return []
    truncates = choice_in(dataset.truncates, batch.schema)
    deletes = choice_in(dataset.deletes, batch.schema)
    if truncates is None or deletes is None:
        return decided(session(), batch, dataset)
    found: Any = pc.fill_null(batch.rows.column("__op"), "U")
    for choice, operation in ((deletes, "D"), (truncates, "T")):
        named = chosen(choice, batch.rows)
        found = found if named is None else pc.if_else(named, operation, found)
    return [str(one) for one in found.to_pylist()]


def refusals(
    batch: DatasetBatch, keys: Sequence[str], called: Sequence[str], horizon: str | None
) -> dict[int, tuple[str, str]]:
    """The rows that a table with keys refuses: index → rule and error.

    `called` are the operations, `horizon` is the sequence up to which tombstones are forgotten.
    """
    found = {}
    names = [*keys, "__ci", "__tail"]
    there = [name for name in names if name in batch.rows.column_names]
    for index, row in enumerate(batch.rows.select(there).to_pylist() if keys else []):
        rule = None
        if any(row.get(key) is None for key in keys):
            rule = "null_key"
        elif horizon is not None and row["__ci"] + (row["__tail"] or "") <= horizon:
            rule = "older_than_horizon"
        if rule is not None and called[index] != "T":
            found[index] = (rule, ERRORS[rule])
    return found
