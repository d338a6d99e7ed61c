"""How many list requests a look takes in a store with two hundred thousand objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from polynya.model.config.aws import AwsAccess
from polynya.model.names import S3Location
from polynya.model.patterns import file_pattern
from polynya.store.aws.clients import client
from polynya.store.aws.s3 import S3SourceStore
from polynya.streams.files.files import RememberedFiles
from polynya.streams.files.listing import look_at
from polynya.streams.files.position import FilesPosition, after_files
from polynya.testing.fakes import MemorySourceStore
from tests.aws import REGION, aws_server
from tests.streams.files.given import NOW, PATTERN, Landing

#: Files of 400 days, 150 a day, and others that nobody asked for.
DAYS, PER_DAY, OTHERS = 400, 150, 140_000


def names() -> Iterator[str]:
    for days in range(DAYS):
        folder = f"{NOW - timedelta(days=days):%Y/%m/%d}"
        yield from (f"{folder}/part-{number:05}.json" for number in range(PER_DAY))
    yield from (f"archive/{number:07}.json" for number in range(OTHERS))


def a_full_store() -> MemorySourceStore:
    store = MemorySourceStore()
    store.objects = dict.fromkeys(names(), b"")
    return store


def test_a_look_takes_as_many_requests_as_days_are_looked_back_to() -> None:
    landing = Landing({"look_back": "2d"}, start_from="now", store=a_full_store())
    landing.step()
    landing.store.requests = 0

    landing.put(f"{NOW:%Y/%m/%d}/part-new.json", "1")
    assert landing.land() == [b"1"]

    # Three days, twice: the second look finds nothing more.
    assert landing.store.requests == 6


def test_catching_up_lists_each_file_about_once() -> None:
    store, position, read = a_full_store(), FilesPosition(RememberedFiles()), 0
    pattern = file_pattern(PATTERN)

    while True:
        look = look_at(store, pattern, position, now=NOW, look_back=timedelta(days=1))
        position = after_files(position, look.files, horizon=look.horizon, over=look.over)
        read += len(look.files)
        if not look.files:
            break

    files = DAYS * PER_DAY
    assert read == files
    # A page holds a thousand, and each look begins a page for what is left of its month.
    assert store.requests <= files / 1000 + 6 * files / 10_000 + 30


@pytest.mark.slow
def test_a_bucket_of_200_000_objects_is_listed_in_as_few_requests(tmp_path: Any) -> None:
    del tmp_path
    with aws_server("partner-drop") as endpoint:
        access = AwsAccess(region=REGION, endpoint=endpoint)
        _fill("partner-drop", (f"exports/{name}" for name in names()))
        counted = Counted(client("s3", access))
        store = S3SourceStore(S3Location("partner-drop", "exports"), access, s3=counted)
        landing = Landing({"look_back": "2d"}, start_from="now", store=store)  # type: ignore[arg-type]
        landing.step()
        counted.requests = 0

        landing.put(f"{NOW:%Y/%m/%d}/part-new.json", "1")
        began = time.monotonic()
        assert landing.land() == [b"1"]
        print(f"{counted.requests} list requests, {time.monotonic() - began:.2f} s")

    assert counted.requests == 6


class Counted:
    """A client that counts listings."""

    def __init__(self, s3: Any) -> None:
        self.s3, self.requests = s3, 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self.requests += name == "list_objects_v2"
        found: Callable[..., Any] = getattr(self.s3, name)
        return found


def _fill(bucket: str, keys: Iterator[str]) -> None:
    """Put objects into the server of this process without asking it over HTTP for each."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for key in keys:
        backend.put_object(bucket, key, b"")
