"""Which files Arrow reads and writes by itself, and why not the others."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from polynya.lake.iceberg.reading import S3_FILE_IO, FileAccess, reach_of
from polynya.lake.iceberg.table import IcebergTable
from polynya.store.aws.data_objects import S3Files
from polynya.store.data_files import LocalFiles

REGION = {"client.region": "eu-central-1"}
PLACE = "s3://lake/tables/shop"
S3 = S3Files("eu-central-1")
SERVER = "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("location", "options", "files"),
    [
        ("/warehouse/shop", {}, LocalFiles()),
        ("file:/warehouse/shop", {}, LocalFiles()),
        (PLACE, REGION, S3),
        ("s3a://lake/tables/shop", REGION, S3),
        (PLACE, {**REGION, "s3.retry.num-retries": "9", "warehouse": "s3://lake/"}, S3),
        (PLACE, {**REGION, "s3.endpoint": SERVER, "s3.path-style-access": "true"},
         S3Files("eu-central-1", SERVER)),
        (PLACE, {**REGION, "s3.endpoint": SERVER},
         S3Files("eu-central-1", SERVER, virtual_hosts=True)),
    ],
)  # fmt: skip
def test_local_files_and_s3_are_read_and_written(
    location: str, options: dict[str, str], files: object
) -> None:
    assert reach_of(location, S3_FILE_IO, options) == FileAccess(files, files)


@pytest.mark.parametrize(
    ("location", "file_io", "options", "why"),
    [
        ("hdfs://host/shop", "org.apache.iceberg.hadoop.HadoopFileIO", {}, "HadoopFileIO"),
        ("s3a://lake/shop", "org.apache.iceberg.hadoop.HadoopFileIO", {}, "HadoopFileIO"),
        (PLACE, S3_FILE_IO, {}, "no region"),
        ("s3://lake//shop", S3_FILE_IO, REGION, "not a location in S3"),
        (PLACE, S3_FILE_IO, {**REGION, "s3.sse.type": "custom", "s3.sse.key": "hush"}, "a key"),
        (PLACE, S3_FILE_IO, {**REGION, "s3.secret-access-key": "hush"}, "s3.secret-access-key"),
        (PLACE, S3_FILE_IO, {**REGION, "client.assume-role.arn": "hush"}, "client.assume-role.arn"),
        (PLACE, S3_FILE_IO, {**REGION, "http-client.proxy-endpoint": "hush"}, "proxy"),
    ],
)
def test_what_arrow_cannot_do_as_java_does_is_left_to_java(
    location: str, file_io: str, options: dict[str, str], why: str
) -> None:
    reach = reach_of(location, file_io, options)

    assert isinstance(reach.reads, str)
    assert why in reach.reads
    assert "hush" not in reach.reads
    assert reach.writes == reach.reads


def test_files_with_a_key_of_their_own_are_read_and_not_written() -> None:
    reach = reach_of(PLACE, S3_FILE_IO, {**REGION, "s3.sse.type": "kms", "s3.sse.key": "arn:…"})

    assert reach.reads == S3
    assert reach.writes == "Arrow cannot ask S3 for encryption of the type kms"


class JavaTable:
    """A Java `Table` in S3, as far as it says how its files are reached."""

    class _FileIo:
        def getClass(self) -> Any:
            return SimpleNamespace(getName=lambda: S3_FILE_IO)

        def properties(self) -> dict[str, str]:
            return REGION

        def credentials(self) -> Any:
            return SimpleNamespace(size=lambda: 0)

    def io(self) -> Any:
        return self._FileIo()

    def location(self) -> str:
        return PLACE

    def operations(self) -> Any:
        metadata = SimpleNamespace(metadataFileLocation=lambda: f"{PLACE}/metadata/1.json")
        return SimpleNamespace(current=lambda: metadata)


def test_a_table_that_arrow_could_not_reach_once_is_read_by_arrow_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["Arrow finds no credentials", None])
    monkeypatch.setattr(S3Files, "refusal", lambda _files, _location: next(answers))
    mapper = SimpleNamespace(writeValueAsString=json.dumps)
    table = IcebergTable.__new__(IcebergTable)
    table.spark = MagicMock()
    table.spark._jvm.com.fasterxml.jackson.databind.ObjectMapper.return_value = mapper
    table._java, table._reach, table._is_reached = JavaTable(), None, False

    reached = [table.reach().reads for _ in range(3)]

    # Once it was reached, it is not asked again.
    assert reached == ["Arrow finds no credentials", S3, S3]
