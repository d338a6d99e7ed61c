"""SIGTERM while the process of a capture starts does not end it by the signal."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.held import wait_until_held


def test_sigterm_while_modules_are_loaded_is_held() -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "polynya.capture.worker"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until_held(started.pid)
    started.terminate()
    said, _ = started.communicate(b"not settings\n", timeout=60)

    assert started.returncode == 3
    assert b'"type":"failed"' in said.replace(b" ", b"")
