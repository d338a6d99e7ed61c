"""The phases of the last batches of each dataset, out of a trace."""

from __future__ import annotations

from typing import Any

import pytest

from bench import phases


def span(name: str, began: float, dur: float, **args: Any) -> dict[str, Any]:
    """A span of a thread; milliseconds."""
    where = {"pid": 1, "tid": 7, "cat": "polynya", "ph": "X"}
    return {"name": name, "ts": began * 1e3, "dur": dur * 1e3, "args": args, **where}


TRACE = [
    span("step", 0, 100, dataset="users", files_written=1),
    span("copy", 0, 90, dataset="users"),
    span("look", 150, 1),
    span("step", 150, 10, dataset="users"),
    span("step", 200, 50, dataset="users", files_written=2, py4j_calls=30),
    span("copy", 200, 20, dataset="users", py4j_calls=20),
    span("commit", 210, 5, py4j_calls=10),
    span("step", 251, 40, dataset="users", files_written=2, py4j_calls=12),
    span("apply", 252, 30, dataset="users", py4j_calls=12),
    {**span("job 3", 255, 12, dataset="users"), "cat": "spark", "tid": 1},
    span("sql", 300, 9),
]


def test_the_phases_of_the_last_batches_are_summed_and_nothing_else() -> None:
    events, count = phases.last_batches(TRACE, "users", 1)

    assert phases.table(events, count).splitlines()[2:] == [
        "| step | 90 | 2.0 | 42 |",
        "| apply | 30 | 1.0 | 12 |",
        "| copy | 20 | 1.0 | 20 |",
        "| Spark job | 12 | 1.0 | 0 |",
        "| commit | 5 | 1.0 | 10 |",
    ]


@pytest.mark.parametrize("end", ["\n]\n", "", "\n"])
def test_the_trace_of_a_killed_process_is_read_too(end: str) -> None:
    text = '[\n{"ph": "M"},\n{"ph": "X", "name": "step"}' + end

    assert phases.events_of(text) == [{"ph": "X", "name": "step"}]
