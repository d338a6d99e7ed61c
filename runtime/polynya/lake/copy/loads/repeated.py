"""Rows of a first load whose record an earlier batch has loaded, and readers have seen.

Such rows have no place in the order of events: all stand before every change. Two of them in one
batch are one, and nobody has seen the other. One of a later batch that says something else is the
next version, so that what was in Current is found in History; one that says the same is the same.
"""

from __future__ import annotations

from typing import Final

import pyarrow.compute as pc

from polynya.formats.batch import NO_ORDER, DatasetBatch
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import joined, sequence, within
from polynya.lake.spark.api import DataFrame, functions
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import has_rows
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote

#: Digits of the tail that tells one load of a record from the one before: below those of reloads.
_DIGITS: Final = 8
_UNORDERED: Final = f"{h.CHANGE_IDENTIFIER} = '{NO_ORDER}'"
#: A row of a batch that was loaded without an order, and was not rejected.
_LOADED: Final = f"(__decided = 'L' AND {_UNORDERED} AND {within(Partition.CHANGES)})"
#: A stored one, also when later ones made it an older version; reloads have places of their own.
_STORED: Final = (
    f"{within(Partition.CURRENT, Partition.PRIOR, Partition.CHANGES)} AND {_UNORDERED} "
    f"AND coalesce({h.SEQUENCE_TAIL}, '') NOT LIKE '~%'"
)


def may_repeat(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> bool:
    """Whether a batch has loaded rows without an order whose records the table may have."""
    if shape.append_only or not shape.keys or not has_rows(target):
        return False
    rows = batch.rows
    unordered = pc.equal(rows.column("__ci"), NO_ORDER)
    return bool(pc.any(pc.and_(unordered, pc.equal(rows.column("__op"), "L"))).as_py())


def placed_again(target: DatasetTable, derived: DataFrame, shape: Shape) -> DataFrame:
    """Rows of such a batch, each behind what was loaded of its record, or in its very place."""
    keys, known = list(shape.keys), _known(target, derived, shape)
    values = [name for name in shape.values if name not in shape.hidden]
    same = joined((_is_same(shape, name, f"__was.v{n}") for n, name in enumerate(values)), "AND")
    number = "CAST(conv(coalesce(__was.tail, '0'), 16, 10) AS BIGINT) + 1"
    following = f"lpad(lower(hex({number})), {_DIGITS}, '0')"
    tail = f"IF({same or 'true'}, __was.tail, {following})"
    again = f"__was IS NOT NULL AND {_LOADED}"
    replaced = {
        h.SEQUENCE_TAIL: f"IF({again}, {tail}, {h.SEQUENCE_TAIL})",
        "__seq": f"IF({again}, {sequence(h.CHANGE_IDENTIFIER, tail)}, __seq)",
    }
    columns = [f"{replaced.get(name, quote(name))} AS {quote(name)}" for name in derived.columns]
    return derived.join(known, on=keys, how="left").selectExpr(*columns)


def _known(target: DatasetTable, derived: DataFrame, shape: Shape) -> DataFrame:
    """By key, what was loaded last of the records of a batch: its tail and values, as `__was`."""
    assert target.state.snapshot is not None, "there are rows"
    stored = target.spark.sql(
        f"SELECT *, coalesce({h.SEQUENCE_TAIL}, '') AS __tail "
        f"FROM {target.table.at(target.state.snapshot)} WHERE {_STORED}"
    )
    # A column that the batch has brought was NULL.
    has = set(stored.columns)
    values = [name for name in shape.values if name not in shape.hidden]
    told = [
        f"'v{n}', {quote(name) if name in has else f'CAST(NULL AS {shape.type_of(name)})'}"
        for n, name in enumerate(values)
    ]
    said = ", ".join([f"'tail', {h.SEQUENCE_TAIL}", *told])
    keys = list(shape.keys)
    wanted = derived.where(_LOADED).select(*map(quote, keys)).distinct()
    newest = functions.expr(f"max_by(named_struct({said}), __tail)")
    of_batch = stored.join(wanted, on=keys, how="left_semi")
    return of_batch.groupBy(*map(quote, keys)).agg(newest.alias("__was"))


def _is_same(shape: Shape, name: str, was: str) -> str:
    kind = shape.columns[name]
    return f"{comparable(quote(name), kind)} <=> {comparable(was, kind)}"
