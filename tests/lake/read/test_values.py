"""Values of an answer as JSON: what an Arrow type says decides, also where there is no value."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.read.values import json_rows

WALL = datetime(2026, 1, 2, 3, 4, 5)
INSTANT = WALL.replace(tzinfo=UTC)
NTZ, TZ = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
TEXT_MAP = pa.map_(pa.string(), pa.int32())


@pytest.mark.parametrize(
    ("kind", "value", "json"),
    [
        (NTZ, WALL, "2026-01-02T03:04:05"),
        (TZ, INSTANT, "2026-01-02T03:04:05Z"),
        (pa.list_(NTZ), [WALL, None], ["2026-01-02T03:04:05", None]),
        (pa.struct({"a": NTZ, "b": TZ}), {"a": WALL, "b": INSTANT},
         {"a": "2026-01-02T03:04:05", "b": "2026-01-02T03:04:05Z"}),
        (pa.map_(NTZ, TZ), [(WALL, INSTANT)], {"2026-01-02T03:04:05": "2026-01-02T03:04:05Z"}),
        (TEXT_MAP, [], {}),
        (TEXT_MAP, None, None),
        (pa.list_(TEXT_MAP), [[], None], [{}, None]),
        (pa.list_(pa.string()), [], []),
        (pa.struct({"m": TEXT_MAP, "l": pa.list_(pa.int32())}), {"m": [], "l": []},
         {"m": {}, "l": []}),
        (pa.decimal128(5, 2), Decimal("1.50"), "1.50"),
        (pa.binary(), b"\x00\xff", "00ff"),
        (pa.float64(), float("nan"), "nan"),
    ],
)  # fmt: skip
def test_values_are_written_as_their_type_says(kind: pa.DataType, value: Any, json: Any) -> None:
    batch = pa.record_batch({"v": pa.array([value], kind)})

    assert list(json_rows(batch)) == [{"v": json}]
