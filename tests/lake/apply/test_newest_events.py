"""The newest pending event of each record, found in memory, against plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from polynya.lake.apply.in_memory_fold import newest_events
from polynya.model import headers as h

#: A key of two columns, the two parts of the place in the order, and whether it may be late.
Event = tuple[int, str, str, str | None, bool]
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["", "a"]),
        st.sampled_from(["1", "2", "20"]),
        st.sampled_from([None, "0", "5"]),
        st.sampled_from([False] * 9 + [True]),
    ),
    max_size=8,
)


def rows_of(events: Sequence[Event]) -> pa.Table:
    """Rows of Changes with their number as data."""
    columns = list(zip(*events, strict=True)) or [()] * 5
    return pa.table(
        {
            "id": pa.array(columns[0], pa.int64()),
            "name": pa.array(columns[1], pa.string()),
            h.CHANGE_IDENTIFIER: pa.array(columns[2], pa.string()),
            h.SEQUENCE_TAIL: pa.array(columns[3], pa.string()),
            h.COPY_CHANGE_IDENTIFIER: pa.array(
                [None if late else "1" for late in columns[4]], pa.string()
            ),
            "number": pa.array(range(len(events)), pa.int64()),
        }
    )


def newest_in_python(events: Sequence[Event], stored: Sequence[Event]) -> list[int] | None:
    """The numbers of the newest events, unless a stored version is newer; None where two tie.

    Stored versions count for records with an event that may be late.
    """
    newest: dict[Any, tuple[str, int]] = {}
    places = set()
    for number, (key, name, identifier, tail, _) in enumerate(events):
        place = (key, name, identifier + (tail or ""))
        if place in places:
            return None
        places.add(place)
        newest[key, name] = max(newest.get((key, name), ("", -1)), (place[2], number))
    late = {event[:2] for event in events if event[4]}
    newer = set()
    for record in late:
        highest = max((one[2] + (one[3] or "") for one in stored if one[:2] == record), default="")
        if highest == newest[record][0]:
            return None
        if highest > newest[record][0]:
            newer.add(record)
    return sorted(number for record, (_, number) in newest.items() if record not in newer)


@given(EVENTS, EVENTS)
@example([(1, "", "2", "0", False), (1, "", "20", None, False)], [])
@example([(1, "", "1", None, False), (1, "", "1", None, False)], [])
@example([(1, "", "2", None, True)], [(1, "", "2", None, False)])
@example([(1, "", "2", None, True)], [(1, "", "1", "5", False)])
@example([(1, "", "1", None, True)], [(1, "", "1", None, False), (1, "", "2", None, False)])
def test_the_newest_event_of_each_record_is_found(events: list[Event], stored: list[Event]) -> None:
    late = {event[:2] for event in events if event[4]}
    versions = [version for version in stored if version[:2] in late]
    found = newest_events(rows_of(events), ["id", "name"], rows_of(versions))

    numbers = None if found is None else sorted(found.column("number").to_pylist())
    assert numbers == newest_in_python(events, stored)
