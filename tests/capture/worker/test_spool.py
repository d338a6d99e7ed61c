"""Lines that wait in a scratch file until they land as one object."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from polynya.capture.landing.log import CaptureLander, CaptureLog
from polynya.capture.landing.position import CapturePosition, ResumePoint
from polynya.capture.worker.loads import Spool
from polynya.model.errors import ConflictError, OperationError
from polynya.store.object_store import LocalObjectStore
from tests.capture.deadly_store import landed_values
from tests.capture.stand_in import ENVELOPE

OTHER = {**ENVELOPE, "name": "other"}


def a_lander(folder: Path) -> CaptureLander:
    log = CaptureLog(LocalObjectStore(folder), "shop")
    lander = CaptureLander(
        log, "shop", lambda: datetime(2026, 1, 1, tzinfo=UTC), writer=str(folder)
    )
    lander.begin(CapturePosition(ResumePoint({})))
    return lander


def filled() -> Spool:
    spool = Spool("s.t")
    for number, shape in enumerate([ENVELOPE, ENVELOPE, OTHER]):
        spool.add(b'{"key":null,"value":{"n":%d}}\n' % number * 2, 2, shape)
    return spool


def test_what_was_added_lands_as_one_batch(tmp_path: Path) -> None:
    lander, spool = a_lander(tmp_path), filled()

    lander.land_file(spool.file, spool.events, {"s.t": spool.shapes}, lambda before: before)

    log = CaptureLog(LocalObjectStore(tmp_path), "shop")
    header = log.newest()
    assert header is not None
    assert (header.number, header.events) == (2, 6)
    assert [one.first for one in header.schemas["s.t"]] == [1, 5]
    values = landed_values(LocalObjectStore(tmp_path), "shop")  # type: ignore[arg-type]
    assert [one["n"] for one in values] == [0, 0, 1, 1, 2, 2]


def test_of_two_captures_one_loses_the_number(tmp_path: Path) -> None:
    first, spool = a_lander(tmp_path), filled()
    log = CaptureLog(LocalObjectStore(tmp_path), "shop")
    other = CaptureLander(
        log, "shop", lambda: datetime(2026, 1, 1, tzinfo=UTC), writer="other", newest=log.newest()
    )
    first.land_file(spool.file, spool.events, {"s.t": spool.shapes}, lambda before: before)

    with pytest.raises(ConflictError, match="another capture has landed"):
        other.land_file(spool.file, spool.events, {"s.t": spool.shapes}, lambda before: before)


def test_what_was_added_can_be_read_again() -> None:
    parts = [(lines.count(b"\n"), shape) for lines, shape in filled().parts()]

    assert parts == [(2, ENVELOPE), (2, ENVELOPE), (2, OTHER)]


def test_lines_that_do_not_fit_into_an_object_are_refused_by_name() -> None:
    spool = Spool("s.t", most_bytes=50)

    with pytest.raises(OperationError, match=r"s\.t, which has no key") as caught:
        spool.add(bytes(range(33, 120)) + b"\n", 1, ENVELOPE)

    assert caught.value.code == "POLYNYA-GTW-011"
    assert not spool.events
