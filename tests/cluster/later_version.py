"""What a later version of Polynya says more: in objects, inside of them, in records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.cluster.simulation.judge.records import FOREIGN, decoded

MORE: Final[Mapping[str, Any]] = {
    "minor": 1,
    FOREIGN: {"zone": {"name": "north", "racks": [1, {"a": None}]}},
}


def object_with_more(data: bytes) -> bytes:
    """An object of the cluster as the later version writes it; what it read stays."""
    fields = decoded(data)
    if fields is None or "nonce" not in fields:
        return data
    fields = {**MORE, **fields}
    if "units" in fields:
        fields["units"] = [
            unit if len(unit) > 3 else [*unit, {"weight": 1}] for unit in fields["units"]
        ]
    return json.dumps(fields).encode()


def record_with_more(data: bytes) -> bytes:
    """A record of the stream as the later version writes it."""
    fields = json.loads(data) | MORE
    if "units" in fields:
        fields["units"] = [one | MORE for one in fields["units"]]
    return json.dumps(fields).encode()
