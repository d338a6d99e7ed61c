"""Files land in the order of their dates, exactly once, whatever is killed; nothing is silent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.model.errors import DependencyError, OperationError
from polynya.streams.files import source
from polynya.streams.files.position import described
from polynya.streams.files.source import files_position
from tests.streams.files.given import NOW, Landing, day


def test_files_land_in_the_order_of_their_dates_a_row_for_each_line() -> None:
    landing = Landing()
    landing.put(day(0, "b"), '{"n":3}')
    landing.put(day(40, "z"), '{"n":1}', "", '{"n":2}')
    landing.put("2026/11/other.json", '{"n":9}')

    assert landing.land() == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
    assert landing.rows[:2] == [(day(40, "z"), 0, b'{"n":1}'), (day(40, "z"), 1, b'{"n":2}')]
    assert landing.land() == []
    assert landing.batches == 1


def test_a_date_in_the_future_waits() -> None:
    landing = Landing()
    landing.put(day(-1, "a"), "1")

    assert landing.land() == []
    landing.clock.advance(timedelta(days=1))
    assert landing.land() == [b"1"]


def test_a_file_that_comes_late_is_found_within_the_look_back_and_not_after_it() -> None:
    landing = Landing({"look_back": "1d"})
    landing.put(day(0, "b"), "1")
    landing.land()

    landing.put(day(1, "late"), "2")
    landing.put(day(2, "too-late"), "3")
    landing.put(day(0, "a"), "4")

    assert landing.land() == [b"2", b"4"]


def test_a_file_that_comes_while_its_day_is_being_read_is_found() -> None:
    landing = Landing()
    for name in "bcd":
        landing.put(day(0, name), name)
    landing.step(max_records=1)
    landing.put(day(0, "a"), "a")
    landing.again()

    assert landing.land(max_records=1) == [b"a", b"c", b"d"]


def test_what_came_while_nobody_looked_is_read_although_the_look_back_is_over() -> None:
    landing = Landing({"look_back": "1d"})
    landing.put(day(0, "a"), "1")
    landing.land()
    landing.clock.advance(timedelta(days=10))
    landing.put(day(0, "b"), "2")
    landing.put(day(-5, "a"), "3")
    landing.again()

    assert landing.land() == [b"2", b"3"]


def test_it_begins_with_all_files_with_a_time_or_with_new_ones_only() -> None:
    files = {day(5, "a"): b"5\n", day(1, "a"): b"1\n", day(0, "a"): b"0\n"}
    landed = {}
    for start in ("earliest", datetime(2026, 11, 22, 17, tzinfo=UTC), "now"):
        landing = Landing(start_from=start)
        landing.store.objects.update(files)
        first = landing.land()
        landing.put(day(0, "b"), "new")
        landed[str(start)[:4]] = first, landing.land()

    assert landed == {
        "earl": ([b"5", b"1", b"0"], [b"new"]),
        "2026": ([b"1", b"0"], [b"new"]),
        "now": ([], [b"new"]),
    }


def test_the_initial_load_is_read_first_and_once() -> None:
    landing = Landing({"initial_load": "full/*.json"})
    for name, line in (("full/2.json", "b"), ("full/1.json", "a"), (day(0, "x"), "c")):
        landing.put(name, line)

    assert landing.land(max_records=1) == [b"a", b"b", b"c"]
    landing.put("full/3.json", "d")
    landing.again()
    assert landing.land() == []


def test_a_file_that_changed_after_it_was_read_is_named_once_and_not_read_again() -> None:
    landing = Landing()
    landing.put(day(0, "a"), "1")
    landing.land()
    landing.put(day(0, "a"), "1", "2")

    assert landing.land() == []
    assert [at for at, _ in landing.lost] == [day(0, "a")]
    assert "changed after it was read" in landing.lost[0][1]
    landing.again()
    landing.land()
    assert len(landing.lost) == 1


def test_a_large_file_is_cut_and_goes_on_at_its_record_also_in_a_new_process() -> None:
    landing = Landing()
    lines = [f'{{"n":{number}}}' for number in range(25)]
    landing.put(day(3, "a"), *lines)
    landing.put(day(3, "b"), "last")

    for _ in range(2):
        landing.step(max_records=10)
    landing.again()
    landing.land(max_records=10)

    assert [value.decode() for _, _, value in landing.rows] == [*lines, "last"]
    assert [record for _, record, _ in landing.rows] == [*range(25), 0]
    assert landing.batches == 3


def test_bytes_end_a_batch_too_and_one_message_is_always_taken() -> None:
    landing = Landing()
    landing.put(day(0, "a"), "x" * 50, "y" * 50, "z" * 500)

    landing.land(max_bytes=120)

    assert landing.batches == 2
    assert len(landing.rows) == 3


def test_a_file_that_changes_while_it_is_cut_is_named_with_the_record_that_is_lost() -> None:
    landing = Landing()
    landing.put(day(0, "a"), "1", "2", "3")
    landing.step(max_records=2)
    landing.put(day(0, "a"), "1", "2", "3", "4")
    landing.again()

    landing.land()

    assert [row[2] for row in landing.rows] == [b"1", b"2"]
    assert landing.lost[0] == (day(0, "a"), "changed before it was read to its end")


def test_a_file_that_is_gone_before_it_is_read_is_named() -> None:
    landing = Landing()
    for name in "abc":
        landing.put(day(0, name), name)
    landing.step(max_records=1)
    landing.store.delete(day(0, "b"))

    landing.land(max_records=1)

    assert [row[2] for row in landing.rows] == [b"a", b"c"]
    assert landing.lost == [(day(0, "b"), "gone before it was read")]


def test_a_file_whose_writer_was_not_done_is_read_as_it_is_then() -> None:
    landing = Landing()
    for name in "abc":
        landing.put(day(30, name), name)
    landing.step(max_records=1)
    landing.put(day(30, "b"), "b", "and more")

    assert landing.land(max_records=1) == [b"b", b"and more", b"c"]
    assert landing.lost == []


def test_files_are_deleted_after_the_batch_that_took_their_last_record_was_put() -> None:
    landing = Landing({"delete_after_load": True})
    landing.put(day(0, "a"), "1", "2", "3")
    landing.put(day(0, "b"), "4")

    landing.step(max_records=2)
    landing.step(max_records=2, put=False)
    assert sorted(landing.store.objects) == [day(0, "a"), day(0, "b")]
    landing.again()
    landing.step(max_records=1)
    assert sorted(landing.store.objects) == [day(0, "a"), day(0, "b")]
    landing.step(max_records=1)
    assert sorted(landing.store.objects) == [day(0, "b")]
    landing.again()
    assert landing.land() == []

    assert landing.store.objects == {}
    assert [row[2] for row in landing.rows] == [b"1", b"2", b"3", b"4"]


def test_a_file_that_was_written_again_is_not_deleted() -> None:
    landing = Landing({"delete_after_load": True})
    landing.put(day(0, "a"), "1")
    landing.step()
    landing.put(day(0, "a"), "other")

    landing.land()

    assert list(landing.store.objects) == [day(0, "a")]
    assert "changed after it was read" in landing.lost[0][1]


def test_without_the_right_to_delete_nothing_more_is_read_until_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    landing = Landing({"delete_after_load": True})
    landing.put(day(0, "a"), "1")
    landing.step()
    landing.put(day(0, "b"), "2")

    def refuse(name: str, version: str) -> bool:
        raise DependencyError("POLYNYA-AWS-002", f"AWS refuses to delete {name} {version}")

    with monkeypatch.context() as patch:
        patch.setattr(landing.store, "delete_if_unchanged", refuse)
        for _ in range(2):
            with pytest.raises(DependencyError, match="refuses to delete"):
                landing.step()
    assert landing.land() == [b"2"]
    assert landing.store.objects == {}


def test_files_without_dates_are_remembered_as_long_as_they_are_there() -> None:
    landing = Landing({"pattern": "in/*.json"})
    landing.put("in/a.json", "1")
    landing.put("in/b.json", "2")
    assert landing.land() == [b"1", b"2"]
    landing.store.delete("in/a.json")
    landing.put("in/0.json", "3")

    assert landing.land() == [b"3"]
    assert len(files_position(landing.position or {}, "").known) == 2


def test_too_many_files_without_dates_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_REMEMBERED_FILES", 2)
    landing = Landing({"pattern": "in/*.json"})
    for number in range(3):
        landing.put(f"in/{number}.json", "1")

    with pytest.raises(OperationError, match="files without dates"):
        landing.land()


def test_folders_with_stars_before_the_dates_are_walked() -> None:
    landing = Landing({"pattern": "*/<yyyy>-<MM>-<dd>/*.json"})
    landing.put("north/2026-11-23/a.json", "1")
    landing.put("south/2026-11-22/a.json", "2")
    assert landing.land() == [b"2", b"1"]

    landing.put("west/2026-11-23/a.json", "3")
    assert landing.land() == [b"3"]


def test_the_position_of_another_source_is_refused() -> None:
    with pytest.raises(OperationError, match="not one of files"):
        files_position({"topics": {}}, "clicks/batch-1")


@settings(max_examples=150)
@given(st.data())
def test_every_file_lands_exactly_once_whatever_comes_when_and_is_killed(
    data: st.DataObject,
) -> None:
    """Files come within the look-back or while nobody looks; processes end between any steps."""
    landing = Landing(
        {
            "look_back": "2d",
            "delete_after_load": data.draw(st.booleans(), "delete"),
            "pattern": data.draw(
                st.sampled_from(["<yyyy>/<MM>/<dd>/part-*.json", "<dd><MM>/<yyyy>-*.json"])
            ),
        }
    )
    form = "%Y/%m/%d/part-" if landing.settings["pattern"].startswith("<yyyy>") else "%d%m/%Y-"
    written: dict[str, list[bytes]] = {}

    def arrive(oldest: int) -> None:
        moment = landing.clock.now() - timedelta(days=data.draw(st.integers(0, oldest), "age"))
        name = f"{moment:{form}}{data.draw(st.integers(0, 30), 'name')}.json"
        if name not in written:
            lines = [f"{name} {number}" for number in range(data.draw(st.integers(0, 5), "lines"))]
            landing.put(name, *lines)
            written[name] = [line.encode() for line in lines]

    for _ in range(data.draw(st.integers(0, 8))):
        arrive(30)
    for _ in range(data.draw(st.integers(1, 12))):
        what = data.draw(st.sampled_from(["arrive", "step", "killed", "again", "day"]))
        if what == "arrive":
            arrive(1)
        elif what == "day":
            # All that is there is read before it may be too late.
            landing.land(max_records=3)
            landing.clock.advance(timedelta(days=1))
        elif what == "again":
            landing.again()
        else:
            landing.step(max_records=3, put=what == "step")
            if what == "killed":
                landing.again()
    landing.land(max_records=3)

    assert sorted(row[2] for row in landing.rows) == sorted(chain(*written.values()))
    assert landing.lost == []
    if landing.settings["delete_after_load"]:
        assert landing.store.objects == {}


def test_the_position_holds_names_of_the_look_back_only() -> None:
    landing = Landing({"look_back": "1d"})
    for days in range(60):
        landing.put(day(days, "a"), "x")
    landing.land(max_records=7)

    position = files_position(landing.position or {}, "")
    assert position.since == (NOW - timedelta(days=1)).replace(hour=0, minute=0)
    assert len(position.known) == 2


def test_a_position_says_how_many_files_are_left_and_how_old_the_oldest_is() -> None:
    landing = Landing()
    for days in range(3):
        landing.put(day(days, "1"), "a", "b")
        landing.store.written[day(days, "1")] = (NOW - timedelta(hours=days)).timestamp()

    told = []
    while landing.step(max_records=3):
        told.append(described(landing.position or {}))

    # The oldest is read first. Of the second a part is left, and then nothing is.
    assert [(one.behind, one.unread_since) for one in told] == [
        (2, NOW - timedelta(hours=1)),
        (0, None),
    ]
