"""The log of landed batches: the newest, the next one, another writer, damage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet
import pytest

from polynya.formats.landed import SCHEMAS, StreamFooter
from polynya.model.config.stream_content import JSON_CONTENT
from polynya.model.errors import OperationError
from polynya.streams.landing import LandedLog, landed_tables
from polynya.testing.fakes import MemoryObjectStore

NONE = SCHEMAS["kafka"].empty_table()


def footer(number: int, table: str = "clicks") -> StreamFooter:
    return StreamFooter(
        task="in", table=table, source="kafka", number=number, content=JSON_CONTENT,
        begin={"n": number - 1} if number > 1 else {}, end={"n": number},
        written_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip


class Counting(MemoryObjectStore):
    """Counts what it is asked for."""

    lists = opens = 0

    def list(self, prefix: str = ""):
        self.lists += 1
        return super().list(prefix)

    def open(self, path: str):
        self.opens += 1
        return super().open(path)


def test_a_table_that_was_never_landed_has_no_newest_batch():
    assert LandedLog(MemoryObjectStore(), "in", "clicks").newest() is None


def test_the_newest_batch_is_the_one_with_the_highest_number():
    store = MemoryObjectStore()
    for number in (1, 2, 10):
        LandedLog(store, "in", "clicks").put(footer(number), NONE)
    store.put("in/clicks/notes.txt", b"x")
    store.put("in/clicks/inside/batch-00000000000000000099.parquet", b"x")

    assert LandedLog(store, "in", "clicks").newest().end == {"n": 10}


def test_the_folder_is_listed_once_and_a_batch_that_was_put_is_not_read():
    store = Counting()
    log = LandedLog(store, "in", "clicks")
    log.newest()
    for number in range(1, 6):
        log.put(footer(number), NONE)
        assert log.newest().number == number

    assert (store.lists, store.opens) == (1, 0)


def test_of_two_writers_one_puts_a_number_and_the_other_finds_all_that_came():
    store = MemoryObjectStore()
    one, other = (LandedLog(store, "in", "clicks") for _ in range(2))
    assert one.newest() is other.newest() is None
    for number in (1, 2, 3):
        assert one.put(footer(number), NONE) is not None

    assert other.put(footer(1), NONE) is None
    other.look_again()

    assert other.newest().number == 3
    assert len(store.objects) == 3


@pytest.mark.parametrize("looks_again", [False, True])
def test_a_batch_that_does_not_begin_where_the_one_before_it_ends_is_no_position(looks_again):
    store = MemoryObjectStore()
    log = LandedLog(store, "in", "clicks")
    log.put(footer(1), NONE)
    forged = replace(footer(2), begin={"n": 7}, end={"n": 10**9})
    LandedLog(store, "in", "clicks").put(forged, NONE)

    with pytest.raises(OperationError, match="does not begin where number 1 ends") as caught:
        log.look_again() if looks_again else LandedLog(store, "in", "clicks").newest()

    assert caught.value.code == "POLYNYA-STR-014"


def test_the_newest_batch_is_a_position_when_the_one_before_it_was_deleted():
    store = MemoryObjectStore()
    log = LandedLog(store, "in", "clicks")
    for number in (1, 2):
        log.put(footer(number), NONE)
    log.delete(1)

    assert LandedLog(store, "in", "clicks").newest().end == {"n": 2}


@pytest.mark.parametrize("data", [b"", b"PAR1", None], ids=["empty", "cut", "no landed batch"])
def test_a_newest_batch_that_cannot_be_read_stops_the_table(data):
    store = MemoryObjectStore()
    LandedLog(store, "in", "clicks").put(footer(1), NONE)
    if data is None:
        sink = pa.BufferOutputStream()
        pa.parquet.write_table(NONE, sink)
        data = sink.getvalue().to_pybytes()
    store.put("in/clicks/batch-00000000000000000002.parquet", data)

    with pytest.raises(OperationError) as caught:
        LandedLog(store, "in", "clicks").newest()

    assert caught.value.code == "POLYNYA-STR-014"


def test_a_batch_under_the_number_of_another_is_not_believed():
    store = MemoryObjectStore()
    LandedLog(store, "in", "clicks").put(footer(1), NONE)
    [data] = store.objects.values()
    store.put("in/clicks/batch-00000000000000000002.parquet", data)

    with pytest.raises(OperationError, match="its footer has number 1"):
        LandedLog(store, "in", "clicks").newest()


def test_the_tables_of_a_landing_are_its_folders_with_batches():
    store = MemoryObjectStore({"in/notes.txt": b"x", "other/x/y": b"z"})
    LandedLog(store, "in", "a").put(footer(1), NONE)
    LandedLog(store, "in", "a").put(footer(2), NONE)
    LandedLog(store, "in", "b").put(footer(1), NONE)

    assert landed_tables(store, "in") == {"a": 2, "b": 1}
