"""Stores of every kind, for tests of what they have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from polynya.model.config.aws import AwsAccess
from polynya.model.names import S3Location
from polynya.store.aws.s3 import S3ObjectStore
from polynya.store.object_store import LocalObjectStore, ObjectStore
from polynya.testing.fakes import MemoryObjectStore
from tests.aws import REGION, aws_server

BUCKET = "acme-landing"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with aws_server(BUCKET) as address:
        yield address


@pytest.fixture
def access(endpoint: str) -> AwsAccess:
    return AwsAccess(region=REGION, endpoint=endpoint)


@pytest.fixture
def place() -> S3Location:
    """A folder of the bucket for each test."""
    return S3Location(BUCKET, f"test/{uuid4().hex}")


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "local":
        return LocalObjectStore(tmp_path / "root")
    if request.param == "memory":
        return MemoryObjectStore()
    return S3ObjectStore(request.getfixturevalue("place"), request.getfixturevalue("access"))
