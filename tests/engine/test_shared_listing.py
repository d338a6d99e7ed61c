"""Datasets of one folder share a list of its files, which only gets newer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.engine.listing import (
    IdlePace,
    LandingFolder,
    ListingReader,
    ListRequests,
    SharedListing,
    TaskListings,
    idle_pace,
    idle_wait,
)
from polynya.engine.runner import units
from polynya.engine.unit import TimeSlice
from polynya.formats.files import LandedFiles
from polynya.store.object_store import ObjectInfo
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.lab.lab import Lab, put

GOES_ON, AT_ONCE = TimeSlice(at_once=False), TimeSlice(at_once=True)


class Zone:
    """A landing zone in memory that takes its time and counts how it is listed."""

    def __init__(self, clock: FakeClock, *paths: str, seconds: float = 0.0) -> None:
        self.sizes = dict.fromkeys(paths, 1)
        self.lists: list[str] = []
        self.clock, self.seconds, self.seconds_of_ends = clock, seconds, 0.0

    def files(self) -> list[ObjectInfo]:
        self.lists.append("all")
        self.clock.advance(timedelta(seconds=self.seconds))
        return [ObjectInfo(path, size, str(size)) for path, size in self.sizes.items()]

    def beginning(self, start: str, after: str) -> list[ObjectInfo]:
        self.lists.append(f"{start} after {after}")
        self.clock.advance(timedelta(seconds=self.seconds_of_ends))
        paths = sorted(path for path in self.sizes if path.startswith(start) and path > after)
        return [ObjectInfo(path, self.sizes[path], str(self.sizes[path])) for path in paths]


def numbered(folder: str, count: int, first: int = 0) -> list[str]:
    return [f"{folder}/{number:05}" for number in range(first, first + count)]


class Looking:
    """Looks, after a first one, at a zone of two datasets that takes 0.1 s to list."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.zone = Zone(self.clock, *numbered("a", 1500), *numbered("b", 1500), seconds=0.1)
        self.look = SharedListing(self.zone, self.clock, ["a/", "b/", "a/late/"])
        self.look.files(GOES_ON)
        self.zone.lists.clear()

    def after(self, seconds: float) -> LandedFiles:
        self.clock.advance(timedelta(seconds=seconds))
        return self.look.files(GOES_ON)


def test_recent_listing_is_reused_except_in_a_single_run() -> None:
    clock = FakeClock()
    zone = Zone(clock, "a")
    look = SharedListing(zone, clock, [""])
    first = look.files(GOES_ON)
    zone.sizes["b"] = 1
    clock.advance(timedelta(seconds=0.9))
    second = look.files(GOES_ON)
    clock.advance(timedelta(seconds=0.1))
    third = look.files(GOES_ON)
    zone.sizes.clear()

    assert (len(first), len(second), len(third)) == (1, 1, 2)
    assert look.paths() == {"a", "b"}
    assert list(look.files(AT_ONCE)) == []
    assert look.paths() == set()
    assert zone.lists == ["all", "all", "all"]


def test_only_ends_are_listed_between_two_whole_listings() -> None:
    looking = Looking()
    looking.zone.sizes |= {"a/01500": 1, "b/2/1": 1, "b/01499": 7}
    del looking.zone.sizes["a/01495"]

    found = looking.after(1)
    same = looking.after(1)
    looking.after(58)

    assert looking.zone.lists == [
        *["a/ after a/01480", "b/ after b/01480"],
        # Two that are new have moved the end.
        *["a/ after a/01480", "b/ after b/01481"],
        "all",
    ]
    assert same is found
    assert {"a/01500", "b/2/1"} <= found.paths
    assert "a/01495" not in found.paths
    assert next(one.size for one in found if one.path == "b/01499") == 7
    assert list(found) == sorted(found, key=lambda one: one.path)


def test_file_in_between_causes_whole_listings_for_an_hour() -> None:
    looking = Looking()
    looking.zone.sizes["a/00007-late"] = 1

    missed = looking.after(30)
    met = looking.after(30)
    looking.zone.lists.clear()
    doubted = [looking.after(1), looking.after(3000)]
    looking.after(600)
    looking.after(1)

    assert "a/00007-late" not in missed.paths
    assert all("a/00007-late" in one.paths for one in (met, *doubted))
    assert looking.zone.lists[:3] == ["all", "all", "all"]
    assert looking.zone.lists[3].startswith("a/ after")


ENDS = ["a/ after a/01480", "b/ after b/01480"]


def test_slow_ends_are_not_listed_until_there_are_more_files() -> None:
    looking = Looking()
    looking.zone.seconds_of_ends = 0.04

    for _ in range(4):
        looking.after(1)
    looking.zone.seconds = 0.2
    looking.after(1)
    looking.after(1)

    assert looking.zone.lists == [*ENDS * 3, "all", "all", *ENDS]


def test_ends_that_were_slow_once_are_tried_again() -> None:
    """A whole list of a large folder each second is what makes a busy machine busier."""
    looking = Looking()
    looking.zone.seconds_of_ends = 0.4
    looking.after(1)
    looking.zone.seconds_of_ends = 0.001
    for seconds in (5, 1, 1):
        looking.after(seconds)

    assert looking.zone.lists == ENDS * 4

    looking.after(57)
    looking.zone.seconds_of_ends = 0.4
    looking.zone.lists.clear()
    for _ in range(5):
        looking.after(5)
    looking.after(58)
    looking.after(1)

    assert looking.zone.lists == [*ENDS * 3, "all", "all", "all", *ENDS]


def test_looks_at_a_folder_that_takes_long_to_list_take_a_fifth_of_the_time() -> None:
    clock = FakeClock()
    zone = Zone(clock, "a", seconds=2.0)
    look = SharedListing(zone, clock, [])
    look.files(GOES_ON)

    def lists_after(seconds: float) -> int:
        clock.advance(timedelta(seconds=seconds))
        look.files(GOES_ON)
        return len(zone.lists)

    # The time that the first one took counts.
    assert lists_after(7.9) == 1
    assert lists_after(0.1) == 2


def test_ends_are_looked_at_as_often_as_before_where_a_whole_list_takes_long() -> None:
    looking = Looking()
    looking.zone.seconds, looking.zone.seconds_of_ends = 20.0, 0.01
    looking.after(60)

    for _ in range(70):
        looking.after(1)

    assert looking.zone.lists == ["all", *ENDS * 70]


def test_new_file_at_the_end_causes_no_whole_listing() -> None:
    looking = Looking()
    looking.zone.sizes |= dict.fromkeys(numbered("a", 5, 1500), 1)

    looking.after(60)
    looking.after(1)

    assert looking.zone.lists[0] == "all"
    assert looking.zone.lists[1].startswith("a/ after")


def test_dataset_is_listed_sooner_after_an_apply_than_after_a_poll(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 2))
    # A late event is not applied by the commit that copies it.
    users.land(put(1, 1))
    (unit,) = units(lab.context("always"), [users.task])

    copied, applied, nothing = (unit.step(TimeSlice()) for _ in range(3))

    assert copied.more
    assert applied.wait_seconds == 1.0
    assert nothing.wait_seconds is None


def test_listing_after_a_landing_must_be_very_recent() -> None:
    clock = FakeClock()
    zone = Zone(clock, "a")
    look = SharedListing(zone, clock, [""])
    look.files(GOES_ON)
    zone.lists.clear()

    for _ in range(3):
        clock.advance(timedelta(seconds=0.07))
        look.files(TimeSlice(at_once=False, news=True))

    assert zone.lists == ["all"]


def test_waits_at_an_idle_folder_double_up_to_the_longest() -> None:
    assert [idle_wait(looks, 30.0) for looks in range(8)] == [0, 2, 4, 8, 16, 30, 30, 30]
    assert idle_wait(10_000, 200.0) == 200.0


@given(
    st.lists(
        st.builds(ListRequests, st.integers(1, 500), st.integers(0, 5000)), min_size=1, max_size=50
    )
)
def test_idle_folders_together_take_at_most_one_request_a_second(
    requests: list[ListRequests],
) -> None:
    pace = idle_pace(requests)

    a_second = sum(each.look for each in requests) / pace.look
    a_second += sum(each.whole for each in requests) / pace.whole
    assert a_second <= 1.0
    assert pace.look >= 30.0
    assert pace.whole >= 60.0


def test_wait_that_a_user_set_is_kept_whatever_it_costs() -> None:
    assert idle_pace([ListRequests(500, 0)], 5.0) == IdlePace(look=5.0, whole=60.0)


class OnS3:
    """Looks at an idle folder whose list requests cost money, at 2 s and then every 30 s."""

    def __init__(self, *paths: str, starts: tuple[str, ...] = ("a/", "b/")) -> None:
        self.clock = FakeClock()
        self.zone = Zone(self.clock, *paths)
        self.look = SharedListing(
            self.zone, self.clock, starts, idle=lambda: IdlePace(look=30.0, whole=600.0)
        )
        for _ in range(8):
            self.after(30)
        self.zone.lists.clear()

    def after(self, seconds: float) -> LandedFiles:
        self.clock.advance(timedelta(seconds=seconds))
        return self.look.files(GOES_ON)


def test_folder_on_s3_is_listed_by_ends_where_that_takes_fewer_requests() -> None:
    few, many = OnS3("a/1"), OnS3(*numbered("a", 1500), *numbered("b", 1500))

    few.after(30)
    many.after(30)

    assert few.zone.lists == ["all"]
    assert many.zone.lists == ENDS
    assert (few.look.requests, many.look.requests) == (ListRequests(1, 0), ListRequests(2, 3))


def test_idle_folder_is_listed_often_again_once_something_is_found() -> None:
    idle = OnS3("a/1")

    idle.after(29)
    before = list(idle.zone.lists)
    idle.zone.sizes["a/2"] = 1
    idle.after(1)
    for _ in range(4):
        idle.after(1)

    assert before == []
    # At 0, 1, 3 and 7 seconds after the file was found.
    assert len(idle.zone.lists) == 3
    assert "a/2" in idle.look.paths()


def test_file_that_left_does_not_make_looks_frequent() -> None:
    idle = OnS3("a/1", "a/2")
    del idle.zone.sizes["a/1"]

    for _ in range(40):
        idle.after(2)

    assert len(idle.zone.lists) == 2
    assert idle.look.paths() == {"a/2"}


def test_landing_in_this_process_makes_an_idle_folder_listed_at_once() -> None:
    idle = OnS3("a/1")
    idle.zone.sizes["a/2"] = 1

    idle.clock.advance(timedelta(seconds=0.2))
    found = idle.look.files(TimeSlice(at_once=False, news=True))

    assert "a/2" in found.paths


def test_hint_ends_the_wait_of_an_idle_folder() -> None:
    idle = OnS3("a/1")
    idle.zone.sizes["a/2"] = 1
    before = idle.after(1)
    idle.look.hint()

    hinted = idle.after(1)

    assert "a/2" not in before.paths
    assert "a/2" in hinted.paths
    assert len(idle.zone.lists) == 1


def test_hints_for_nothing_cost_one_request_a_second_at_most() -> None:
    idle = OnS3("a/1")

    for _ in range(80):
        idle.look.hint()
        idle.after(0.125)
    wrong = len(idle.zone.lists)
    for _ in range(30):
        idle.after(1)

    assert wrong == 10
    # And leave the folder as idle as it was.
    assert len(idle.zone.lists) == wrong + 1


def test_hint_that_comes_while_s3_answers_is_not_forgotten() -> None:
    idle = OnS3("a/1")

    class Late(Zone):
        def files(self) -> list[ObjectInfo]:
            found = super().files()
            if not self.sizes.get("a/2"):
                self.sizes["a/2"] = 1
                look.hint()
            return found

    zone = Late(idle.clock, "a/1")
    look = SharedListing(zone, idle.clock, ["a/"], idle=lambda: IdlePace(look=30.0, whole=600.0))
    first = look.files(GOES_ON)
    idle.clock.advance(timedelta(seconds=1))

    assert "a/2" not in first.paths
    assert "a/2" in look.files(GOES_ON).paths


@pytest.mark.parametrize(
    ("start", "looked_at"),
    [
        ("shop/orders/2026/", ["", "shop", "shop/orders"]),
        ("shop/", ["", "shop", "shop/orders"]),
        ("shopping/", ["", "shopping"]),
        ("", ["", "shop", "shop/orders", "shopping"]),
        ("elsewhere/", [""]),
    ],
)
def test_hint_reaches_the_folders_that_may_have_what_landed(
    start: str, looked_at: list[str]
) -> None:
    listed: list[str] = []

    class Counting(MemoryObjectStore):
        def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
            listed.append(prefix)
            return super().list(prefix)

    clock, store, listings = FakeClock(), Counting(), TaskListings()
    folders = [
        listings.of(
            LandingFolder(store, path), [], clock,
            reused_seconds=1.0, on_s3=True, asked_seconds=None,
        )
        for path in ("", "shop", "shop/orders", "shopping")
    ]  # fmt: skip
    for seconds in (*[31] * 8, 1):
        clock.advance(timedelta(seconds=seconds))
        for folder in folders:
            folder.files(GOES_ON)
    listed.clear()

    listings.hint([start])
    clock.advance(timedelta(seconds=1))
    for folder in folders:
        folder.files(GOES_ON)

    assert listed == looked_at


def test_old_list_is_renewed_before_anything_is_copied_from_it() -> None:
    idle = OnS3("a/1", "a/2")
    reader = ListingReader(idle.look, idle.clock, 0.0)
    old = reader.files(GOES_ON)
    idle.clock.advance(timedelta(seconds=20))
    del idle.zone.sizes["a/1"]
    idle.zone.lists.clear()

    newer = reader.refreshed(GOES_ON)
    again = reader.refreshed(GOES_ON)

    assert old.paths == {"a/1", "a/2"}
    assert newer is not None
    assert newer.paths == {"a/2"}
    assert again is None
    assert idle.zone.lists == ["all"]


def test_before_a_copy_names_before_the_end_are_as_new_as_in_a_busy_folder() -> None:
    idle = OnS3(*numbered("a", 1500), *numbered("b", 1500))
    idle.clock.advance(timedelta(seconds=70))

    idle.look.refreshed(GOES_ON, 1.0)

    assert idle.zone.lists == ["all"]


def test_folder_of_this_machine_is_looked_at_as_often_as_ever() -> None:
    clock = FakeClock()
    zone = Zone(clock, "a")
    look = SharedListing(zone, clock, [""])

    for _ in range(50):
        clock.advance(timedelta(seconds=2))
        look.files(GOES_ON)

    assert len(zone.lists) == 50
