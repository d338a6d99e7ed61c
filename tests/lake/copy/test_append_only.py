"""Without a fold: every event is a row."""

from __future__ import annotations

from tests.lab.lab import Lab, drop, put


def test_every_landed_row_is_kept_also_equal_ones(lab: Lab) -> None:
    nothing = ("keys", "sequence_by", "timestamp", "apply_as_deletes", "apply_as_truncates")
    settings = dict.fromkeys((*nothing, "except_columns"))
    log = lab.feed("log", mode="append_only", history=False, **settings)

    log.copy({"line": "a"}, {"line": "a"}, {"line": "b"})
    log.apply({"line": "a"})

    assert log.current("line") == [("a",), ("a",), ("a",), ("b",)]
    assert {row[0] for row in log.stored("current", "hdr__operation")} == {"U"}
    assert log.totals() == {"in": 4, "out": 4, "filtered": 0, "quarantined": 0}


def test_deletes_are_no_rows_of_the_view(lab: Lab) -> None:
    log = lab.feed("log", mode="append_only", history=False)

    log.apply(put(1, 1, name="Ann"), drop(1, 2), put(1, 3, name="Anna"))

    assert log.current("id", "name") == [(1, "Ann"), (1, "Anna")]


def test_a_null_key_is_no_fault_where_keys_do_not_count(lab: Lab) -> None:
    log = lab.feed("log", mode="append_only", history=False)

    log.apply(put(None, 1, name="nobody"), put(2, 2, name="Ben"))

    assert log.current("name") == [("Ben",), ("nobody",)]
    assert log.rejected() == []
