"""The tables "What you see when…" name what the program really shows: it is looked up there."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.docs.pages import ROOT

HEADING = "## What you see when…"
PAGES = ("capture.md", "streams.md", "operations.md")
#: What a failure shows, by the columns of its row.
COLUMNS = ("happens", "metrics", "alarm", "status", "event", "do")
FEWEST = 10

RUNTIME = ROOT / "runtime" / "polynya"
METRICS = (RUNTIME / "cluster" / "report.py",)
ALARMS = (ROOT / "constructs" / "polynya_constructs" / "cluster" / "observability.py",)
EVENTS = tuple(sorted((RUNTIME / "observe").glob("*.py")))
STATUS = (
    RUNTIME / "cli" / "status.py",
    RUNTIME / "cli" / "format.py",
    RUNTIME / "engine" / "commands" / "captures.py",
    RUNTIME / "capture" / "landing" / "position.py",
)


@cache
def source(files: tuple[object, ...]) -> str:
    """The text of files, without what divides a text into parts that stand below each other."""
    text = "\n".join(file.read_text("utf-8") for file in files)  # type: ignore[attr-defined]
    return re.sub(r'"\s*\n\s*f?"', "", text)


def rows(page: str) -> list[dict[str, str]]:
    """The rows of the table below the heading, by column."""
    _, _, section = page.partition(HEADING)
    section = re.split(r"^## ", section, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [dict(zip(COLUMNS, row, strict=True)) for row in cells]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def unknown(row: dict[str, str]) -> list[str]:
    """What a row names and the program does not have."""
    found = [
        f"metric {name}" for name in quoted(row["metrics"]) if f'"{name}"' not in source(METRICS)
    ]
    found += [f"alarm {name}" for name in quoted(row["alarm"]) if f'"{name}"' not in source(ALARMS)]
    events = [name for name in quoted(row["event"]) if not name.startswith("POLYNYA-")]
    found += [f"event {name}" for name in events if f'= "{name}"' not in source(EVENTS)]
    for text in quoted(row["status"]):
        # A command that is named, and values, are not parts of a line.
        parts = [] if text.startswith("polynya ") else text.split("…")
        found += [f"status {part}" for part in parts if part.strip() not in source(STATUS)]
    return found


@pytest.mark.parametrize("name", PAGES)
def test_each_table_has_the_ten_most_common_failures(name: str) -> None:
    assert len(rows((ROOT / "docs" / name).read_text("utf-8"))) >= FEWEST


@pytest.mark.parametrize("name", PAGES)
def test_metrics_alarms_events_and_lines_are_those_of_the_program(name: str) -> None:
    page = (ROOT / "docs" / name).read_text("utf-8")

    assert [fault for row in rows(page) for fault in unknown(row)] == []


def test_planted_faults_are_found() -> None:
    page = (
        f"{HEADING}\n\n| a | b | c | d | e | f |\n|---|---|---|---|---|---|\n"
        "| x | `Failures` `Falures` | `LateDat` | `waits`: `copies go to sleep: …` "
        "| `unit.failed` `unit.felled` with `POLYNYA-DEP-011` | nothing |\n"
    )

    assert unknown(rows(page)[0]) == [
        "metric Falures", "alarm LateDat", "event unit.felled", "status copies go to sleep: ",
    ]  # fmt: skip
