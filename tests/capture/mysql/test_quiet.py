"""A capture of a quiet MariaDB ends, though Debezium's offset stays behind the binlog's end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.servers.mariadb import Server
from polynya.capture.landing.position import position_of_offset
from tests.capture.mysql.capturing import Process, header, lines, settings_of

pytestmark = [pytest.mark.slow, pytest.mark.also_mysql]

#: Debezium hears from a quiet server every 48 seconds.
_PATIENCE = 30
_T = "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)"
_XA = ("XA START 'x'", "INSERT INTO shop.t VALUES (9, 9)", "XA END 'x'", "XA PREPARE 'x'",
       "XA COMMIT 'x'")  # fmt: skip


def restarted(server: Server) -> None:
    server.kill()
    server.start()


#: What the newest transaction is, and how many events land of it.
CASES: dict[str, tuple[tuple[str, ...], int]] = {
    "a change": (("UPDATE shop.t SET v = 3 WHERE id = 1",), 1),
    "a statement": (("ALTER TABLE shop.t ADD w INT",), 1),
    "a statement on another table": (("CREATE DATABASE b", "CREATE TABLE b.u (id INT)"), 0),
    "a drop of another table": (("DROP TABLE IF EXISTS shop.t_of_nobody",), 0),
    "an XA commit": (_XA, 1),
    "a rotation": (("FLUSH BINARY LOGS", "FLUSH BINARY LOGS"), 0),
    "a restart": ((), 0),
}


@pytest.mark.parametrize("newest", CASES)
def test_a_capture_ends_when_all_up_to_its_start_has_landed(
    own: Server, tmp_path: Path, newest: str
) -> None:
    statements, events = CASES[newest]
    landing = tmp_path / "landing"
    own.execute(_T, "INSERT INTO shop.t VALUES (1, 1), (2, 2)")
    once(own, landing)
    before = len(list(lines(landing)))
    if statements:
        own.execute(*statements)
    else:
        restarted(own)

    once(own, landing)
    of_shop = [one for one in lines(landing) if one["value"]["source"].get("table") != "u"]
    number = header(landing)["number"]
    once(own, landing)

    assert (
        len([one for one in of_shop if one["value"]["source"]["db"] == "shop"]) >= before + events
    )
    assert header(landing)["number"] == number, "nothing was new"


def test_a_capture_that_follows_a_quiet_server_says_how_far_it_is(
    own: Server, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    own.execute(_T, "INSERT INTO shop.t VALUES (1, 1)")
    process = Process(settings_of(own, landing))
    process.wait_for("streaming")
    own.execute("ALTER TABLE shop.t ADD w INT")
    (file, at, *_), *_ = own.execute("SHOW MASTER STATUS")

    def is_said() -> bool:
        position = header(landing)["position"]
        said = [position["stream"]["offset"], position.get("read_to")]
        end = position_of_offset("mariadb", {"file": file, "pos": at})
        return any(one and position_of_offset("mariadb", one) >= end for one in said)

    until(is_said)
    number = header(landing)["number"]
    time.sleep(12)
    assert header(landing)["number"] == number, "it is said once"
    assert process.stop() == 0


def once(server: Server, landing: Path) -> None:
    """Let a capture take what there is."""
    assert Process(settings_of(server, landing, mode="once")).wait(_PATIENCE) == 0


def until(there: Callable[[], bool]) -> None:
    ends = time.monotonic() + _PATIENCE
    while not there():
        assert time.monotonic() < ends
        time.sleep(0.5)
