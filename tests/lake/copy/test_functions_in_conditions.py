"""Polynya's functions in the conditions of a task, from landed records to the live view."""

from __future__ import annotations

from polynya.lake.copy.rows import decided
from tests.lab.lab import Lab, put

DELETES = (
    "in_set(to_lower(json_path(payload, 'meta.op')), 'd', 'delete')"
    " OR (polynya.substring(note, -4) = 'gone' AND length(note) > 4)"
)


def test_conditions_with_functions_decide_what_is_deleted(lab: Lab) -> None:
    feed = lab.feed(apply_as_deletes=DELETES)

    feed.apply(
        put(1, 1, name="Ann", payload='{"meta": {"op": "i"}}', note="new"),
        put(2, 1, name="Ben", payload='{"meta": {"op": "i"}}', note="new"),
        put(3, 1, name="Cid", payload="no JSON", note=None),
    )
    feed.apply(
        put(1, 2, name="Ann", payload='{"meta": {"op": "Delete"}}', note=""),
        put(2, 2, name="Ben", payload="{", note="is gone"),
        put(3, 2, name="Cyd", payload="{", note="gone"),
    )

    assert feed.current("id", "name") == [(3, "Cyd")]
    assert feed.rejected() == []


def test_a_column_of_a_type_that_makes_no_sense_stops_nothing(lab: Lab) -> None:
    feed = lab.feed(apply_as_deletes="equal_to(array_max(split(flag, ',')), '9')")

    feed.apply(put(1, 1, name="Ann", flag={"deep": [1]}))

    assert feed.current("id", "name") == [(1, "Ann")]


def test_a_draw_is_the_same_on_every_run(lab: Lab) -> None:
    feed = lab.feed(apply_as_deletes="random(0.5, 'half')")
    feed.copy(put(100, 1, name="n"))
    batch = feed.batch(*(put(key, 1, name="n") for key in range(40)))

    drawn = [decided(lab.spark, batch, feed.dataset) for _ in range(2)]

    assert drawn[0] == drawn[1]
    assert 5 < drawn[0].count("D") < 35
