"""Records that are read again after the settings were mended: as if they had been good at once."""

from __future__ import annotations

import pytest

from polynya.engine.commands.replay import ReplayResult, replay
from polynya.engine.inventory import ProjectTable
from tests.lab.lab import Feed, Lab, drop, put


def replayed(users: Feed, identifiers: list[str] | None = None) -> ReplayResult:
    """`polynya quarantine replay`."""
    entry = ProjectTable(users.task, users.dataset, None)
    return replay(users.lab.context("never"), entry, identifiers)


def seen(event: dict[str, object], *, bad: bool = False) -> dict[str, object]:
    """An event with its time once more, in a column that may be unreadable."""
    return {**event, "seen": "yesterday" if bad else event["at"]}


@pytest.mark.slow
def test_the_tables_are_as_if_all_records_had_been_good_at_once(lab: Lab) -> None:
    """Updates, a delete and a first event are late by then, in a history that was applied."""
    users, good = lab.feed(timestamp="seen"), lab.feed("good")
    first = [
        seen(put(1, 1, name="Ann"), bad=True),
        seen(put(1, 3, name="Anna")),
        seen(put(2, 2, name="Ben")),
        seen(drop(2, 4), bad=True),
        seen(put(2, 6, name="Benny")),
    ]
    second = [seen(put(1, 2, name="Anne"), bad=True), seen(drop(1, 5)), seen(put(3, 1), bad=True)]
    for feed in (users, good):
        feed.apply(*first)
        feed.apply(*second)
    assert [rule for *_, rule in users.rejected()] == ["bad_timestamp"] * 4
    users.configure(timestamp="at")

    result = replayed(users)
    before = users.current("id", "name", "seen")
    users.apply()

    assert (result.records, result.copied, result.quarantined) == (4, 4, 0)
    assert users.rejected() == []
    assert before == users.current("id", "name", "seen") == good.current("id", "name", "seen")
    assert users.history("id", "name") == good.history("id", "name")
    assert len(users.history("id")) == 8
    assert users.totals() == good.totals()


def test_what_still_does_not_fit_stays_in_quarantine(lab: Lab) -> None:
    users = lab.feed(columns={"size": "bigint"})
    users.apply(put(1, 1, size="1"), put(1, 3, size="three"))

    result = replayed(users)

    assert (result.records, result.copied, result.quarantined) == (1, 0, 1)
    assert [row[1:] for row in users.rejected()] == [(1, "bad_value")]
    assert users.totals() == {"in": 2, "out": 1, "filtered": 0, "quarantined": 1}


def test_only_the_chosen_records_are_read_again(lab: Lab) -> None:
    users = lab.feed(timestamp="seen")
    users.copy(put(1, 1, seen="never"), put(2, 2, seen="ever"), put(3, 3, seen=None))
    users.configure(timestamp="at")
    ((chosen,),) = users.lab.rows(
        f"SELECT hdr__quarantine.id FROM {users.internal} WHERE hdr__quarantine.offset = 1"
    )

    replayed(users, [chosen])

    assert users.current("id") == [(2,), (3,)]
    assert [row[1] for row in users.rejected()] == [0]
    assert users.totals() == {"in": 3, "out": 2, "filtered": 0, "quarantined": 1}


def test_a_file_that_was_refused_whole_is_read_again_by_the_next_run(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    broken = users.folder / "0009.json.gz"
    broken.write_bytes(b"\x1f\x8b no gzip")
    users.configure(path="*.json*")
    users.run()
    assert [row[1] for row in users.rejected()] == [-1]

    result = replayed(users)
    broken.unlink()
    users.land(put(2, 2, name="Ben"), file="0009.json")
    users.run()

    assert result.files == (f"{users.lab.schema}/users/0009.json.gz",)
    assert users.current("id") == [(1,), (2,)]
    assert users.rejected() == []
    assert users.totals() == {"in": 2, "out": 2, "filtered": 0, "quarantined": 0}


def test_a_truncate_that_is_read_again_works_retroactively(lab: Lab) -> None:
    users = lab.feed(apply_as_truncates="op = 'X'")
    bad = {"op": "X", "seq": 5, "at": "yesterday"}
    users.apply(put(1, 1, name="Ann"), bad, put(2, 9, name="Ben"))
    users.configure(timestamp=None)

    replayed(users)

    assert users.current("id") == [(2,)]
    assert users.rejected() == []
    assert users.totals() == {"in": 3, "out": 3, "filtered": 0, "quarantined": 0}


def test_a_record_of_the_first_load_is_still_one(lab: Lab) -> None:
    """It has no sequence, and stands before every change."""
    users = lab.feed(initial_load="load/*.json", timestamp="seen")
    users.land({"id": 1, "name": "Ann", "seen": "yesterday"}, {"id": 2}, file="load/1.json")
    users.land(put(1, 5, name="Anna", seen="also yesterday"))
    users.run()
    assert [rule for *_, rule in users.rejected()] == ["bad_timestamp", "bad_timestamp"]
    users.configure(timestamp="at")

    replayed(users)
    before = users.current("id", "name")
    users.apply()

    assert before == users.current("id", "name") == [(1, "Anna"), (2, None)]
    assert [row[:3] for row in users.history("id", "name")] == [
        (1, "Ann", "L"),
        (1, "Anna", "U"),
        (2, None, "L"),
    ]
    assert users.totals() == {"in": 3, "out": 3, "filtered": 0, "quarantined": 0}
