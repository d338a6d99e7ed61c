"""The history of schemas beside the batches: never behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.capture.debezium import KeptHistory
from polynya.capture.landing.log import CaptureLog
from polynya.model.errors import OperationError
from polynya.testing.fakes import MemoryObjectStore


def test_what_has_grown_is_kept_and_comes_back(tmp_path: Path) -> None:
    log, file = CaptureLog(MemoryObjectStore(), "shop"), tmp_path / "history"
    history = KeptHistory(file, log)
    assert history.kept(0) == 0
    file.write_text("one\n")
    assert history.kept(0) == 1
    assert history.kept(1) == 1
    file.write_text("one\ntwo\n")
    assert history.kept(1) == 2

    other = tmp_path / "other"
    assert KeptHistory(other, log).restore(2)
    assert other.read_text() == "one\ntwo\n"


def test_one_that_no_batch_names_yet_is_not_replaced(tmp_path: Path) -> None:
    """The capture that put it was killed before its batch, or is about to put that."""
    log, file = CaptureLog(MemoryObjectStore(), "shop"), tmp_path / "history"
    file.write_text("of another\n")
    KeptHistory(file, log).kept(0)
    file.write_text("own\n")

    assert KeptHistory(file, log).kept(0) == 2

    for number, text in ((1, "of another\n"), (2, "own\n")):
        assert KeptHistory(tmp_path / "other", log).restore(number)
        assert (tmp_path / "other").read_text() == text


def test_a_history_that_is_gone_is_named(tmp_path: Path) -> None:
    history = KeptHistory(tmp_path / "history", CaptureLog(MemoryObjectStore(), "shop"))

    assert not history.restore(0)
    with pytest.raises(OperationError) as caught:
        history.restore(3)

    assert caught.value.code == "POLYNYA-GTW-009"
