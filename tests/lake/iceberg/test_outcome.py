"""Whether a step is in the table when the catalog did not say so, also after an expiry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from polynya.lake.iceberg.commit import CommitStep, _is_live
from polynya.lake.iceberg.files import DataFile, TableSnapshot
from polynya.lake.iceberg.table import IcebergTable

STATE = DataFile(None, "ours.parquet", "asset_state", 1, 10)
OTHER = DataFile(None, "later.parquet", "asset_state", 1, 10)


class Known:
    """A table as far as the question needs it: its snapshots, the newest last, and its states."""

    def __init__(self, snapshots: Sequence[TableSnapshot], states: Sequence[DataFile]) -> None:
        self._snapshots = {one.number: one for one in snapshots}
        self._newest = snapshots[-1]
        self._states = states

    def refresh(self) -> None:
        """Nothing else has happened."""

    def current(self) -> TableSnapshot:
        return self._newest

    def snapshot(self, number: int) -> TableSnapshot | None:
        return self._snapshots.get(number)

    def files(self, *_: Any) -> Sequence[DataFile]:
        return self._states


def made(number: int, commit: str = "other") -> TableSnapshot:
    return TableSnapshot(number, number - 1 or None, 1, commit, 0)


@pytest.mark.parametrize(
    ("snapshots", "states", "live"),
    [
        ([made(1), made(2, "ours"), made(3)], [OTHER], True),
        ([made(1), made(2), made(3)], [OTHER], False),
        ([made(7), made(8)], [STATE], True),
        ([made(7), made(8)], [OTHER], None),
    ],
    ids=["found", "not there", "expired, its state is there", "expired"],
)
def test_a_step_is_looked_for(
    snapshots: list[TableSnapshot], states: list[DataFile], live: bool | None
) -> None:
    table = cast("IcebergTable", Known(snapshots, states))
    step = CommitStep("ours", based_on=1, add=[STATE])

    assert _is_live(table, step) is live
