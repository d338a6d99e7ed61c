"""Run all benchmarks, or those named: `python -m bench [start …]`.

`python -m bench streams [OPTIONS]` takes a broker of Kafka, `python -m bench capture [OPTIONS]` a
PostgreSQL server, so that they run when they are named. `python -m bench plots` draws what was
noted, and measures nothing.
"""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = (
    "start",
    "apply",
    "keys",
    "step",
    "bytes",
    "reload",
    "maintained",
    "rewritten",
    "fallback",
    "reads",
    "derived",
    "strategies",
    "costs",
    "serve",
)


def main(names: list[str]) -> int:
    """Run the named benchmarks, all when none is named; 2 when a name is not known."""
    if names[:1] in (["streams"], ["capture"]):
        importlib.import_module(f"bench.{names[0]}.__main__").main(names[1:])
        return 0
    if names == ["plots"]:
        importlib.import_module("bench.plots").main()
        return 0
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        known = ", ".join((*BENCHMARKS, "streams", "capture", "plots"))
        print(f"no such benchmark: {', '.join(unknown)}; there are: {known}")
        return 2
    for name in names or BENCHMARKS:
        print(f"## {name}")
        importlib.import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
