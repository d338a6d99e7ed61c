"""What is told of a slot: how far behind, what it costs the server, whether it is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polynya.capture.postgresql.health import lag_of, lost_of
from polynya.capture.postgresql.slots import ReplicationSlot

GIB = 1 << 30
SLOT = ReplicationSlot(
    plugin="pgoutput", database="shop", reader=7, wal_status="reserved", safe_bytes=None,
    restart=900, confirmed=1000, kept_bytes=100, end=5000, flush_seconds=None, was_read=True,
)  # fmt: skip
OFFSET = {"lsn": 1000, "lsn_commit": 1000, "ts_usec": 90_000_000}


def test_a_stream_that_has_all_is_not_behind() -> None:
    lag = lag_of(replace(SLOT, end=1000), OFFSET, now=100)

    assert (lag.bytes, lag.seconds, lag.notes) == (0, 0.0, ())


def test_bytes_are_counted_to_the_end_of_the_log_and_seconds_as_the_server_tells() -> None:
    assert lag_of(replace(SLOT, flush_seconds=2.5), OFFSET, now=100).seconds == 2.5
    assert lag_of(SLOT, OFFSET, now=100).bytes == 4000


def test_while_nobody_reads_the_time_since_the_last_transaction_counts() -> None:
    lag = lag_of(replace(SLOT, reader=None), OFFSET, now=100)

    assert lag.seconds == 10
    assert "nobody reads the slot" in lag.notes[0]


@pytest.mark.parametrize(
    ("slot", "said"),
    [
        (replace(SLOT, kept_bytes=20 * GIB), "keeps 20.0 GiB of its log"),
        (replace(SLOT, safe_bytes=GIB // 2), "lost after 0.50 GiB more"),
        (replace(SLOT, wal_status="unreserved"), "lost at the next checkpoint"),
        (replace(SLOT, wal_status="lost"), "the slot is lost"),
        (None, "is not there"),
    ],
)
def test_the_danger_to_the_disk_and_to_the_slot_is_told(
    slot: ReplicationSlot | None, said: str
) -> None:
    assert said in lag_of(slot, OFFSET, now=100).notes[0]


@pytest.mark.parametrize(
    ("slot", "said"),
    [
        (None, "is not there"),
        (replace(SLOT, wal_status="lost"), "max_slot_wal_keep_size"),
        (replace(SLOT, plugin="wal2json"), "is of wal2json"),
        (replace(SLOT, end=900), "restored from a backup"),
        (replace(SLOT, confirmed=1001), "created again, or somebody else read"),
    ],
)
def test_a_stream_that_cannot_go_on_is_told_why(slot: ReplicationSlot | None, said: str) -> None:
    assert said in str(lost_of("polynya_shop", "shop", slot, OFFSET))


def test_a_slot_that_has_all_is_not_lost() -> None:
    assert lost_of("polynya_shop", "shop", SLOT, OFFSET) is None
