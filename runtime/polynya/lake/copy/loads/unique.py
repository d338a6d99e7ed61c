"""Whether the keys of staged rows differ from each other and from those of Current."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from polynya.formats.loads import KeyRange
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import within
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.staged import staged_rows
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote
from polynya.model.datatypes import BIGINT, INT


def keys_are_unique(
    target: DatasetTable,
    shape: Shape,
    staged: Sequence[DataFile],
    ranges: Sequence[KeyRange | None],
) -> bool:
    """Whether no key of the staged rows for Current stands twice, or in Current already.

    `ranges` are what each split of the load says of its keys. Without a proof in them the keys are
    read back.
    """
    new = [file for file in staged if file.partition == Partition.CURRENT]
    if not new or _is_proven(target, shape, ranges):
        return True
    keys = [quote(key) for key in shape.keys]
    listed = ", ".join(keys)
    with staged_rows(target.table, new) as staged_keys:
        rows = staged_keys.selectExpr(*keys)
        snapshot = target.state.snapshot
        if snapshot is not None and target.table.files(Partition.CURRENT, snapshot):
            known = target.spark.sql(
                f"SELECT {listed} FROM {target.table.at(snapshot)} "
                f"WHERE {within(Partition.CURRENT)}"
            )
            rows = rows.unionAll(known)
        return rows.groupBy(*keys).count().where("count > 1").isEmpty()


def _is_proven(target: DatasetTable, shape: Shape, ranges: Sequence[KeyRange | None]) -> bool:
    told = [one for one in ranges if one is not None]
    if len(told) < len(ranges):
        return False
    lows = [one.low for one in told]
    if not (all(type(low) is int for low in lows) or all(type(low) is str for low in lows)):
        return False
    told.sort(key=lambda one: one.low)
    if any(before.high >= after.low for before, after in pairwise(told)):  # type: ignore[operator]
        return False
    return _is_apart_from_current(target, shape, told)


def _is_apart_from_current(target: DatasetTable, shape: Shape, told: Sequence[KeyRange]) -> bool:
    snapshot, (key,) = target.state.snapshot, shape.keys
    if snapshot is None or not target.table.files(Partition.CURRENT, snapshot):
        return True
    if shape.columns[key] not in {INT, BIGINT}:
        return False
    known = target.table.bounds(Partition.CURRENT, snapshot, key)
    if known is None:
        return False
    low, high = known
    return all(one.high < low or high < one.low for one in told)  # type: ignore[operator]
