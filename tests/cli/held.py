"""Waits until a process holds SIGTERM back."""

from __future__ import annotations

import signal
import time
from pathlib import Path


def wait_until_held(process: int) -> None:
    """Raises TimeoutError when it does not within half a minute."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if _held_by(process) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.01)
    raise TimeoutError


def _held_by(process: int) -> int:
    """The signals that a process holds back, as bits."""
    text = Path(f"/proc/{process}/status").read_text("utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("SigBlk:"))
    return int(line.split()[1], 16)
