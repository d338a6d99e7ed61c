"""What the service manager hears."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from polynya.cluster.systemd import notifier, watchdog_seconds


def test_messages_reach_the_socket_of_the_service_manager(tmp_path: Path) -> None:
    for address in (str(tmp_path / "notify"), f"@polynya-test-{os.getpid()}"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind("\0" + address[1:] if address.startswith("@") else address)
            notifier({"NOTIFY_SOCKET": address})("READY=1")
            assert manager.recv(100) == b"READY=1"


def test_nobody_listening_is_no_error(tmp_path: Path) -> None:
    notifier({})("READY=1")
    notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")})("READY=1")


def test_a_sign_of_life_is_due_when_it_is_asked_of_this_process() -> None:
    assert watchdog_seconds({"WATCHDOG_USEC": "30000000"}) == 30.0
    assert watchdog_seconds({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}) == 30.0
    assert watchdog_seconds({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}) is None
    assert watchdog_seconds({"WATCHDOG_USEC": "soon"}) is None
    assert watchdog_seconds({}) is None
