"""Reading a stream that expires, throttles, reshards and goes away: it always goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from polynya.cluster.gossip.reader import StreamReader
from polynya.model.errors import DependencyError
from polynya.store.streams import Page, StreamRecord
from polynya.testing.fakes import FakeClock, MemoryRecordStream, no_stream

DENIED = DependencyError("POLYNYA-AWS-002", "AWS refuses to read the records", why="request 1f3a")


@dataclass
class Reading:
    """A reader, what it has read and how often it told of a gap."""

    stream: MemoryRecordStream
    clock: FakeClock = field(default_factory=FakeClock)
    nodes: int = 1
    read: list[bytes] = field(default_factory=list)
    gaps: int = 0
    troubles: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reader = StreamReader(self.stream, self.clock, lambda: 0.5)
        self.turn()

    def turn(self) -> None:
        for news in self.reader.turn(self.nodes):
            self.read += [record.data for record in news.records]
            self.gaps += news.gap
        if not self.troubles or self.troubles[-1] != self.reader.trouble:
            self.troubles.append(self.reader.trouble)

    def let_pass(self, seconds: float) -> None:
        end = self.clock.monotonic() + seconds
        while self.reader.due <= end:
            self.clock.sleep(max(self.reader.due - self.clock.monotonic(), 0.01))
            self.turn()
        self.clock.sleep(max(end - self.clock.monotonic(), 0.0))


def put(stream: MemoryRecordStream, *texts: str) -> None:
    for text in texts:
        stream.put(text, text.encode())


def test_it_begins_with_what_comes_now() -> None:
    stream = MemoryRecordStream()
    put(stream, "before")
    reading = Reading(stream)

    put(stream, "a", "b")
    reading.let_pass(5)

    assert reading.read == [b"a", b"b"]


def test_all_shards_are_read() -> None:
    stream = MemoryRecordStream(4)
    reading = Reading(stream)

    put(stream, *map(str, range(50)))
    reading.let_pass(5)

    assert sorted(reading.read) == sorted(str(number).encode() for number in range(50))
    assert reading.reader.shards == 4


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 2.25), (10, 4.5), (100, 45.0)])
def test_its_pace_is_that_of_all_nodes(nodes: int, seconds: float) -> None:
    stream = MemoryRecordStream(3)
    reading = Reading(stream, nodes=nodes)

    reading.let_pass(1000)

    for shard in stream.shards():
        assert stream.reads.count(shard) == pytest.approx(1000 / seconds, abs=2)


def test_nodes_that_start_together_do_not_read_together() -> None:
    stream, clock = MemoryRecordStream(), FakeClock()
    readers = [StreamReader(stream, clock, lambda draw=draw: draw / 50) for draw in range(1, 50)]
    for reader in readers:
        reader.turn(50)

    first_reads = sorted(reader.due for reader in readers)

    # 50 nodes share 2.5 reads a second.
    assert first_reads == pytest.approx([number * 0.4 for number in range(1, 50)])


def test_no_record_is_lost_or_read_twice_while_shards_split_and_merge() -> None:
    stream = MemoryRecordStream(1)
    reading = Reading(stream)
    put(stream, *(f"1-{number}" for number in range(20)))
    stream.reshard(4)
    reading.let_pass(10)
    put(stream, *(f"4-{number}" for number in range(20)))
    stream.reshard(2)
    reading.let_pass(10)
    put(stream, *(f"2-{number}" for number in range(20)))
    reading.let_pass(10)

    expected = [f"{shards}-{number}" for shards in (1, 4, 2) for number in range(20)]
    assert sorted(reading.read) == sorted(text.encode() for text in expected)
    assert (reading.reader.shards, reading.troubles) == (2, [None])
    # At the start, and at each change of the shards.
    assert reading.gaps >= 3


def test_an_old_iterator_costs_only_what_came_meanwhile() -> None:
    stream = MemoryRecordStream(2)
    reading = Reading(stream)
    before = reading.gaps
    stream.expire()
    put(stream, "missed")

    reading.let_pass(20)
    put(stream, "a")
    reading.let_pass(20)

    assert reading.read == [b"a"]
    assert reading.gaps > before
    assert reading.troubles == [None]


def test_throttled_for_ten_minutes_it_asks_less_and_comes_back() -> None:
    stream = MemoryRecordStream()
    reading = Reading(stream)
    put(stream, "a")
    stream.throttled_reads = 10**6
    reading.let_pass(600)
    asked = len(stream.reads)
    stream.throttled_reads = 0
    reading.let_pass(75)

    assert asked < 20
    assert reading.read == [b"a"]
    assert [trouble is None for trouble in reading.troubles] == [True, False, True]
    assert str(reading.troubles[1]).startswith("POLYNYA-AGT-041: ")


def test_one_refusal_is_no_trouble() -> None:
    stream = MemoryRecordStream()
    reading = Reading(stream)
    for _ in range(10):
        stream.throttled_reads = 1
        reading.let_pass(30)

    assert reading.troubles == [None]


@pytest.mark.parametrize("error", [no_stream(), DENIED], ids=["deleted", "denied"])
def test_a_stream_that_refuses_is_said_once_and_comes_back_by_itself(
    error: DependencyError,
) -> None:
    stream = MemoryRecordStream(2)
    reading = Reading(stream)
    stream.failure = error
    reading.let_pass(3600)
    stream.failure = None
    stream.expire()
    reading.let_pass(120)
    put(stream, "a")
    reading.let_pass(10)

    assert reading.read == [b"a"]
    assert reading.troubles == [None, f"{error.code}: {error.message}", None]


def test_a_stream_that_is_not_there_yet_is_found_when_it_is() -> None:
    stream = MemoryRecordStream()
    stream.failure = no_stream()
    reading = Reading(stream)
    reading.let_pass(300)
    stream.failure = None
    reading.let_pass(120)
    put(stream, "a")
    reading.let_pass(10)

    assert reading.read == [b"a"]
    assert reading.reader.trouble is None


def test_an_iterator_that_fails_without_a_reason_is_given_up() -> None:
    """Stand-ins answer 500 to an iterator that they do not know."""

    class Odd(MemoryRecordStream):
        broken = 0

        def read(self, iterator: str) -> Page:
            if iterator.startswith("0:shard-0") and self.broken:
                raise DependencyError("POLYNYA-AWS-003", "AWS did not read the records: 500")
            return super().read(iterator)

    stream = Odd(2)
    reading = Reading(stream)
    stream.broken = 1
    reading.let_pass(30)
    stream.reshard(2)
    reading.let_pass(120)
    put(stream, *"abcdef")
    reading.let_pass(10)

    assert sorted(reading.read) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert reading.reader.trouble is None or reading.reader.shards == 3


def test_who_is_far_behind_goes_on_with_the_newest() -> None:
    class Slow(MemoryRecordStream):
        behind = 0.0

        def read(self, iterator: str) -> Page:
            page = super().read(iterator)
            return Page(page.records, page.following, self.behind)

    stream = Slow(page_records=1)
    reading = Reading(stream)
    put(stream, *"abcdefgh")
    stream.behind = 3600.0
    reading.let_pass(3)
    stream.behind = 0.0
    reading.let_pass(5)
    put(stream, "z")
    reading.let_pass(5)

    assert reading.read == [b"a", b"z"]


def test_records_are_as_old_as_the_stream_says() -> None:
    class Slow(MemoryRecordStream):
        def read(self, iterator: str) -> Page:
            page = super().read(iterator)
            return Page((StreamRecord("k", b"a"),), page.following, 30.0)

    clock = FakeClock()
    clock.sleep(100)
    reader = StreamReader(Slow(), clock, lambda: 0.0)

    news = [one for one in reader.turn(1) if one.records]

    assert [one.at for one in news] == [70.0]
