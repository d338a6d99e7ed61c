"""Real Debezium records of the PostgreSQL connector as events of the fold, read independently.

Only what the captured workload contains: schemas off, string decimals, key changes, values that
were not sent, tombstones, transaction metadata, duplicates after a restart.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.oracle.emit import UNAVAILABLE
from tests.oracle.fold import DELETE, TRUNCATE, UPSERT, Event
from tests.oracle.packs.driver import ROOT
from tests.oracle.values import EPOCH

_OPS = {"d": DELETE, "t": TRUNCATE}


_PROJECT = ROOT / "examples" / "bank"


def capture_folder() -> Path:
    """Folder of the captured workload."""
    return _PROJECT / "landing" / "bank"


def end_state(table: str) -> list[dict[str, Any]]:
    """Rows of a table as the source database had them after the last captured event."""
    with (_PROJECT / "source_truth" / f"{table}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Landed records of a gzip file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def events(landed: Iterable[Mapping[str, Any]]) -> dict[str, list[Event]]:
    """Events by `schema.table`, in order of arrival; what belongs to no table is left out."""
    found: dict[str, list[Event]] = {}
    for record in landed:
        value = record["value"]
        if not value or "source" not in value or value.get("op") not in tuple("crudt"):
            continue
        source = value["source"]
        found.setdefault(f"{source['schema']}.{source['table']}", []).append(_event(record, value))
    return found


def _event(record: Mapping[str, Any], value: Mapping[str, Any]) -> Event:
    source = value["source"]
    key = record["key"] or {}
    after = value.get("after") or {}
    headers = {name: json.loads(text) for name, text in record["headers"]}
    old = headers.get("__debezium.oldkey")
    unsent = frozenset(n for n, v in after.items() if v in (UNAVAILABLE, [UNAVAILABLE]))
    commit = int(json.loads(source["sequence"])[0] or source["lsn"])
    order = (value["transaction"] or {}).get("total_order", 0)
    micros = source["ts_us"] - round(EPOCH.timestamp()) * 1_000_000
    return Event(
        key=tuple(key.values()),
        sequence=(commit, order),
        op=_OPS.get(value["op"], UPSERT),
        values={n: v for n, v in after.items() if n not in key and n not in unsent},
        timestamp=EPOCH + timedelta(microseconds=micros),
        unsent=unsent,
        old_key=tuple(old.values()) if old else None,
        is_load=value["op"] == "r" and source["snapshot"] not in ("false", "incremental"),
    )
