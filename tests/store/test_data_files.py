"""Data files in both places: written whole, read in ranges, and what that asks of S3."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polynya.store.aws import data_objects
from polynya.store.aws.data_objects import S3Files
from polynya.store.data_files import DataFiles, LocalFiles
from polynya.testing.fakes import FakeClock
from tests.aws import REGION, aws_server

ROWS = pa.table({name: pa.array(range(200_000)) for name in "abcdef"})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with aws_server("lake") as endpoint:
        yield endpoint


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests that the server answered."""
    from werkzeug.serving import WSGIRequestHandler

    found: list[str] = []

    def told(handler: WSGIRequestHandler, *_: object) -> None:
        found.append(f"{handler.command} {handler.headers.get('Range', '')}".strip())

    monkeypatch.setattr(WSGIRequestHandler, "log_request", told)
    return found


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_objects, "_kept", data_objects._Kept())


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, server: str, tmp_path: Path) -> tuple[DataFiles, str]:
    """Files, and a folder for them."""
    if request.param == "local":
        return LocalFiles(), f"file:{tmp_path}/a%20b/"
    return S3Files(REGION, server), "s3://lake/a%20b/"


def test_what_was_written_is_read(place: tuple[DataFiles, str], nothing_kept: None) -> None:
    files, folder = pickle.loads(pickle.dumps(place))
    files.put(f"{folder}whole", b"abc")
    with files.create(f"{folder}stream.parquet") as stream:
        pq.write_table(ROWS, stream)

    with files.open(f"{folder}whole") as file:
        assert file.read() == b"abc"
    with files.open(f"{folder}stream.parquet") as file:
        assert pq.read_table(file, columns=["b"]).num_rows == ROWS.num_rows
    with pytest.raises(FileNotFoundError), files.open(f"{folder}nothing"):
        pass


def test_a_small_object_is_one_request_to_write_and_none_to_read(
    server: str, asked: list[str]
) -> None:
    files = S3Files(REGION, server)

    files.put("s3://lake/small", b"x" * 1000)
    with files.open("s3a://lake/small") as file:
        assert file.size() == 1000

    assert asked == ["PUT"]


def test_a_store_that_arrow_does_not_reach_is_told_once_it_is_tried(
    server: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_objects, "_tried", {})
    files = S3Files(REGION, server)
    files.put("s3://lake/metadata.json", b"{}")
    asked.clear()

    for _ in range(3):
        assert "Arrow does not reach s3://lake/nothing" in str(files.refusal("s3://lake/nothing"))
    assert asked == ["HEAD"]
    later = time.monotonic() + 6
    monkeypatch.setattr(data_objects, "time", SimpleNamespace(monotonic=lambda: later))
    assert [files.refusal("s3://lake/metadata.json") for _ in range(3)] == [None] * 3

    assert asked == ["HEAD"] * 2


def test_a_store_that_stays_out_of_reach_is_tried_less_and_less_often(
    server: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_objects, "_tried", {})
    clock = FakeClock()
    monkeypatch.setattr(data_objects, "time", clock)
    files, tries = S3Files(REGION, server), []

    while clock.monotonic() < 3000:
        asked.clear()
        files.refusal("s3://lake/nothing")
        if asked:
            tries.append(clock.monotonic())
        clock.sleep(5)

    pauses = [after - before for before, after in pairwise(tries)]
    assert pauses == [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]


def test_of_a_large_object_only_the_columns_are_asked_for(
    server: str, asked: list[str], nothing_kept: None
) -> None:
    files = S3Files(REGION, server)
    with files.create("s3://lake/large.parquet") as stream:
        pq.write_table(ROWS, stream, compression="none", use_dictionary=False)
    asked.clear()

    with files.open("s3://lake/large.parquet") as file:
        footer = pq.read_metadata(file)
    assert [one.split()[0] for one in asked] == ["HEAD", "GET"]
    asked.clear()
    for columns in (["a", "b"], ["a", "f"]):
        with files.open("s3://lake/large.parquet") as file:
            pq.ParquetFile(file, metadata=footer, pre_buffer=True).read_row_group(0, columns)

    # Columns side by side are one range.
    assert len(asked) == 3
    assert all(one.startswith("GET bytes=") for one in asked)


def test_what_is_kept_stays_in_bounds(
    monkeypatch: pytest.MonkeyPatch, server: str, asked: list[str], nothing_kept: None
) -> None:
    monkeypatch.setattr(data_objects, "_KEPT_BYTES", 250)
    files = S3Files(REGION, server)
    for name in "abc":
        files.put(f"s3://lake/{name}", b"x" * 100)
    asked.clear()

    for name in "cba":
        with files.open(f"s3://lake/{name}") as file:
            assert file.read() == b"x" * 100

    assert [one.split()[0] for one in asked] == ["HEAD", "GET"]
