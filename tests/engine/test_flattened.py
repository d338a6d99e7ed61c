"""A capture that was flattened, as lines and as Avro, compressed and not, through to the views."""

from __future__ import annotations

import bz2
import io
import json
from typing import Any

import fastavro

from tests.lab.lab import EPOCH, Lab

_MILLIS = int(EPOCH.timestamp()) * 1000
_AVRO = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "pk", "type": "int"},
        {"name": "cola", "type": ["null", "string"]},
        *({"name": name, "type": "string"} for name in ("__op", "__table", "__schema")),
        *({"name": name, "type": "long"} for name in ("__lsn", "__source_ts_ms")),
        {"name": "__deleted", "type": "string"},
    ],
}


def test_dbz_4_rewritten_deletes_and_everything_before_them(lab: Lab) -> None:
    """Conformance case DBZ-4 in the life of its row; the order is the log's, not the arrival's."""
    task = lab.capture(landing={"flattened": True}, keys=["pk"])

    def row(lsn: int, op: str, pk: int, cola: str | None) -> dict[str, Any]:
        place = {"__op": op, "__table": "t", "__schema": lab.schema, "__lsn": lsn}
        mark = "true" if op == "d" else "false"
        times = {"__source_ts_ms": _MILLIS + lsn * 1000, "__deleted": mark}
        return {"pk": pk, "cola": cola, **place, **times}

    deleted = {"key": {"pk": 2}, "value": row(3, "d", 2, None)}
    lines = (deleted, {"key": {"pk": 2}, "value": None}, row(2, "u", 1, "b"))
    container = io.BytesIO()
    fastavro.writer(container, _AVRO, [row(1, "c", 2, "a"), row(4, "c", 3, "c")], codec="snappy")

    (task.folder / "0001.json.bz2").write_bytes(bz2.compress(_text(*lines)))
    task.run()
    (task.folder / "0002.avro").write_bytes(container.getvalue())
    task.run("always")

    table = task["t"]
    assert table.current("pk", "cola") == [(1, "b"), (3, "c")]
    assert table.history("pk", "cola") == [
        (1, "b", "I", 2.0, None),
        (2, "a", "D", 3.0, None),
        (2, "a", "I", 1.0, 3.0),
        (3, "c", "I", 4.0, None),
    ]
    assert table.columns() == ["pk", "cola"]
    assert (table.totals()["in"], task.ledger().totals()["filtered"]) == (4, 1)


def _text(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)
