"""Stores that others write: listed by how paths begin, alike in folders, in memory and in S3."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError
from polynya.model.names import S3Location
from polynya.store.aws.s3 import S3SourceStore
from polynya.store.places import LocalSourceStore, SourceStore, source_at
from polynya.testing.fakes import MemorySourceStore

PATHS = ("a", "a-b/1", "a/1", "a/2/x", "a/2/y", "a/20", "a0", "b/c/d/1", "bc/1")


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SourceStore:
    if request.param == "memory":
        return MemorySourceStore()
    if request.param == "local":
        (tmp_path / "root").mkdir()
        return source_at(tmp_path / "root", AwsAccess())
    return source_at(request.getfixturevalue("place"), request.getfixturevalue("access"))


def listed(store: SourceStore, start: str, after: str = "") -> list[str]:
    return [info.path for info in store.beginning(start, after)]


def test_a_part_of_a_store_is_listed_by_any_beginning(store: SourceStore) -> None:
    # A folder cannot be a file too.
    paths = [path for path in PATHS if path != "a"]
    for path in paths:
        store.put(path, b"x")

    for start in ("", "a", "a/", "a/2", "a/2/", "a-", "b/c", "nothing", "a/nothing/x"):
        assert listed(store, start) == [path for path in paths if path.startswith(start)]


def test_a_listing_goes_on_after_a_path(store: SourceStore) -> None:
    paths = sorted(path for path in PATHS if path != "a")
    for path in paths:
        store.put(path, b"x")

    for after in ("a-b/1", "a/2", "a/2/x", "a/zzz", "z"):
        assert listed(store, "", after) == [path for path in paths if path > after]
    assert listed(store, "a/2", "a/2/x") == ["a/2/y", "a/20"]


def test_folders_are_found_without_what_is_in_them(store: SourceStore) -> None:
    for path in PATHS[1:]:
        store.put(path, b"x")

    assert list(store.folders("")) == ["a-b/", "a/", "b/", "bc/"]
    assert list(store.folders("b")) == ["b/", "bc/"]
    assert list(store.folders("a/")) == ["a/2/"]
    assert list(store.folders("nothing")) == []


def test_the_versions_of_a_listing_are_those_of_a_reading(store: SourceStore) -> None:
    store.put("a/1", b"one")
    ((first),) = store.beginning("a/")
    assert store.read("a/1", 1).version == first.version

    store.put("a/1", b"other")
    ((second),) = store.beginning("a/")
    assert second.version != first.version


def test_a_folder_that_is_not_there_is_an_error_and_no_empty_source(tmp_path: Path) -> None:
    store = LocalSourceStore(tmp_path / "missing")

    with pytest.raises(DependencyError, match="folder of the files does not exist"):
        list(store.beginning("a/"))


def forbidding(keys: dict[str, int]) -> Any:
    """A client of S3 that forbids every key with 403, and lists these keys."""

    class Client:
        def head_object(self, **of: Any) -> Any:
            raise ClientError(
                {"Error": {"Code": "403"}, "ResponseMetadata": {"HTTPStatusCode": 403}},
                "HeadObject",
            )

        def list_objects_v2(self, **of: Any) -> Any:
            moment = datetime(2026, 1, 1, tzinfo=UTC)
            return {
                "Contents": [
                    {"Key": key, "Size": size, "LastModified": moment, "ETag": '"x"'}
                    for key, size in keys.items()
                    if key.startswith(of["Prefix"])
                ]
            }

    return Client()


def test_a_forbidden_object_that_is_not_listed_is_gone() -> None:
    place = S3Location("drop", "exports")
    store = S3SourceStore(place, AwsAccess(), s3=forbidding({"exports/a": 1, "exports/bc": 1}))

    for gone in ("b", "c"):
        with pytest.raises(FileNotFoundError):
            store.size(gone)
    with pytest.raises(DependencyError) as raised:
        store.size("a")
    assert raised.value.code == "POLYNYA-AWS-002"
