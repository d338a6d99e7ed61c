"""Views of a source in which nothing happens have one place in its log, at different times."""

from __future__ import annotations

from polynya.formats.eras import CLOCK_TOLERANCE_MICROS, LogEras

_PLACE = ("00000000000000000001", None)
_T = 1_795_803_923_469_000


def test_a_view_at_the_newest_place_is_of_the_same_log_however_late_it_is() -> None:
    eras = LogEras([], "suspend")

    for number in range(3):
        at = _T + number * 2 * CLOCK_TOLERANCE_MICROS
        assert eras.placed(_PLACE, "binlog", at, at, tells=True) == _PLACE

    assert eras.change is None
    assert len(eras.eras) == 1


def test_an_older_place_at_a_newer_time_still_tells_that_the_log_began_again() -> None:
    eras = LogEras([], "suspend")
    eras.placed(("00000000000000000002", None), "binlog", _T, _T, tells=True)

    late = _T + 2 * CLOCK_TOLERANCE_MICROS
    eras.placed(_PLACE, "binlog", late, late, tells=True)

    assert eras.change is not None
