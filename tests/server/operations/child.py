"""A command that notes its process and exit code as `polynya` does: it sleeps, then exits.

`python -m tests.server.operations.child run SECONDS CODE`; it writes a line every 0.1 s.
"""

from __future__ import annotations

import json
import os
import sys
import time

from polynya.cli.operation_child import recorded


def main() -> int:
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        print(json.dumps({"type": "tick"}), flush=True)
        time.sleep(0.1)
    return int(sys.argv[3])


if __name__ == "__main__":
    sys.exit(recorded(main, os.environ))
