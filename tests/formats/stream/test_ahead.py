"""Pieces that are read before their turn."""

from __future__ import annotations

import threading

import pytest

from polynya.formats.stream import reading
from polynya.formats.stream.reading import Ahead, MessageRange


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "AT_ONCE", 3)


def test_what_follows_are_whole_pieces_before_the_end() -> None:
    assert MessageRange(10, 5, 70).following(end=26) == [
        MessageRange(15, 5, 75),
        MessageRange(20, 5, 80),
    ]
    assert MessageRange(10, 5, 70).following(end=19) == []
    assert len(MessageRange(0, 1, 0).following(end=1000)) == 2


def test_a_piece_is_read_beside_the_one_before_and_only_once() -> None:
    together, read = threading.Barrier(2, timeout=20), list[int]()

    def slowly(place: MessageRange) -> int:
        if place.index < 2:
            together.wait()
        read.append(place.index)
        return place.index * 10

    pieces = Ahead(slowly)
    first, second = MessageRange(0, 1, 0), MessageRange(1, 1, 1)

    assert pieces.get(first, [second]) == 0
    assert pieces.get(second, []) == 10
    assert sorted(read) == [0, 1]


def test_what_was_begun_and_is_not_wanted_is_not_taken() -> None:
    pieces = Ahead(lambda place: (place, threading.current_thread().name))
    pieces.get(MessageRange(0, 1, 0), [MessageRange(1, 1, 1)])
    pieces.forget()

    assert pieces.get(MessageRange(1, 1, 1), [])[1] == threading.current_thread().name
    # Another offset is another piece.
    pieces.get(MessageRange(2, 1, 2), [MessageRange(3, 1, 3)])
    assert pieces.get(MessageRange(3, 1, 4), [])[0] == MessageRange(3, 1, 4)


def test_who_waits_for_a_piece_gets_its_error() -> None:
    def broken(place: MessageRange) -> int:
        raise OSError(str(place.index))

    pieces = Ahead(broken)
    with pytest.raises(OSError, match="0"):
        pieces.get(MessageRange(0, 1, 0), [MessageRange(1, 1, 1)])
    with pytest.raises(OSError, match="1"):
        pieces.get(MessageRange(1, 1, 1), [])
