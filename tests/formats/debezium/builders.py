"""Change events in few words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polynya.formats.base import KnownTable, ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, Rejected
from polynya.formats.debezium.format import read_debezium, reread_debezium
from polynya.formats.debezium.tables import DebeziumScope
from polynya.model.types import DataType
from polynya.testing.fakes import MemoryObjectStore
from tests.formats.helpers import a_dataset

SAMPLES = Path(__file__).parents[2] / "data" / "debezium"


def a_source(**changes: Any) -> dict[str, Any]:
    """A PostgreSQL source block of table `w.t`."""
    source = {
        "connector": "postgresql",
        "db": "wl",
        "schema": "w",
        "table": "t",
        "lsn": 1000,
        "sequence": '["900","1000"]',
        "ts_ms": 1767225601000,
        "snapshot": "false",
    }
    return {**source, **changes}


def an_event(
    op: str = "c",
    after: Mapping[str, Any] | None = None,
    *,
    key: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    order: int | None = 1,
    headers: Any = None,
    **source: Any,
) -> dict[str, Any]:
    """An event of table `w.t`; without `order` there is no transaction metadata."""
    value = {
        "op": op,
        "before": before,
        "after": after,
        "source": a_source(**source),
        "transaction": None if order is None else {"id": "1", "total_order": order},
        "ts_ms": 1767225602000,
    }
    return {"key": key, "value": value, "headers": headers or []}


def with_schema(event: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The event with a schema on its value; a field is a type name or a whole schema."""
    typed = [
        {**({"type": kind} if isinstance(kind, str) else kind), "field": name, "optional": True}
        for name, kind in fields.items()
    ]
    schema = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": typed}]}
    return {**event, "value": {"schema": schema, "payload": event["value"]}}


def capture(*events: Any) -> bytes:
    """Events as the lines of a file; bytes stand for themselves."""
    return b"\n".join(e if isinstance(e, bytes) else json.dumps(e).encode() for e in events)


def known_tables(
    schemas: Mapping[str, Mapping[str, DataType]] | None = None,
    keys: Mapping[str, tuple[str, ...]] | None = None,
    done: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, KnownTable]:
    """What is known of tables, by source."""
    schemas, keys, done = schemas or {}, keys or {}, done or {}
    return {
        name: KnownTable(
            a_dataset("debezium", source=name),
            schemas.get(name, {}),
            keys.get(name, ()),
            done.get(name, {}),
        )
        for name in {*schemas, *keys, *done}
    }


def read_capture(
    content: bytes | Mapping[str, bytes],
    scope: DebeziumScope | None = None,
    known: Mapping[str, Mapping[str, DataType]] | None = None,
    *,
    limits: BatchLimits | None = None,
    starts: Mapping[str, int] | None = None,
    done: Mapping[str, Mapping[str, int]] | None = None,
    keys: Mapping[str, tuple[str, ...]] | None = None,
) -> ReadBatch:
    """Read captures from memory and check the accounting of all datasets together."""
    files = {"f": content} if isinstance(content, bytes) else content
    parts = [FilePart(path, len(data), (starts or {}).get(path, 0)) for path, data in files.items()]
    tables = known_tables(known, keys, done)
    request = ReadRequest(MemoryObjectStore(files), parts, tables, limits or BatchLimits())
    batch = read_debezium(request, scope or DebeziumScope())
    assert batch.unrouted is not None
    everything = [batch.unrouted, *batch.datasets.values()]
    for one in everything:
        assert one.rows_in == one.rows.num_rows + len(one.rejected) + one.rows_filtered
        assert one.files == batch.unrouted.files
        one.rows.validate(full=True)
    assert batch.unrouted.rows_filtered == sum(batch.unrouted.counters.values())
    whole_files = sum(1 for one in batch.unrouted.rejected if one.offset < 0)
    if not done and not starts:
        read = sum(progress.records for progress in batch.unrouted.files.values())
        assert sum(one.rows_in for one in everything) == read + whole_files
    return batch


def the_table(*events: Any, **options: Any) -> DatasetBatch:
    """The batch of table `w.t`."""
    return read_capture(capture(*events), **options).datasets["w.t"]


def reread_capture(
    records: Sequence[Rejected],
    scope: DebeziumScope | None = None,
    known: Mapping[str, Mapping[str, DataType]] | None = None,
) -> ReadBatch:
    """Read quarantined lines again."""
    request = RereadRequest(MemoryObjectStore(), records, known_tables(known))
    return reread_debezium(request, scope or DebeziumScope())


def reread_line(
    raw: bytes,
    scope: DebeziumScope | None = None,
    known: Mapping[str, Mapping[str, DataType]] | None = None,
    *,
    offset: int = 0,
) -> ReadBatch:
    """Read one quarantined line again."""
    return reread_capture([Rejected("f", offset, "", "", raw)], scope, known)
