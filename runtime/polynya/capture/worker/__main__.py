"""Entry point of the capture process: `python -m polynya.capture.worker`.

A SIGTERM that arrives during the imports is held back until there is a capture to end.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Capture; the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    # Start-up time: this is what takes a second.
    from polynya.capture.worker.process import run

    return run()


if __name__ == "__main__":
    # Threads of Java may live on; nothing is left to be written.
    code = main()
    sys.stdout.flush()
    os._exit(code)
