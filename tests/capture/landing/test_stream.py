"""What of a stream lands, and where it goes on: after whole transactions, one place at once."""

from __future__ import annotations

from typing import Any

from polynya.capture.landing.position import Passed, ResumePoint
from polynya.capture.landing.stream import Cut, StreamEvent, cutter_of

BEGIN = ResumePoint({"lsn": 100, "txId": 1})


def row(transaction: int, lsn: int, name: str = "", shape: Any = None) -> StreamEvent:
    offset = {"lsn": lsn, "txId": transaction}
    text = (name or f"{transaction}/{lsn}").encode() + b"\n"
    return StreamEvent("row", text, lambda: offset, "w.t", shape)


def end(transaction: int, lsn: int) -> StreamEvent:
    offset = {"lsn": lsn, "txId": transaction}
    return StreamEvent("end", b"", lambda: offset, record=lambda: lsn)


def lines(cut: Cut) -> bytes:
    return b"".join(event.line for event in cut.events)


def test_a_whole_transaction_lands_and_the_position_is_its_end() -> None:
    cut = cutter_of("postgresql", BEGIN).take([row(7, 110), row(7, 120), end(7, 130)])

    assert lines(cut) == b"7/110\n7/120\n"
    assert cut.position == ResumePoint({"lsn": 130, "txId": 7})
    assert cut.last is not None


def test_inside_of_a_transaction_the_position_is_the_end_before_and_what_has_landed() -> None:
    cut = cutter_of("postgresql", BEGIN).take([end(6, 105), row(7, 110), row(7, 120), row(7, 130)])

    assert lines(cut) == b"7/110\n7/120\n"
    assert cut.position == ResumePoint({"lsn": 105, "txId": 6}, Passed("7", 120))


def test_events_of_one_place_wait_for_each_other() -> None:
    """Rows of one COPY, or both halves of a change of key: a restart would pass over the rest."""
    cutter = cutter_of("postgresql", BEGIN)

    first = cutter.take([row(7, 110, "a"), row(7, 120, "b"), row(7, 120, "c")])
    second = cutter.take([row(7, 120, "d"), row(7, 130, "e")])
    third = cutter.take([end(7, 140)])

    assert [lines(first), lines(second), lines(third)] == [b"a\n", b"b\nc\nd\n", b"e\n"]
    assert third.position == ResumePoint({"lsn": 140, "txId": 7})


def test_the_database_is_told_of_ends_only() -> None:
    cutter = cutter_of("postgresql", BEGIN)

    assert cutter.take([row(7, 110), row(7, 120)]).last is None
    assert cutter.take([end(7, 130), row(8, 130)]).last is not None


def test_after_a_restart_what_had_landed_is_left_out() -> None:
    cutter = cutter_of("postgresql", ResumePoint({"lsn": 105, "txId": 6}, Passed("7", 120)))

    first = cutter.take([row(7, 110), row(7, 120, "x")])
    second = cutter.take([row(7, 120, "y"), row(7, 130), end(7, 140), row(8, 140), end(8, 150)])

    assert (lines(first), lines(second)) == (b"", b"7/130\n8/140\n")


def test_of_a_large_transaction_that_is_repeated_few_places_are_looked_at() -> None:
    cutter = cutter_of("postgresql", ResumePoint({"lsn": 105, "txId": 6}, Passed("7", 5000)))
    asked = []

    def counted(lsn: int) -> StreamEvent:
        def offset() -> dict[str, int]:
            asked.append(lsn)
            return {"lsn": lsn, "txId": 7}

        return StreamEvent("row", b"%d\n" % lsn, offset, "w.t")

    cut = cutter.take([counted(200 + n) for n in range(4900)])

    assert lines(cut) == b"".join(b"%d\n" % lsn for lsn in range(5001, 5099))
    assert len(asked) < 30


def test_nothing_is_left_out_of_another_transaction() -> None:
    """A place may be that of the end before: the first event of a transaction can share it."""
    cutter = cutter_of("postgresql", ResumePoint({"lsn": 105, "txId": 6}, Passed("7", 120)))

    cut = cutter.take([row(9, 105, "x"), end(9, 130)])

    assert lines(cut) == b"x\n"


def test_a_position_that_moves_without_events_is_known() -> None:
    cut = cutter_of("postgresql", BEGIN).take([end(7, 130)])

    assert (lines(cut), cut.position.offset["lsn"]) == (b"", 130)


def test_a_connector_that_restarts_at_each_event_has_no_rest() -> None:
    cut = cutter_of("mariadb", BEGIN).take([row(7, 110), row(7, 110, "b")])

    assert lines(cut) == b"7/110\nb\n"
    assert cut.position == ResumePoint({"lsn": 110, "txId": 7})
