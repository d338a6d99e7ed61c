"""The landed batch: what is written comes back, and what is none is told apart."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.formats import landed
from polynya.formats.errors import UnreadableFileError
from polynya.formats.landed import (
    SCHEMAS,
    Counts,
    Lost,
    StreamFooter,
    batch_name,
    batch_number,
    opened_batch,
    read_footer,
    write_batch,
)
from polynya.model.config.stream_content import CsvContent, JsonContent
from polynya.model.errors import OperationError

AT = datetime(2026, 11, 23, 12, 0, 0, 250_000, tzinfo=UTC)


def footer(**settings: Any) -> StreamFooter:
    values: dict[str, Any] = {
        "task": "clicks",
        "table": "clicks",
        "source": "kafka",
        "number": 17,
        "content": JsonContent(),
        "begin": {"topics": {}},
        "end": {"topics": {"clicks": {"id": "u-1", "partitions": {"0": 2}}}},
        "written_at": AT,
        **settings,
    }
    return StreamFooter(**values)


def kafka_rows(values: list[bytes | None]) -> pa.Table:
    count = len(values)
    columns = [
        pa.array(["clicks"] * count),
        pa.array([0] * count, pa.int64()),
        pa.array(range(count), pa.int64()),
        pa.nulls(count, pa.string()),
        pa.nulls(count, pa.string()),
        pa.array([AT] * count, pa.timestamp("us", "UTC")),
        pa.array(values, pa.binary()),
    ]
    return pa.table(columns, schema=SCHEMAS["kafka"])


def test_a_batch_comes_back_with_its_position() -> None:
    written = footer(
        content=CsvContent(type="csv", header=("a", "b")),
        counts=Counts(2, 3, 150),
        totals=Counts(40, 900, 150),
        lost=(Lost("clicks/3", "100", "250", "retention"),),
    )
    rows = kafka_rows([b"1,2", None])

    read, reader = opened_batch(io.BytesIO(write_batch(written, rows)))

    assert read == written
    assert reader.read().equals(rows)


def test_a_footer_is_the_json_of_the_contract() -> None:
    values = json.loads(footer(lost=(Lost("clicks/3", "100", "250", "retention"),)).to_json())

    assert values == {
        "version": 1,
        "task": "clicks",
        "table": "clicks",
        "source": "kafka",
        "number": 17,
        "content": {"type": "json"},
        "from": {"topics": {}},
        "to": {"topics": {"clicks": {"id": "u-1", "partitions": {"0": 2}}}},
        "written_at": "2026-11-23T12:00:00.250000+00:00",
        "counts": {"records": 0, "bytes": 0, "lost": 0},
        "totals": {"records": 0, "bytes": 0, "lost": 0},
        "lost": [{"at": "clicks/3", "from": "100", "to": "250", "why": "retention"}],
    }


def test_a_batch_without_records_has_a_position() -> None:
    written = footer(counts=Counts(lost=150))

    data = io.BytesIO(write_batch(written, kafka_rows([])))

    assert read_footer(data) == written


def test_large_batches_are_written_in_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landed, "_GROUP_BYTES", 4096)
    rows = kafka_rows([bytes([number]) * 1000 for number in range(20)])

    _, reader = opened_batch(io.BytesIO(write_batch(footer(), rows)))

    assert reader.num_row_groups > 3
    assert reader.read().equals(rows)


def test_columns_of_another_source_are_not_written() -> None:
    with pytest.raises(ValueError, match="are not those of kinesis"):
        write_batch(footer(source="kinesis"), kafka_rows([b"{}"]))


def test_names_sort_as_numbers_do() -> None:
    names = [batch_name(number) for number in (1, 9, 10, 123_456_789)]

    assert names[0] == "batch-00000000000000000001.parquet"
    assert names == sorted(names)
    assert [batch_number(f"clicks/clicks/{name}") for name in names] == [1, 9, 10, 123_456_789]
    assert batch_number("clicks/clicks/part-1.parquet") is None


def with_footer(entry: bytes | None) -> io.BytesIO:
    metadata = {} if entry is None else {landed.METADATA_KEY: entry}
    buffer = io.BytesIO()
    parquet.write_table(kafka_rows([b"{}"]).replace_schema_metadata(metadata), buffer)
    return io.BytesIO(buffer.getvalue())


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (io.BytesIO(b"PAR1 and no more"), "not a whole Parquet file"),
        (with_footer(None), "no position of a stream"),
        (with_footer(b"{"), "cannot be read"),
        (with_footer(b"[]"), "cannot be read"),
        (with_footer(b'{"version": 1}'), "cannot be read"),
        (with_footer(footer(source="kinesis").to_json().encode()), "not a landed batch of kinesis"),
        (
            with_footer(footer().to_json().replace('"kafka"', '"mqtt"').encode()),
            "source: Input should be",
        ),
    ],
)
def test_what_is_no_landed_batch_is_told(file: io.BytesIO, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read_footer(file)


def test_a_batch_of_a_newer_version_waits() -> None:
    newer = footer().to_json().replace('"version":1', '"version":2')

    with pytest.raises(OperationError) as caught:
        read_footer(with_footer(newer.encode()), "clicks/clicks/batch-1.parquet")

    assert caught.value.code == "POLYNYA-STR-020"
    assert caught.value.where == "clicks/clicks/batch-1.parquet"
