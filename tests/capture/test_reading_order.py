"""A load goes on behind its last key only where that means the same rows."""

from __future__ import annotations

import json

import pytest

from polynya.capture.reading_order import KeyChangedError, ReadingOrder
from polynya.capture.source import Key

ORDER = ReadingOrder((("shop", "number"), ("code", "utf8mb4_bin")))


def test_a_place_is_read_again_from_its_json() -> None:
    place = tuple(json.loads(json.dumps(ORDER.place(("7", "61")))))

    assert ORDER.values(place) == ("7", "61")


@pytest.mark.parametrize(
    "after",
    [
        None,
        ReadingOrder((("shop", "number"), ("code", "latin1_bin"))).place(("7", "61")),
        ("7", "a"),  # of a version that did not say how it read
    ],
)
def test_a_table_is_read_from_its_beginning_where_the_place_means_nothing(
    after: Key | None,
) -> None:
    assert ORDER.values(after) is None


@pytest.mark.parametrize(
    "after",
    [
        (7,),  # rows or blocks, of a time without key
        ("7",),
        ReadingOrder((("code", "utf8mb4_bin"),)).place(("61",)),
        ReadingOrder((("code", "utf8mb4_bin"), ("shop", "number"))).place(("61", "7")),
    ],
)
def test_rows_that_were_read_by_another_key_are_no_beginning(after: Key) -> None:
    with pytest.raises(KeyChangedError):
        ORDER.values(after)
