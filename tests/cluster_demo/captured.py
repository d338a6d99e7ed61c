"""The demo's capture of PostgreSQL, dealt by key to tables: who shares work needs several units."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.oracle.fold import DELETE, UPSERT, Event
from tests.oracle.packs.driver import ROOT
from tests.oracle.values import EPOCH

CAPTURE = ROOT / "examples/bank/landing/bank/postgres_workload.jsonl.gz"
PARTS = 3
COLUMNS = {"accounts": ("owner", "balance"), "lines": ("qty", "price")}


@dataclass(frozen=True)
class Dataset:
    """One table: `keyed` ones have a history, the others keep every event as a row."""

    task: str
    name: str
    keyed: bool
    columns: Sequence[str]
    events: Sequence[Event]


def datasets(rows: int) -> list[Dataset]:
    """Six datasets with so many events each at most, in the order of the capture."""
    dealt: dict[tuple[str, int], list[Event]] = {}
    for number, (table, key, after) in enumerate(_changes(CAPTURE)):
        part = hash_of(key) % PARTS
        events = dealt.setdefault((table, part), [])
        if len(events) < rows:
            values = {name: _text(after, name) for name in COLUMNS[table]}
            op = DELETE if after is None else UPSERT
            moment = EPOCH + timedelta(seconds=number)
            events.append(Event((key,), number, op, values, moment))
    return [
        Dataset(table, f"{table}_{part}", table == "accounts", COLUMNS[table], events)
        for (table, part), events in sorted(dealt.items())
    ]


def hash_of(key: str) -> int:
    """The same in every process."""
    return sum(key.encode())


def _changes(capture: Path) -> Iterator[tuple[str, str, Mapping[str, Any] | None]]:
    """Table, key and the row after each change; None after a delete."""
    with gzip.open(capture, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            value = record["value"]
            if not value or "op" not in value:
                continue
            key = ":".join(str(part) for part in record["key"].values())
            yield value["source"]["table"], key, value["after"] if value["op"] != "d" else None


def _text(row: Mapping[str, Any] | None, name: str) -> str | None:
    value = None if row is None else row.get(name)
    return None if value is None else str(value)[:40]
