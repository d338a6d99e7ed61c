"""The truncates of a dataset.

They are kept in the apply state for ever, because events older than them may still come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polynya.lake.fold.sql import literal
from polynya.lake.spark.api import DataFrame
from polynya.model.contract import headers as h


def collect(events: DataFrame) -> list[list[Any]]:
    """Truncate events of a batch as [change identifier, tail, epoch microseconds]."""
    found = events.where(f"{h.OPERATION} = 'T'").selectExpr(
        h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL, f"unix_micros({h.TIMESTAMP})"
    )
    return [list(row) for row in found.collect()]


def merged(known: Sequence[Sequence[Any]], new: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """All truncates in ascending order; of several with one sequence the earliest time counts."""
    by_sequence: dict[str, list[Any]] = {}
    for item in sorted([*known, *new], key=lambda t: (sequence(t), t[2])):
        by_sequence.setdefault(sequence(item), list(item))
    return list(by_sequence.values())


def sequence(truncate: Sequence[Any]) -> str:
    """Sequence of one truncate."""
    return str(truncate[0]) + str(truncate[1] or "")


def as_sql(truncates: Sequence[Sequence[Any]]) -> str | None:
    """SQL array of struct<seq, ci, tail, ts>, None when there is no truncate."""
    if not truncates:
        return None
    items = []
    for item in truncates:
        tail = literal(str(item[1])) if item[1] else "CAST(NULL AS STRING)"
        items.append(
            f"named_struct('seq', {literal(sequence(item))}, 'ci', {literal(str(item[0]))}, "
            f"'tail', {tail}, 'ts', timestamp_micros({int(item[2])}L))"
        )
    return f"array({', '.join(items)})"
