"""A command that notes its process and exit code as `polynya` does: it sleeps, then exits.

SIGTERM ends it early and with CODE, as it does with `polynya run`.

`python -m tests.server.operations.child run SECONDS CODE`; it writes a line every 0.1 s.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from polynya.cli.operation_child import recorded


def main() -> int:
    until = time.monotonic() + float(sys.argv[2])
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    while time.monotonic() < until and not asked:
        print(json.dumps({"type": "tick"}), flush=True)
        time.sleep(0.1)
    return int(sys.argv[3])


if __name__ == "__main__":
    sys.exit(recorded(main, os.environ))
