"""What benchmarks have measured, noted as JSON for the pictures of `python -m bench plots`.

With `--note` a benchmark adds its run to the file of the day in `docs/measurements`: when, on how
many cores, under which load, at which commit, by which command, and each value of each round.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "measurements"


@dataclass(frozen=True, slots=True)
class Point:
    """Values of one contender for one picture: a value for each round, at a place on its x-axis."""

    picture: str
    series: str
    x: float
    values: Sequence[float]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The value that is drawn."""
        return statistics.median(self.values)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a benchmark: when it began, and what it measured."""

    at: str
    commit: str
    command: str
    cores: int
    load: Sequence[float]
    points: Sequence[Point] = ()


class Notes:
    """Adds the points of this process to the file of the day as they come; to none without one."""

    def __init__(self, folder: Path | None, run: Run) -> None:
        self._run = run
        self._file = None if folder is None else folder / f"{run.at[:10]}.json"
        self._points: list[Point] = []

    def add(self, *points: Point) -> None:
        """Note points: what a later failure leaves is on disk."""
        self._points += points
        if self._file is None or not points:
            return
        earlier = [run for run in _documents(self._file) if run["at"] != self._run.at]
        new = asdict(self._run) | {"points": [asdict(point) for point in self._points]}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps([*earlier, new], indent=1) + "\n")


def note_option(parser: argparse.ArgumentParser) -> None:
    """Add `--note` to the options of a benchmark."""
    what = f"note what was measured in the file of the day; default {FOLDER.name}/ of docs"
    parser.add_argument("--note", nargs="?", type=Path, const=FOLDER, metavar="FOLDER", help=what)


def this_run() -> Run:
    """The run of this process, as of now."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    name = "bench" if module is None else module.name.removesuffix(".__main__")
    command = shlex.join(["python", "-m", name, *sys.argv[1:]])
    load = [round(one, 1) for one in os.getloadavg()]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(at, _commit(), command, os.cpu_count() or 0, load)


def noted(folder: Path = FOLDER) -> Iterator[Run]:
    """The runs of all days, oldest first."""
    found = (run for file in sorted(folder.glob("*.json")) for run in _documents(file))
    for run in sorted(found, key=lambda run: str(run["at"])):
        yield Run(**run | {"points": [Point(**point) for point in run["points"]]})


def circumstances() -> str:
    """When, on how many cores, under which load, at which commit."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    return f"{now} UTC, {os.cpu_count()} cores, load {load}, {_commit()}"


def _commit() -> str:
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()


def _documents(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    runs: list[dict[str, Any]] = json.loads(file.read_text())
    return runs
