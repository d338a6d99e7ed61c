"""Bytes and requests of one small step as floors: what `python -m bench bytes` counts.

It counts in a process of its own, since its session is one over S3. Nothing in it is a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bench.floors.floor import Measured

#: kB that a step may leave, and what it asked of S3 before its requests were counted.
_KILOBYTES: Final = 60.0
_REQUESTS_BEFORE: Final = 32.9
_SETTINGS: Final = "`python -m bench bytes`: 100 events on 10,000 rows, means of the last steps"


def counted(folder: Path) -> dict[str, Any]:
    """The figures of `python -m bench bytes`; what it says is shown when it fails."""
    file = folder / "bytes.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "bytes"],
        env={**os.environ, "POLYNYA_BENCH_JSON": str(file)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"python -m bench bytes ended with {done.returncode}:\n{done.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(file.read_text())
    return figures


def measure(folder: Path, count: Callable[[Path], dict[str, Any]] = counted) -> Iterator[Measured]:
    """A line for the bytes that stay, and one for the requests to S3."""
    figures = count(folder)
    yield Measured(
        "bytes that a small step leaves",
        [figures["stays"] / 1000],
        [_KILOBYTES],
        "what it may leave",
        1.0,
        _SETTINGS,
        unit="kB",
    )
    requests = figures["requests"]
    yield Measured(
        "requests of a small step to S3",
        [sum(number for what, number in requests.items() if not what.startswith("Glue"))],
        [_REQUESTS_BEFORE],
        "the same before 2026-11-29; half of it is the goal",
        None,
        _SETTINGS,
        unit="requests",
    )
