"""Random histories of folders: each row that differs has its key among those that changed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.read.registered_folders import folder_of
from polynya.model.config.aws import AwsAccess
from polynya.model.config.registered import RegisteredDataset, RegisteredName, RegisteredTable
from tests.engine.tasks.test_registered_changes import DeltaOwner, FolderOwner


@pytest.mark.parametrize("form", [DeltaOwner, FolderOwner])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_each_row_that_differs_has_a_changed_key(tmp_path: Path, form: Any, seed: int) -> None:
    random, owner = Random(seed), form(tmp_path / "rates")
    table = RegisteredTable(name="rates", keys=("currency",), **owner.settings)
    name = RegisteredName("crm", "rates")
    folder = folder_of(RegisteredDataset("crm", name, table), AwsAccess())
    assert folder is not None
    owner.append(random)
    states: list[tuple[int, dict[str, Any]]] = []
    known = 0
    for _ in range(12):
        now = folder.newest()
        read = pa.Table.from_batches(list(folder.batches(now)), now.schema).to_pylist()
        assert {row["currency"]: (row["rate"], row["at"]) for row in read} == owner.rates
        for number, before in states[-4:]:
            changes = folder.changes(number, now.number)
            if isinstance(changes, str):
                continue
            keys = changes.keys(folder.store, ["currency"], 1000)
            if isinstance(keys, str):
                continue
            known += 1
            differ = {
                one for one in {*before, *owner.rates} if before.get(one) != owner.rates.get(one)
            }
            assert differ <= set(keys.column("currency").to_pylist())
        states.append((now.number, dict(owner.rates)))
        owner.deeds[random.choice(sorted(owner.deeds))](random)
    assert known > 3
