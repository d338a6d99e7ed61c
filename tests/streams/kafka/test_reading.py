"""How ranges of offsets are told to the reader in Java, and what comes back."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import pyarrow as pa
import pytest

from polynya.formats.landed import SCHEMAS
from polynya.streams.kafka import reading
from polynya.streams.kafka.plan import Extent, Reads, budgets, size_of
from tests.streams.kafka.fake import kafka_source

READS = Reads({("a", 1): Extent(5, 105), ("a", 0): Extent(0, 300)})


def test_the_bytes_of_a_batch_are_shared_by_what_waits():
    assert budgets(READS, 1000) == {("a", 0): 750, ("a", 1): 250}


def test_key_headers_and_value_count_and_null_is_nothing():
    rows = pa.Table.from_pylist(
        [{"hdr__kafka_key": "abc", "hdr__kafka_headers": "[]", "value": b"12"}, {"value": None}],
        SCHEMAS["kafka"],
    )

    assert size_of(rows) == 7
    assert size_of(SCHEMAS["kafka"].empty_table()) == 0


class FakeReader:
    """A client that finds one record, and that a limit ended one partition."""

    def __init__(self, jvm):
        self.jvm, self.asked, self.settings, self.closed = jvm, [], {}, False

    def open(self, settings):
        self.settings = dict(settings)

    def close(self):
        self.closed = True

    def read(self, lines, readers, patience_ms, file):
        self.asked.append((lines, readers))
        columns = [["a"], [1], [5], [b"a2V5"], [b"[]"], [1_000_000], [b"x"]]
        batch = pa.record_batch(columns, names=[f"column{at}" for at in range(7)])
        with pa.OSFile(file, "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        return "a 1 6\n"


class FakeJvm:
    """Makes readers, and a map for their properties."""

    class java:
        class util:
            HashMap = type("HashMap", (dict,), {"put": dict.__setitem__})

    def __init__(self):
        self.made = []

    def newInstance(self):
        self.made.append(FakeReader(self))
        return self.made[-1]


def read(jvm, *, readers="auto", **settings):
    source = kafka_source(**settings)
    return reading.read_ranges(
        jvm, source, READS, max_bytes=1000, readers=readers, where="task in, b:9092"
    )


def test_ranges_are_told_with_their_bytes_and_records_come_in_the_columns_of_a_batch(monkeypatch):
    monkeypatch.setattr(reading, "_reader_class", lambda jvm: jvm)
    jvm = FakeJvm()

    found = read(jvm)
    read(jvm, readers=1)

    [client] = jvm.made
    lines = "a 0 0 300 750\na 1 5 105 250"
    assert client.asked == [(lines, 2), (lines, 1)]
    assert client.settings["bootstrap.servers"] == "b:9092"
    assert client.settings["isolation.level"] == "read_committed"
    assert client.settings["enable.auto.commit"] == "false"
    assert found.cuts == {("a", 1): 6}
    assert found.rows.schema == SCHEMAS["kafka"]
    [row] = found.rows.to_pylist()
    assert (row["hdr__kafka_key"], row["hdr__kafka_timestamp"].second) == ("a2V5", 1)


def test_a_client_is_used_again_for_the_same_brokers_and_the_same_settings(monkeypatch):
    monkeypatch.setattr(reading, "_reader_class", lambda jvm: jvm)
    one, other = FakeJvm(), FakeJvm()

    for jvm in (one, other, one):
        read(jvm)
    read(one, properties={"client.id": "lake"})
    read(one)

    assert [len(jvm.made) for jvm in (one, other)] == [2, 1]


def test_clients_that_nobody_uses_are_closed_after_a_while(monkeypatch):
    monkeypatch.setattr(reading, "_reader_class", lambda jvm: jvm)
    jvm = FakeJvm()

    for number in range(20):
        read(jvm, properties={"client.id": f"lake-{number}"})

    assert [client.closed for client in jvm.made] == [True] * 12 + [False] * 8


def test_a_client_that_failed_is_not_used_again(monkeypatch):
    monkeypatch.setattr(reading, "_reader_class", lambda jvm: jvm)
    jvm = FakeJvm()
    monkeypatch.setattr(FakeReader, "read", lambda *_: 1 / 0)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            read(jvm)

    assert [client.closed for client in jvm.made] == [True, True]


def test_threads_share_one_class(monkeypatch):
    """py4j takes the methods of a class for those of any other of its name."""
    compiled = []

    @lru_cache(maxsize=1)
    def slowly(jvm):
        compiled.append(jvm)
        time.sleep(0.2)
        return object()

    monkeypatch.setattr(reading, "_compiled", slowly)
    with ThreadPoolExecutor(4) as threads:
        classes = set(threads.map(reading._reader_class, ["jvm"] * 4))

    assert (len(classes), compiled) == (1, ["jvm"])
