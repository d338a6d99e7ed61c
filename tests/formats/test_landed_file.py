"""Files that cannot be read are one rejected record each and never block the next file."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.formats.batch import WHOLE_FILE, FilePart, FileProgress
from polynya.formats.native.format import read_native
from polynya.store.object_store import LocalObjectStore
from tests.formats.helpers import a_dataset, column, json_lines, read, request

_GOOD = json_lines({"id": 1, "n": 1})


def _parquet() -> bytes:
    out = io.BytesIO()
    parquet.write_table(pa.table({"id": [1], "n": [1]}), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("file_format", "content"),
    [
        ("json", b"\x89PNG\r\n\x1a\n" + b"\0" * 20),
        ("json", b"PK\x03\x04rest"),
        ("json", _parquet()),
        ("json", _GOOD.decode().encode("utf-16")),
        ("json", _GOOD.decode().encode("utf-16-le")),
        ("csv", _GOOD.decode().encode("utf-32-be")),
        ("csv", b"\x80\x04\x95\0\0\xff,1\n" * 9),
        ("json", gzip.compress(_GOOD * 1000, mtime=0)[:-9]),
        ("json", gzip.compress(_GOOD, mtime=0)[:12]),
        ("json", gzip.compress(_GOOD, mtime=0) + b"trailing garbage"),
        ("json", gzip.compress(gzip.compress(_GOOD, mtime=0), mtime=0)),
        ("csv", b"id,id\n1,2\n"),
        ("csv", b'id,"n\n'),
        ("parquet", _GOOD),
        ("parquet", b""),
        ("parquet", _parquet()[:-5]),
        ("parquet", _parquet()[:20]),
        ("orc", _GOOD),
        ("orc", b"ORC nothing"),
        ("avro", _GOOD),
        ("avro", b"Obj\x01\xff\xff\xff\xff"),
    ],
)
def test_an_unreadable_file_is_quarantined_whole(file_format: str, content: bytes) -> None:
    batch = read({"bad": content}, a_dataset(file_format))

    (one,) = batch.rejected
    assert (one.file, one.offset, one.rule, one.raw) == ("bad", WHOLE_FILE, "unreadable_file", b"")
    assert one.error
    assert (batch.rows_in, batch.rows.num_rows) == (1, 0)
    assert batch.files["bad"] == FileProgress(len(content), 0, complete=True)


def test_the_next_file_is_read() -> None:
    batch = read({"a": b"\0", "b": _GOOD, "c": b"PK\x03\x04", "d": json_lines({"id": 2, "n": 2})})

    assert column(batch, "id") == [1, 2]
    assert [one.file for one in batch.rejected] == ["a", "c"]
    assert all(progress.complete for progress in batch.files.values())


@pytest.mark.parametrize("first", [b"", b"9,9,plain\n" * 2000], ids=["short", "long"])
def test_a_value_of_csv_may_hold_nul(first: bytes) -> None:
    file = b"id,n,v\n" + first + b'1,1,"a\0b"\n2,1,\0\n3,1,x\x1ay\n'

    batch = read({"a": file}, a_dataset("csv"))

    assert batch.rejected == ()
    assert column(batch, "v")[-3:] == ["a\0b", "\0", "x\x1ay"]


def test_a_line_of_json_with_nul_is_refused_alone() -> None:
    batch = read({"a": _GOOD + b"\n\0\0\n" + json_lines({"id": 2, "n": 2})})

    assert column(batch, "id") == [1, 2]
    assert [one.rule for one in batch.rejected] == ["bad_json"]


def test_gzip_is_found_by_its_magic() -> None:
    assert column(read({"plain-name.json": gzip.compress(_GOOD)}), "id") == [1]
    assert column(read({"not-really.gz": _GOOD}), "id") == [1]


def test_a_gzip_file_of_several_members_is_read_whole() -> None:
    two = gzip.compress(_GOOD + b"\n") + gzip.compress(json_lines({"id": 2, "n": 2}))

    assert column(read(two), "id") == [1, 2]


def test_compressed_parquet_is_read() -> None:
    assert column(read(gzip.compress(_parquet()), a_dataset("parquet")), "id") == [1]


def test_damage_in_the_middle_refuses_the_file_and_its_rows() -> None:
    out = io.BytesIO()
    table = pa.table({"id": list(range(1000)), "n": [str(i) * 9 for i in range(1000)]})
    parquet.write_table(table, out, row_group_size=100, use_dictionary=False)
    content = bytearray(out.getvalue())
    middle = len(content) // 2
    content[middle : middle + 400] = b"\xff" * 400

    batch = read({"bad": bytes(content), "good": _parquet()}, a_dataset("parquet"))

    assert [one.file for one in batch.rejected if one.offset == WHOLE_FILE] == ["bad"]
    assert set(column(batch, "__file")) == {"good"}


def test_a_file_that_goes_away_or_leads_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(_GOOD)
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "secret")
    parts = [FilePart("link", 1), FilePart("gone", 1)]

    batch = read_native(request(LocalObjectStore(root), a_dataset(), parts))

    assert [(one.file, one.rule) for one in batch.rejected] == [
        ("link", "unreadable_file"),
        ("gone", "unreadable_file"),
    ]
