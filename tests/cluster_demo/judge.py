"""The tables against the oracle: what is lost, what is there twice. No code of the runtime is used.

Tables are read by DuckDB; what they have to hold is folded from the events that were landed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster_demo.captured import Dataset
from tests.cluster_demo.project import SCHEMA
from tests.oracle.fold import fold
from tests.oracle.packs.read_back import READERS, internal_table
from tests.oracle.values import as_time, canonical


@dataclass(frozen=True)
class Verdict:
    """One table: rows that it has to hold, that are lost, that are twice or that nobody landed."""

    name: str
    wanted: int
    lost: int
    surplus: int


def judge(folder: Path, datasets: Sequence[Dataset], reader: str = "duckdb") -> list[Verdict]:
    """Every version of every key, and Current, in keyed tables; every row of the others."""
    found = []
    for one in datasets:
        wanted, stored = Counter(_wanted(one)), Counter(_stored(folder, one, reader))
        lost, surplus = wanted - stored, stored - wanted
        found.append(Verdict(one.name, wanted.total(), lost.total(), surplus.total()))
    return found


def _wanted(one: Dataset) -> Iterable[tuple[Any, ...]]:
    if not one.keyed:
        for event in one.events:
            yield (event.sequence, event.key[0], event.op, *_values(one, event.values))
        return
    folded = fold(one.events)
    for version in folded.history():
        time = as_time(canonical(version.from_ts))
        yield ("version", version.key[0], version.op, time, *_values(one, version.values))
    for version in folded.current().values():
        yield ("current", version.key[0], *_values(one, version.values))


def _stored(folder: Path, one: Dataset, reader: str) -> Iterable[tuple[Any, ...]]:
    own = ("hdr__operation", "hdr__from_timestamp") if one.keyed else ("n", "op")
    columns = ("hdr__partition", "id", *own, *one.columns)
    for row in READERS[reader](folder, *internal_table(SCHEMA, one.name), columns):
        part = row["hdr__partition"]
        values = tuple(row[name] for name in one.columns)
        if part in ("asset_state", "quarantine"):
            continue
        if not one.keyed:
            yield (row["n"], row["id"], row["op"], *values)
            continue
        if part == "changes":
            yield ("not applied", row["id"])
            continue
        time = as_time(canonical(row["hdr__from_timestamp"]))
        yield ("version", row["id"], row["hdr__operation"], time, *values)
        if part == "current":
            yield ("current", row["id"], *values)


def _values(one: Dataset, values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(values.get(name) for name in one.columns)
