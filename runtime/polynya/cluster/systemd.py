"""Reports the agent's status to systemd: the protocol of sd_notify(3), a few datagrams."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import TypeAlias

Notify: TypeAlias = Callable[[str], None]
"""Sends one message, such as `READY=1`."""


def notifier(environment: Mapping[str, str] = os.environ) -> Notify:
    """What sends to the service manager that started this process, if one did."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return lambda _message: None
    # A leading @ stands for the abstract namespace, whose names begin with NUL.
    target = "\0" + address[1:] if address.startswith("@") else address

    def send(message: str) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.sendto(message.encode(), target)
        except OSError:
            # If nothing listens, nothing is sent, and the work continues.
            return

    return send


def watchdog_seconds(environment: Mapping[str, str] = os.environ) -> float | None:
    """How often the service manager wants a sign of life at least; None: never."""
    asked = environment.get("WATCHDOG_USEC", "")
    mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(asked) / 1e6 if asked.isdecimal() and mine and int(asked) else None
