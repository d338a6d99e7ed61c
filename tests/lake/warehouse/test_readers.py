"""Readers that take long say so in the warehouse."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from polynya.lake.warehouse.readers import (
    CLOCK_SKEW,
    FOLDER,
    READER_LIFETIME,
    Readers,
    reads_the_past,
)
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.lab.lab import STARTED

HOURS = timedelta(hours=2)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(STARTED)


@pytest.fixture
def readers(tmp_path: Path, clock: FakeClock) -> Readers:
    return Readers(lambda: LocalObjectStore(tmp_path), clock)


def soon(is_true: Callable[[], object]) -> bool:
    """Whether something comes true within seconds: another thread does it."""
    deadline = time.monotonic() + 10
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(is_true())


def test_a_short_query_writes_nothing(readers: Readers, tmp_path: Path) -> None:
    with readers.reading(shortest=HOURS):
        assert readers.at_work() == []

    assert list(tmp_path.rglob("*")) == []


def test_a_long_one_says_since_when_it_reads(readers: Readers, tmp_path: Path) -> None:
    with readers.reading(shortest=timedelta()):
        assert soon(readers.at_work)
        (found,) = readers.at_work()

    assert found.since == STARTED
    assert found.until == STARTED + READER_LIFETIME
    assert not list((tmp_path / FOLDER).iterdir())


def test_one_that_may_read_the_past_says_so_before_it_reads(readers: Readers) -> None:
    with readers.reading(shortest=HOURS, past=True):
        assert [one.since for one in readers.at_work()] == [None]

    assert readers.at_work() == []


def test_the_word_of_a_dead_reader_ends(readers: Readers, clock: FakeClock, tmp_path: Path) -> None:
    word = {
        "since": STARTED.isoformat(),
        "until": (STARTED + READER_LIFETIME).isoformat(),
        "who": "dead",
    }
    LocalObjectStore(tmp_path).put(f"{FOLDER}/dead.json", json.dumps(word).encode())

    clock.advance(READER_LIFETIME + CLOCK_SKEW - timedelta(seconds=1))
    assert len(readers.at_work()) == 1
    clock.advance(timedelta(seconds=1))
    assert readers.at_work() == []
    clock.advance(10 * READER_LIFETIME)
    assert readers.at_work() == []
    assert not list((tmp_path / FOLDER).iterdir())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[1]",
        b'{"since": 7, "until": "x", "who": 1}',
        b'{"since": null, "until": "2026-06-01T00:00:00", "who": "without a zone"}',
        b'{"since": null, "until": "9999-01-01T00:00:00+00:00", "who": "for ever"}',
    ],
)
def test_what_is_no_such_word_is_not_heeded(
    readers: Readers, tmp_path: Path, content: bytes
) -> None:
    LocalObjectStore(tmp_path).put(f"{FOLDER}/odd.json", content)

    assert readers.at_work() == []


def test_a_warehouse_that_takes_no_file_is_no_obstacle(
    readers: Readers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".polynya").write_text("not a folder")

    with readers.reading(shortest=HOURS, past=True):
        pass

    assert "cannot say that it reads" in caplog.text


@pytest.mark.parametrize(
    ("statement", "past"),
    [
        ("SELECT * FROM shop.users", False),
        ("SELECT * FROM a.b VERSION AS OF 7", True),
        ("select * from a.b timestamp as\n of '2026-01-01'", True),
        ("SELECT * FROM a.b.snapshot_id_7", True),
        ("SELECT tag, branch FROM a.b", False),
    ],
)
def test_statements_that_may_read_the_past(statement: str, past: bool) -> None:
    assert reads_the_past(statement) is past
