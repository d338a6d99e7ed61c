"""Where the time of batches goes: `python -m bench.phases TRACE [BATCHES]` reads a trace.

`POLYNYA_TRACE=trace.json make bench-floors ARGS=step` makes one. For each dataset it prints the
phases of the last batches, from the copy of the first of them on: milliseconds and calls through
py4j for one batch, in the mean. The time of a phase holds that of the phases inside of it.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
BATCHES = 8


def events_of(trace: str) -> list[Event]:
    """The spans of a trace, also of one that a killed process left without its end."""
    whole = trace if trace.rstrip().endswith("]") else trace.rstrip() + "]"
    events: list[Event] = json.loads(whole)
    return [event for event in events if event["ph"] == "X"]


def datasets_of(events: Sequence[Event]) -> list[str]:
    """The datasets that were copied."""
    return sorted({event["args"]["dataset"] for event in events if event["name"] == "copy"})


def last_batches(events: Sequence[Event], dataset: str, count: int) -> tuple[list[Event], int]:
    """What belongs to the last batches of a dataset, and how many there are."""
    own = [event for event in events if event["args"].get("dataset") == dataset]
    copies = sorted(event["ts"] for event in own if event["name"] == "copy")[-count:]
    steps = [event for event in own if event["name"] == "step" and "files_written" in event["args"]]
    steps = [step for step in steps if _end(step) >= copies[0]]
    jobs = [event for event in own if event["cat"] == "spark" and event["ts"] >= steps[0]["ts"]]
    inside = [one for step in steps for one in events if _holds(step, one)]
    return [*inside, *jobs], len(copies)


def table(events: Sequence[Event], batches: int) -> str:
    """The phases as a table in Markdown, longest first."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for event in events:
        name = "Spark job" if event["cat"] == "spark" else event["name"]
        calls = event["args"].get("py4j_calls", 0)
        sums[name] = [a + b for a, b in zip(sums[name], (event["dur"], 1, calls), strict=True)]
    return "\n".join(["| phase | ms | times | calls |", "|---|---|---|---|", *_rows(sums, batches)])


def _rows(sums: dict[str, list[float]], batches: int) -> Iterator[str]:
    for name, (taken, times, calls) in sorted(sums.items(), key=lambda item: -item[1][0]):
        figures = f"{taken / 1e3 / batches:,.0f} | {times / batches:.1f} | {calls / batches:,.0f}"
        yield f"| {name} | {figures} |"


def _end(event: Event) -> float:
    return float(event["ts"] + event["dur"])


def _holds(outer: Event, inner: Event) -> bool:
    same = inner["tid"] == outer["tid"] and inner["pid"] == outer["pid"]
    return same and outer["ts"] <= inner["ts"] and _end(inner) <= _end(outer)


def main(path: str, batches: str = str(BATCHES)) -> None:
    """Print a table for each dataset of a file."""
    events = events_of(Path(path).read_text())
    for dataset in datasets_of(events):
        found, count = last_batches(events, dataset, int(batches))
        print(f"{dataset}, mean of {count} batches\n\n{table(found, count)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
