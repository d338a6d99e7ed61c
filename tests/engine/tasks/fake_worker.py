"""Stands for the capture process: says what a scenario has, and obeys as the real one does.

Run with a file of JSON: `{"says": [events], "ends": exit code or null, "ignores_end": bool}`. It
writes the settings and requests that it gets beside the file.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> int:
    file = Path(sys.argv[1])
    scenario = json.loads(file.read_text())
    heard = file.with_suffix(".heard")
    with heard.open("ab") as sink:
        sink.write(sys.stdin.buffer.readline())
    for event in scenario["says"]:
        line = event if isinstance(event, str) else json.dumps(event)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    if scenario.get("ends") is not None:
        return int(scenario["ends"])
    for line in sys.stdin.buffer:
        with heard.open("ab") as sink:
            sink.write(line)
    if scenario.get("ignores_end"):
        time.sleep(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
