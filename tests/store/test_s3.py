"""What only S3 does: pages, keys that are no paths, lost answers, refusals, replaced objects."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError, OperationError
from polynya.model.names import S3Location
from polynya.store.aws.clients import client
from polynya.store.aws.s3 import Block, BlockReader, S3ObjectStore
from polynya.store.clock import Retry
from polynya.testing.fakes import FakeClock


class Flaky:
    """A client that fails in the given ways first; after `lost` the call was made all the same."""

    def __init__(self, s3: Any, *failures: Exception, lost: bool = False) -> None:
        self.s3, self.failures, self.lost = s3, list(failures), lost
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        def call(**arguments: Any) -> Any:
            self.calls += 1
            if not self.failures:
                return getattr(self.s3, name)(**arguments)
            if self.lost:
                getattr(self.s3, name)(**arguments)
            raise self.failures.pop(0)

        return call


class SmallPages:
    """A client whose pages hold three keys, instead of a thousand."""

    def __init__(self, s3: Any) -> None:
        self.s3 = s3

    def __getattr__(self, name: str) -> Any:
        return getattr(self.s3, name)

    def list_objects_v2(self, **arguments: Any) -> Any:
        return self.s3.list_objects_v2(MaxKeys=3, **arguments)


def refusal(code: str, status: int) -> ClientError:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetObject")


def store_over(s3: Any, place: S3Location, clock: FakeClock) -> S3ObjectStore:
    return S3ObjectStore(place, AwsAccess(), s3=s3, retry=Retry(deadline=60, clock=clock))


def test_a_listing_goes_on_over_its_pages_and_loses_no_key(
    access: AwsAccess, place: S3Location
) -> None:
    s3 = client("s3", access)
    # Keys that are paths, and keys that S3 accepts and no folder could hold.
    keys = ["a", "b//c", "d/../e", "f\\g", "h é", *(f"n/{number}" for number in range(8))]
    for key in keys:
        s3.put_object(Bucket=place.bucket, Key=place.key(key), Body=b"1")
    s3.put_object(Bucket=place.bucket, Key=place.key("n/"), Body=b"")
    store = S3ObjectStore(place, access, s3=SmallPages(s3))

    assert [info.path for info in store.list()] == sorted(keys)
    assert len(list(store.list("n"))) == 8
    assert store.get("h é") == b"1"
    for key in ("b//c", "d/../e", "f\\g"):
        with pytest.raises(OperationError, match="leaves its folder"):
            store.open(key)


def test_what_passes_is_tried_again_until_the_deadline(
    access: AwsAccess, place: S3Location
) -> None:
    s3 = client("s3", access)
    clock = FakeClock()
    S3ObjectStore(place, access).put("a", b"1")
    passing = [
        refusal("SlowDown", 503),
        EndpointConnectionError(endpoint_url="http://x"),
        ReadTimeoutError(endpoint_url="http://x"),
        refusal("InternalError", 500),
    ]

    assert store_over(Flaky(s3, *passing), place, clock).get("a") == b"1"

    endless = Flaky(s3, *[refusal("SlowDown", 503)] * 10_000)
    with pytest.raises(DependencyError) as caught:
        store_over(endless, place, clock).get("a")
    assert caught.value.code == "POLYNYA-AWS-003"
    assert str(place) in str(caught.value.where)
    assert 50 < clock.monotonic() < 75
    assert 8 < endless.calls < 60


@pytest.mark.parametrize(
    ("error", "code", "fix"),
    [
        (refusal("AccessDenied", 403), "POLYNYA-AWS-002", "s3:GetObject on arn:aws:s3:::acme-l"),
        (refusal("ExpiredToken", 400), "POLYNYA-AWS-001", "AWS_PROFILE"),
        (refusal("NoSuchBucket", 404), "POLYNYA-AWS-004", "aws.region"),
    ],
)
def test_what_does_not_pass_is_said_at_once_with_a_way_out(
    access: AwsAccess, place: S3Location, error: ClientError, code: str, fix: str
) -> None:
    flaky = Flaky(client("s3", access), error)

    with pytest.raises(DependencyError) as caught:
        store_over(flaky, place, FakeClock()).open("a")

    assert (caught.value.code, flaky.calls) == (code, 1)
    assert fix in str(caught.value.fix)


def test_a_write_whose_answer_was_lost_was_ours_if_it_holds_our_bytes(
    access: AwsAccess, place: S3Location
) -> None:
    s3 = client("s3", access)

    def lossy() -> S3ObjectStore:
        flaky = Flaky(s3, ReadTimeoutError(endpoint_url="http://x"), lost=True)
        return store_over(flaky, place, FakeClock())

    assert lossy().put_if_absent("lock", b"mine")
    assert not S3ObjectStore(place, access).put_if_absent("lock", b"mine")

    flaky = Flaky(s3, refusal("SlowDown", 503))
    assert not store_over(flaky, place, FakeClock()).put_if_absent("lock", b"theirs")


@pytest.mark.parametrize("after", [b"b" * (9 << 20), None])
def test_an_object_that_changes_while_it_is_read_is_not_mixed(
    access: AwsAccess, place: S3Location, after: bytes | None
) -> None:
    store = S3ObjectStore(place, access)
    store.put("a", b"a" * (9 << 20))
    with store.open("a") as file:
        if after is None:
            store.delete("a")
        else:
            store.put("a", after)
        file.seek(-1, io.SEEK_END)
        with pytest.raises(DependencyError, match="replaced or deleted while it was read"):
            file.read()


def test_blocks_read_like_a_file() -> None:
    draw = random.Random(7)
    data = draw.randbytes(1000)
    asked: list[tuple[int, int]] = []

    def fetch(start: int, end: int, tag: str | None) -> Block:
        asked.append((start, end))
        assert tag == (None if start == 0 and len(asked) == 1 else "v1")
        return Block(data[start:end], len(data), "v1")

    file, model = io.BufferedReader(BlockReader(fetch, 64), 16), io.BytesIO(data)
    for _ in range(500):
        if draw.random() < 0.5:
            position = draw.randrange(1100)
            assert file.seek(position) == model.seek(position)
        size = draw.choice([1, 10, 100, 2000])
        assert file.read(size) == model.read(size)
    assert all(end - start <= 64 for start, end in asked)


def test_a_listing_tells_other_bytes_of_equal_size(place: S3Location, access: AwsAccess) -> None:
    store = S3ObjectStore(place, access)

    def stamp(data: bytes) -> int:
        store.put("a.json", data)
        (info,) = store.list()
        return info.stamp

    first = stamp(b"1")

    assert 0 < first < 1 << 24
    assert stamp(b"1") == first != stamp(b"2")
