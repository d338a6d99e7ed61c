"""A document on one line is one record: the error about missing keys names the path to set."""

from __future__ import annotations

import json

import pytest

from polynya.engine.evolution import (
    batch_columns,
    find_unknown_columns,
    unknown_columns_refusal,
)
from polynya.lake.table.state import CopyState
from polynya.model.config.settings import Delivery
from tests.formats.helpers import a_dataset, read

_ROWS = [{"id": 1, "n": 1}, {"id": 2, "n": 2}]


@pytest.mark.parametrize(
    ("document", "record_path", "advice"),
    [
        ({"next": None, "results": _ROWS}, None, "`record_path: $.results` under `landing`"),
        ({"data": {"page": 1, "items": _ROWS}}, None, "`record_path: $.data.items`"),
        ({"data": [{"items": _ROWS}]}, "$.data", None),
        ({"results": [{"key": 1}]}, None, None),
        ({"re.sults": _ROWS}, None, None),
    ],
)
def test_the_path_of_the_records_is_named(
    document: dict[str, object], record_path: str | None, advice: str | None
) -> None:
    dataset = a_dataset(delivery=Delivery(record_path=record_path))
    seen = batch_columns(read(json.dumps(document).encode(), dataset), dataset)

    stopping, _ = find_unknown_columns(dataset, CopyState(), seen)
    fix = unknown_columns_refusal(dataset, seen, stopping).fix or ""

    assert stopping
    if advice is None:
        assert "record_path" not in fix
    else:
        assert f"set {advice}" in fix
