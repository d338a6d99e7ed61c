"""A log that began again is told from events that are late or delivered again."""

from __future__ import annotations

import random
from itertools import pairwise

from polynya.formats.eras import Era, LogEras, placed_before
from polynya.model.config.evolution import Policy

SECOND = 1_000_000
Met = tuple[int, str, int]


def met(events: list[Met], policy: Policy = "suspend", known: list[Era] | None = None) -> LogEras:
    """The eras after events of so many places, logs and seconds, read a second later."""
    eras = LogEras.of(known or [], policy)
    for at, log, seconds in events:
        place_at(eras, at, log, seconds)
    return eras


def place_at(eras: LogEras, at: int, log: str, seconds: int) -> tuple[str, str | None]:
    """The place of an event. Of the log of `OLD` one is read when its transaction has ended."""
    micros = seconds * SECOND
    seen = max(seconds, at * 6 if at in range(100, 2000) else 0) * SECOND
    return eras.placed((f"{at:035d}", None), log, micros, seen, tells=True)


OLD: list[Met] = [(at * 10, "mysql-bin", at * 60) for at in range(100, 110)]


def test_in_whatever_order_the_events_of_one_log_come_it_did_not_begin_again() -> None:
    chance = random.Random(7)
    # A transaction that began long ago commits at the end.
    events = [*OLD, (1050, "mysql-bin", 10), (1200, "mysql-bin", 6000)]
    for _ in range(200):
        mixed = [*events, *chance.sample(events, 5)]
        chance.shuffle(mixed)
        found = met(mixed)
        assert found.change is None
        assert len(found.eras) == 1


def test_a_newer_event_at_an_older_place_shows_a_log_that_began_again() -> None:
    found = met([*OLD, (5, "mysql-bin", 9000)])

    assert found.change is not None
    assert (found.change.kind, found.change.policy) == ("restart_log", "suspend")


def test_a_log_of_another_name_and_smaller_numbers_shows_it_without_a_later_time() -> None:
    assert met([*OLD, (5, "binlog", 109 * 60)]).change is not None


def test_another_server_whose_places_are_smaller_shows_it_too() -> None:
    assert met([(900, "binlog#1", 60), (5, "binlog#2", 61)]).change is not None
    assert met([(900, "binlog#1", 60), (901, "binlog#2", 61), (5, "binlog#2", 30)]).change is None


def test_a_snapshot_names_no_server() -> None:
    assert met([(900, "binlog#1", 60), (800, "binlog", 60), (901, "binlog#1", 61)]).change is None


def test_clocks_that_are_set_back_for_less_than_a_minute_show_nothing() -> None:
    assert met([(900, "", 60), (800, "", 110)]).change is None


def test_a_log_of_another_name_that_goes_on_with_greater_numbers_is_in_order() -> None:
    found = met([*OLD, (5000, "binlog", 9000), (1050, "mysql-bin", 109 * 60)])

    assert found.change is None


def test_an_older_log_that_lands_after_the_newer_one_shows_it_too() -> None:
    assert met([(5, "binlog", 9000), *OLD]).change is not None


def test_after_propagate_what_follows_comes_after_all_that_was_before() -> None:
    eras = met([*OLD, (5, "mysql-bin", 9000)], "apply")
    again = LogEras.of(eras.eras, "suspend")
    places = [
        place_at(again, *one)
        for one in (OLD[0], OLD[-1], (5, "mysql-bin", 9000), (7, "mysql-bin", 9100))
    ]

    assert again.change is None
    assert all(one < after for one, after in pairwise(places))
    assert {len(identifier) for identifier, _ in places} == {35, 39}


def test_late_events_of_both_eras_find_their_own() -> None:
    eras = met([*OLD, (50, "", 9000), (60, "", 9060)], "apply", known=[Era(("", "mysql-bin"))])
    known = [*eras.eras]
    late_old = place_at(LogEras.of(known, "suspend"), 1035, "mysql-bin", 103 * 60)
    late_new = LogEras.of(known, "suspend")

    assert late_old[0].startswith("0")
    # Newer than the old log and older than what was met of the new one.
    assert place_at(late_new, 40, "", 8990)[0].startswith("9001")
    assert late_new.change is None


def test_a_third_era_comes_after_the_second() -> None:
    eras = met([*OLD, (5, "binlog", 9000)], "apply")
    eras = met([(3, "mysql-bin", 20_000)], "apply", known=eras.eras)

    assert place_at(eras, 4, "mysql-bin", 20_001)[0].startswith("9002")
    assert place_at(eras, 6, "binlog", 9001)[0].startswith("9001")
    assert place_at(eras, *OLD[0])[0].startswith("0")


def test_ignore_takes_places_as_they_are_and_says_it_once() -> None:
    eras = met([*OLD, (5, "binlog", 9000)], "ignore")
    assert eras.change is not None
    again = LogEras.of(eras.eras, "suspend")

    assert place_at(again, 6, "binlog", 9001)[0].startswith("0")
    assert again.change is None


def test_reads_in_the_middle_of_a_stream_tell_nothing() -> None:
    eras = met(list(OLD))
    eras.placed(("0" * 34 + "5", None), "mysql-bin", 9000 * SECOND, None, tells=False)

    assert eras.change is None


def test_reads_in_a_log_of_another_name_show_that_it_began_again() -> None:
    eras = met(list(OLD))
    eras.placed(("0" * 34 + "5", None), "binlog", 9000 * SECOND, None, tells=False)

    assert eras.change is not None


def test_a_long_identifier_gives_its_second_number_to_the_tail() -> None:
    eras = LogEras([Era(("",), None, "9", 1, 1), Era(("",), 5, "1", 5, 5)])
    identifier, tail = eras.placed(("1" * 25 + "2" * 25, "3" * 10), "", 9, None, tells=False)

    assert identifier == "9001" + "1" * 25
    assert tail == "2" * 25 + "3" * 10


def test_a_view_of_the_source_stands_in_the_newest_era() -> None:
    known = met([*OLD, (5, "mysql-bin", 9000)], "apply").eras

    place = placed_before(("0" * 33 + "99", None), known, "mysql-bin", 9999 * SECOND)

    assert place[0].startswith("9001")
