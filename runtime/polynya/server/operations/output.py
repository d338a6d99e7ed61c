"""The output of an operation for people who may not read every row.

Whoever sees operations sees what commands say. `verify` and `compare` also name keys of rows, and a
key may be what a person must not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_HIDDEN: Final = "keys of rows, which only people see who may read every view whole"


def without_keys(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of output without keys of rows; it says what is left out."""
    found = dict(line)
    match line.get("type"):
        case "dataset.verified":
            found["findings"] = [_without(one, "example") for one in line.get("findings", ())]
        case "table.compared":
            found["differences"] = [_without(one, "key") for one in line.get("differences", ())]
            found["undecided"] = [None for _ in line.get("undecided", ())]
        case _:
            return found
    return {**found, "hidden": _HIDDEN}


def _without(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != name}
