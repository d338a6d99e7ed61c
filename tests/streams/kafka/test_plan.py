"""What is read next of topics: from what the brokers say to ranges, positions and losses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polynya.formats.landed import Lost
from polynya.streams.kafka.plan import Extent, Topic, ends_of, plan, reached, shares
from polynya.streams.kafka.position import KafkaPosition, TopicPosition

ALL = 10**9


def topic(*extents: tuple[int, int], id: str = "one", starts: dict[int, int] | None = None):
    return Topic(id, {at: Extent(*extent) for at, extent in enumerate(extents)}, starts or {})


def at(*offsets: int, id: str = "one", ends: dict[int, int] | None = None):
    return KafkaPosition({"clicks": TopicPosition(id, dict(enumerate(offsets)), ends or {})})


def ranges(planned):
    return {place: (one.begin, one.end) for place, one in planned.reads.ranges.items()}


def test_a_first_read_begins_where_the_topic_does():
    planned = plan(None, {"clicks": topic((5, 20), (0, 0))}, ALL)

    assert ranges(planned) == {("clicks", 0): (5, 20)}
    assert planned.end.topics["clicks"].partitions == {0: 20, 1: 0}
    assert planned.lost == ()


def test_a_first_read_from_now_reads_nothing_and_is_written_down():
    planned = plan(None, {"clicks": topic((5, 20), starts={0: 20})}, ALL)

    assert ranges(planned) == {}
    assert planned.moves
    assert planned.end.topics["clicks"].partitions == {0: 20}


def test_nothing_new_is_nothing_to_do():
    planned = plan(at(20), {"clicks": topic((5, 20))}, ALL)

    assert (ranges(planned), planned.moves) == ({}, False)


def test_without_a_topic_there_is_no_first_position():
    assert not plan(None, {}, ALL).moves


def test_reading_goes_on_where_it_ended():
    assert ranges(plan(at(12), {"clicks": topic((5, 20))}, ALL)) == {("clicks", 0): (12, 20)}


def test_a_partition_that_was_added_is_read_from_its_begin():
    planned = plan(at(20), {"clicks": topic((5, 20), (0, 3))}, ALL)

    assert ranges(planned) == {("clicks", 1): (0, 3)}


def test_a_partition_that_lost_records_before_it_was_met_counts_them():
    planned = plan(at(20), {"clicks": topic((5, 20), (2, 3))}, ALL)

    assert planned.lost == (Lost("clicks/1", "0", "2", "retention"),)
    assert planned.lost_records == 2


def test_a_topic_that_comes_later_is_read_from_its_begin_even_if_the_first_began_now():
    later = {"clicks": topic((0, 9)), "more": topic((4, 6), starts={0: 6})}

    planned = plan(at(9), later, ALL)

    assert ranges(planned) == {("more", 0): (4, 6)}
    assert planned.lost == ()


def test_what_retention_took_is_counted_and_reading_goes_on_after_it():
    planned = plan(at(4), {"clicks": topic((10, 12))}, ALL)

    assert ranges(planned) == {("clicks", 0): (10, 12)}
    assert planned.lost == (Lost("clicks/0", "4", "10", "retention"),)
    assert planned.lost_records == 6


def test_a_loss_is_written_down_even_when_nothing_is_left_to_read():
    planned = plan(at(4), {"clicks": topic((10, 10))}, ALL)

    assert (ranges(planned), planned.moves) == ({}, True)


def test_a_topic_that_was_made_again_is_read_from_its_begin():
    planned = plan(at(90, ends={0: 100}), {"clicks": topic((3, 8), id="two")}, ALL)

    assert ranges(planned) == {("clicks", 0): (3, 8)}
    assert planned.end.topics["clicks"].id == "two"
    assert planned.lost == (Lost("clicks", "one", "two", "recreated"),)
    # Ten that the old one was seen to have, three that the new one no longer has.
    assert planned.lost_records == 13


def test_a_partition_that_ends_before_the_position_is_named_and_not_read_twice():
    planned = plan(at(50), {"clicks": topic((0, 40))}, ALL)

    assert (ranges(planned), planned.moves) == ({}, True)
    assert planned.end.topics["clicks"].partitions == {0: 40}
    assert planned.lost == (Lost("clicks/0", "50", "40", "truncated"),)


def test_a_topic_that_is_gone_keeps_its_position():
    planned = plan(at(50), {}, ALL)

    assert not planned.moves
    assert planned.end == at(50)


def test_nothing_is_read_from_where_a_run_ends():
    planned = plan(at(3), {"clicks": topic((0, 20), (0, 5))}, ALL, until={("clicks", 0): 10})

    assert ranges(planned) == {("clicks", 0): (3, 10)}


def test_who_is_beyond_the_end_of_a_run_has_lost_nothing():
    planned = plan(at(15), {"clicks": topic((0, 20))}, ALL, until={("clicks", 0): 10})

    assert (ranges(planned), planned.lost) == ({}, ())


def test_a_cut_read_ends_where_it_was_cut_and_others_where_they_were_planned():
    planned = plan(at(0, 0), {"clicks": topic((0, 9), (0, 7))}, ALL)

    end = reached(planned.end, {("clicks", 0): 4})

    assert end.topics["clicks"].partitions == {0: 4, 1: 7}
    assert end.behind == 5


def test_a_small_partition_is_not_kept_waiting_by_a_large_one():
    assert shares({("a", 0): 1000, ("b", 0): 3}, 100) == {("a", 0): 97, ("b", 0): 3}


waitings = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 5)), st.integers(-3, 1000), max_size=8
)


@given(waitings, st.integers(0, 2000))
def test_shares_use_up_what_there_is_and_are_fair(waiting, most):
    given_ = shares(waiting, most)
    wanted = {place: count for place, count in waiting.items() if count > 0}

    assert sum(given_.values()) == min(most, sum(wanted.values()))
    assert all(0 < count <= wanted[place] for place, count in given_.items())
    least = min((given_.get(place, 0) for place in wanted), default=0)
    # Who gets less than another by more than the rounding gets all that it wants.
    for place, count in wanted.items():
        if given_.get(place, 0) > least + 1:
            assert all(
                given_.get(other, 0) >= given_[place] - 1 or given_.get(other, 0) == wanted[other]
                for other in wanted
            ), (place, count)


def test_a_position_reads_as_it_was_written():
    position = at(3, 7, ends={0: 3, 1: 9})

    assert KafkaPosition.from_json(position.to_json()) == position
    assert ends_of({"clicks": topic((0, 3), (0, 9))}) == {("clicks", 0): 3, ("clicks", 1): 9}
