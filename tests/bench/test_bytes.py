"""What the benchmark of bytes and requests calls the files of a table."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.bytes import kind_of


def parquet(**columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def manifest(content: str) -> bytes:
    buffer = io.BytesIO()
    schema = {"type": "record", "name": "entry", "fields": []}
    fastavro.writer(buffer, schema, [], metadata={"content": content})
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("metadata/00001-a.gz.metadata.json", b"", "metadata of the table"),
        ("metadata/snap-1-1-a.avro", b"", "manifest list"),
        ("metadata/a-m0.avro", manifest("data"), "manifest of data"),
        ("metadata/a-m1.avro", manifest("deletes"), "manifest of deletes"),
        ("data/a.parquet", parquet(hdr__partition=["asset_state"]), "state"),
        ("data/b.parquet", parquet(hdr__partition=["changes"]), "events"),
        ("data/c.parquet", parquet(hdr__partition=["prior"]), "rows of prior"),
        ("data/d-deletes.parquet", parquet(file_path=["a"], pos=[1]), "position deletes"),
    ],
)
def test_each_file_of_a_table_has_a_kind(path: str, content: bytes, kind: str) -> None:
    assert kind_of(path, content) == kind
