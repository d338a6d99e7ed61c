"""Events as landed records: native JSON objects and Debezium envelopes as PostgreSQL gives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.oracle.fold import DELETE, TRUNCATE, Event
from tests.oracle.values import EPOCH, canonical, to_iso

UNAVAILABLE = "__debezium_unavailable_value"
NATIVE_SETTINGS: Mapping[str, Any] = {
    "sequence_by": ["seq"],
    "timestamp": "eventTime",
    "apply_as_deletes": "op = 'D'",
    "apply_as_truncates": "op = 'T'",
    "except_columns": ["op", "seq", "eventTime"],
}


def native_line(event: Event, keys: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """One JSON object with `op`, `seq` and `eventTime` beside keys and columns.

    A column that was not sent is NULL, which `ignore_null_updates` understands. Native records
    cannot say "was another key": such events are refused here.
    """
    assert event.old_key is None, "a native record has no old key"
    op = {DELETE: "D", TRUNCATE: "T"}.get(event.op, "U")
    key = event.key or (None,) * len(keys)
    return {
        **dict(zip(keys, canonical(key), strict=True)),
        **{name: canonical(event.values.get(name)) for name in columns},
        "op": op,
        "seq": event.sequence,
        "eventTime": to_iso(event.timestamp),
    }


def debezium_lines(
    events: Iterable[Event],
    schema: str,
    table: str,
    keys: Sequence[str],
) -> list[dict[str, Any]]:
    """Envelopes with schemas off: each event, a tombstone after a delete, transaction metadata.

    The sequence of an event is (commit position, order inside the transaction).
    """
    lines: list[dict[str, Any]] = []
    for event in events:
        lines.append(_envelope(event, schema, table, keys))
        if event.op == DELETE:
            lines.append({**_record(event, schema, table, keys), "value": None})
        lines.extend(_noise(event, schema, table))
    return lines


def place(event: Event) -> tuple[int, int]:
    """Commit position and order of an event; a conformance case's rank and number count as well."""
    first, second = event.sequence
    return (second[0], 1) if isinstance(second, tuple) else (first, second)


def _record(event: Event, schema: str, table: str, keys: Sequence[str]) -> dict[str, Any]:
    headers = [["__debezium.context.connectorName", '"postgresql"']]
    if event.old_key is not None:
        old = dict(zip(keys, canonical(event.old_key), strict=True))
        headers.insert(0, ["__debezium.oldkey", json.dumps(old)])
    key = dict(zip(keys, canonical(event.key), strict=True)) if event.key else None
    return {
        "destination": f"pg.{schema}.{table}",
        "partition": None,
        "headers": headers,
        "key": key,
    }


def _envelope(event: Event, schema: str, table: str, keys: Sequence[str]) -> dict[str, Any]:
    commit, order = place(event)
    assert event.timestamp is not None
    micros = round((event.timestamp - EPOCH).total_seconds() * 1_000_000)
    micros += round(EPOCH.timestamp()) * 1_000_000
    record = _record(event, schema, table, keys)
    # Concurrent transactions: the LSN of an event says nothing about its commit order.
    lsn = commit + (7919 * (commit + order)) % 5000
    sequence = [None if event.is_load else str(commit), str(commit if event.is_load else lsn)]
    source = {
        "version": "3.6.3.Final",
        "connector": "postgresql",
        "name": "pg",
        "ts_ms": micros // 1000,
        "ts_us": micros,
        "ts_ns": micros * 1000,
        "snapshot": "true" if event.is_load else "false",
        "db": "d",
        "schema": schema,
        "table": table,
        "txId": commit % 100_000,
        "sequence": json.dumps(sequence),
        "lsn": commit if event.is_load else lsn,
        "xmin": None,
    }
    transaction = (
        None
        if event.is_load
        else {
            "id": f"{commit % 100_000}:{commit}",
            "total_order": order,
            "data_collection_order": order,
        }
    )
    before, after = _images(event, record["key"])
    value = {
        "before": before,
        "after": after,
        "source": source,
        "transaction": transaction,
        "op": _op(event),
        "ts_ms": micros // 1000 + 5,
    }
    return {**record, "value": value}


def _images(event: Event, key: dict[str, Any] | None) -> tuple[Any, Any]:
    if event.op == TRUNCATE:
        return None, None
    assert key is not None
    if event.op == DELETE:
        return dict(key), None
    sent = {name: canonical(value) for name, value in event.values.items()}
    hidden = {name: [UNAVAILABLE] if name == "tags" else UNAVAILABLE for name in event.unsent}
    return None, {**key, **sent, **hidden}


def _op(event: Event) -> str:
    if event.op in (DELETE, TRUNCATE):
        return {DELETE: "d", TRUNCATE: "t"}[event.op]
    if event.is_load:
        return "r"
    created = event.old_key is not None or int(event.content_hash(), 16) % 2
    return "c" if created else "u"


def _noise(event: Event, schema: str, table: str) -> list[dict[str, Any]]:
    """Transaction metadata now and then, which is no row of any table."""
    commit, order = place(event)
    if event.is_load or order % 3 != 1:
        return []
    name = f"{commit % 100_000}:{commit}"
    value = {
        "status": "END",
        "id": name,
        "event_count": order,
        "ts_ms": 1_767_225_600_000,
        "data_collections": [{"data_collection": f"{schema}.{table}", "event_count": order}],
    }
    return [
        {
            "destination": "pg.transaction",
            "partition": None,
            "headers": [],
            "key": {"id": name},
            "value": value,
        }
    ]
