"""What record streams have in common, and streams of objects in particular."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import ConfigError, DependencyError
from polynya.store.aws.s3 import S3ObjectStore
from polynya.store.object_store import LocalObjectStore, ObjectStore
from polynya.store.places import stream_at
from polynya.store.streams import (
    MAX_RECORD_BYTES,
    SLOTS,
    STALE_SECONDS,
    IteratorLostError,
    ObjectStream,
    RecordStream,
    StreamRecord,
)
from polynya.testing.fakes import FakeClock, MemoryObjectStore, MemoryRecordStream


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "folder", "s3"])
def stream(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> RecordStream:
    if request.param == "memory":
        return MemoryRecordStream()
    if request.param == "folder":
        return ObjectStream(LocalObjectStore(tmp_path), clock)
    place, access = request.getfixturevalue("place"), request.getfixturevalue("access")
    return ObjectStream(S3ObjectStore(place, access), clock)


def all_newest(stream: RecordStream) -> list[str]:
    return [stream.newest(shard) for shard in stream.shards()]


def read_on(stream: RecordStream, iterators: list[str]) -> list[StreamRecord]:
    """What follows the iterators, which go on behind it."""
    found = []
    for place, iterator in enumerate(iterators):
        page = stream.read(iterator)
        found += page.records
        assert page.following is not None
        iterators[place] = page.following
    return found


def test_a_reader_gets_what_is_put_after_it_began_in_the_order_of_each_key(
    stream: RecordStream,
) -> None:
    stream.put("a", b"before")
    iterators = all_newest(stream)
    assert read_on(stream, iterators) == []

    for number in range(12):
        stream.put("a", b"%d" % number)
    first = read_on(stream, iterators)
    stream.put("a", b"\x00\n\xff")
    stream.put("/../\n\u20ac", b"")

    assert first == [StreamRecord("a", b"%d" % number) for number in range(12)]
    expected = [StreamRecord("/../\n\u20ac", b""), StreamRecord("a", b"\x00\n\xff")]
    assert sorted(read_on(stream, iterators), key=lambda one: one.key) == expected
    assert read_on(stream, iterators) == []


def test_an_iterator_that_the_stream_does_not_know_is_lost(clock: FakeClock) -> None:
    with pytest.raises(IteratorLostError) as caught:
        ObjectStream(MemoryObjectStore(), clock).read("all-1")

    assert caught.value.code == "POLYNYA-AGT-040"


def test_all_writers_of_a_store_are_read(clock: FakeClock) -> None:
    store = MemoryObjectStore()
    reader = ObjectStream(store, clock)
    iterators = all_newest(reader)

    for writer in range(3):
        # The same key: a node that started again.
        ObjectStream(store, clock).put("n1", b"%d" % writer)

    assert sorted(one.data for one in read_on(reader, iterators)) == [b"0", b"1", b"2"]


def test_a_writer_fills_no_store(clock: FakeClock) -> None:
    store = MemoryObjectStore()
    stream = ObjectStream(store, clock)
    iterators = all_newest(stream)

    for number in range(500):
        stream.put("a", b"%d" % number)

    assert len(store.objects) == SLOTS
    # Who looks too seldom has the newest of them.
    told = [int(one.data) for one in read_on(stream, iterators)]
    assert told == list(range(500 - SLOTS, 500))


def test_what_nobody_writes_to_any_more_is_removed(clock: FakeClock) -> None:
    store = MemoryObjectStore()
    gone, alive = ObjectStream(store, clock), ObjectStream(store, clock)
    for number in range(SLOTS):
        gone.put("gone", b"%d" % number)
    iterators = all_newest(alive)

    for _ in range(5):
        clock.sleep(STALE_SECONDS / 4 + 1)
        alive.put("alive", b"x")
        read_on(alive, iterators)

    # Of those that are alive, the first has not been written over for more than an hour.
    assert sorted(store.objects.values()) == [b"%d alive\nx" % number for number in (2, 3, 4, 5)]
    assert gone.read(gone.newest("all")).records == ()


def test_objects_that_are_no_records_are_handed_on_for_the_reader_to_judge(
    clock: FakeClock,
) -> None:
    store = MemoryObjectStore()
    stream = ObjectStream(store, clock)
    iterators = all_newest(stream)
    junk = [b"", b"\xff", b"1", b"x y\nz", b"9" * 30 + b" k\nz", b"{" * (MAX_RECORD_BYTES + 10)]
    for number, data in enumerate(junk):
        store.put(f"records/{number}/00", data)
    store.put("records/loose", b"x")
    store.put("records/deep/er/and/er", b"5 %zz\nx")
    stream.put("a", b"good")

    records = read_on(stream, iterators)

    assert StreamRecord("a", b"good") in records
    assert len(records) == len(junk) + 3
    assert max(len(one.data) for one in records) == MAX_RECORD_BYTES


def test_a_name_in_a_folder_that_leads_elsewhere_is_not_read(
    clock: FakeClock, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(b"1 k\nsecret")
    store = LocalObjectStore(tmp_path / "stream")
    stream = ObjectStream(store, clock)
    stream.put("a", b"1")
    iterators = all_newest(stream)
    (tmp_path / "stream/records/link").symlink_to(tmp_path / "secret")
    stream.put("a", b"2")

    assert read_on(stream, iterators) == [StreamRecord("a", b"2")]


def test_a_folder_that_cannot_be_used_says_what_to_do(clock: FakeClock, tmp_path: Path) -> None:
    stream = stream_at(f"{tmp_path}/stream", AwsAccess(), clock)
    (tmp_path / "stream").write_bytes(b"in the way")

    with pytest.raises(DependencyError) as caught:
        stream.put("a", b"1")

    assert caught.value.code == "POLYNYA-AGT-043"
    assert caught.value.fix


def test_an_object_that_goes_away_while_it_is_read_is_passed_over(clock: FakeClock) -> None:
    class Fleeting(MemoryObjectStore):
        def read(self, path: str, limit: int):  # type: ignore[no-untyped-def]
            raise FileNotFoundError(path)

    store: ObjectStore = Fleeting()
    stream = ObjectStream(store, clock)
    iterators = all_newest(stream)
    stream.put("a", b"1")

    assert read_on(stream, iterators) == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("polynya-workload", "KinesisStream"),
        ("arn:aws:kinesis:eu-central-1:123456789012:stream/polynya", "KinesisStream"),
        ("FOLDER/stream", "ObjectStream"),
        ("s3://acme-config/coordination/stream", "ObjectStream"),
    ],
)
def test_a_text_names_a_stream(
    name: str, kind: str, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    access = AwsAccess(region="eu-central-1")

    stream = stream_at(name.replace("FOLDER", str(tmp_path)), access, clock)

    assert type(stream).__name__ == kind


def test_a_text_that_names_no_place_is_refused(clock: FakeClock) -> None:
    with pytest.raises(ConfigError):
        stream_at("s3://A/b", AwsAccess(), clock)
