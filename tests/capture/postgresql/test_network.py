"""A network that delays, cuts and refuses between capture and server: nothing lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.servers.door import door
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.capture.postgresql.test_handover import TABLES, Writer, assert_landed_is_there


def assert_ends_to_begin_again(capture: CaptureProcess) -> None:
    assert capture.process is not None
    assert capture.process.wait(120) == 3
    failed = capture.events()[-1]
    assert failed["type"] == "failed"
    assert failed["error"]["retryable"], failed


def test_a_cut_within_the_load_loses_and_doubles_nothing(shop: Shop, tmp_path: Path) -> None:
    shop.run(*TABLES)
    (tmp_path / "landing").mkdir()
    # A truncate ends a load, too, which is not what is looked at here.
    writer = Writer(shop.server, shop.name, 1, truncates=False)
    writer.start()
    with door(shop.server.port) as way:
        capture = CaptureProcess(tmp_path / "landing", shop.access(port=way.port))
        capture.start()
        capture.wait_for("landed", times=5)
        way.cut()
        assert_ends_to_begin_again(capture)
        writer.end()
        capture.finish()

    assert_landed_is_there(capture, shop)


@pytest.mark.slow
def test_a_network_that_delays_and_cuts_loses_and_doubles_nothing(
    shop: Shop, tmp_path: Path
) -> None:
    shop.run(*TABLES)
    (tmp_path / "landing").mkdir()
    writer = Writer(shop.server, shop.name, 3, truncates=False)
    writer.start()
    with door(shop.server.port) as way:
        capture = CaptureProcess(tmp_path / "landing", shop.access(port=way.port))
        way.delay = 0.005
        for landed in (4, 40, 60):
            capture.start()
            capture.wait_for("landed", times=landed)
            way.cut()
            assert_ends_to_begin_again(capture)
        way.is_shut = True
        capture.start()
        assert_ends_to_begin_again(capture)
        way.is_shut, way.delay = False, 0.0
        capture.start()
        capture.wait_for("landed", times=80)
        writer.end()
        capture.kill()
        capture.finish()

    assert writer.written > 50
    assert_landed_is_there(capture, shop)
