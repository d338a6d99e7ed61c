"""What is measured while files land: the files of all tables, and what the run says of its steps.

The figures of the newest snapshots come from its summary, which any reader of Iceberg sees. What is
stored is counted in the folders, so that files which only old snapshots have, or none, are in it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean, median
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """All tables together at one moment. Times are medians since the sample before, or NaN.

    `data_files`, `delete_files` and `rows` are of the newest snapshots; the other files are those
    in the folders. `manifests` has manifest lists too.
    """

    second: float
    rows: float
    data_files: float
    delete_files: float
    snapshots: float
    stored_files: float
    data_bytes: float
    manifests: float
    metadata_json: float
    metadata_bytes: float
    step_seconds: float
    query_seconds: float


@dataclass(frozen=True, slots=True)
class Stored:
    """Files in the folders of tables, by kind, and their bytes."""

    data: int
    manifests: int
    metadata_json: int
    others: int
    data_bytes: int
    metadata_bytes: int


def stored(tables: Iterable[Path]) -> Stored:
    """Count what is in the folders of tables."""
    kinds: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for table in tables:
        for file in (*table.glob("data/**/*"), *table.glob("metadata/*")):
            try:
                size = file.stat().st_size
            except FileNotFoundError:  # removed meanwhile, as it is here to see
                continue
            if file.is_dir() or file.name.startswith("."):
                continue
            kind = _kind(file.relative_to(table))
            kinds[kind] += 1
            sizes["data" if kind == "data" else "metadata"] += size
    return Stored(
        kinds["data"],
        kinds["manifests"],
        kinds["json"],
        kinds["others"],
        sizes["data"],
        sizes["metadata"],
    )


def _kind(file: Path) -> str:
    if file.parts[0] == "data":
        return "data"
    return {".avro": "manifests", ".json": "json"}.get(file.suffix, "others")


def newest(metadata: str) -> Counter[str]:
    """Rows, files and snapshots of a table by the text of its metadata."""
    document = json.loads(metadata)
    current = document.get("current-snapshot-id")
    found = [one for one in document["snapshots"] if one["snapshot-id"] == current]
    summary = found[0]["summary"] if found else {}
    return Counter(
        rows=int(summary.get("total-records", 0)),
        data_files=int(summary.get("total-data-files", 0)),
        delete_files=int(summary.get("total-delete-files", 0)),
        snapshots=len(document["snapshots"]),
    )


class Told:
    """What a run has said so far with `--json`. A line that is not ended yet is left for later."""

    def __init__(self, output: Path) -> None:
        self._output, self._place = output, 0
        self.actions: Counter[str] = Counter()
        self.problems: list[str] = []

    def steps(self) -> list[float]:
        """Seconds of the copies and applies since this was asked last."""
        with self._output.open("rb") as stream:
            stream.seek(self._place)
            text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._place += len(whole)
        found = []
        for line in whole.decode("utf-8", "replace").splitlines():
            if line.startswith("{"):
                found += self._event(json.loads(line))
        return found

    def _event(self, event: dict[str, Any]) -> list[float]:
        kind = event["type"]
        if kind == "maintenance.done" and (event["files_removed"] or event["freed_bytes"]):
            self.actions[event["action"]] += 1
        if kind in ("maintenance.failed", "unit.failed"):
            self.problems.append(f"{kind}: {event['subject']}: {event.get('error', event)}")
        if kind in ("batch.copied", "dataset.applied"):
            return [float(event["seconds"])]
        return []


def typical(seconds: Sequence[float]) -> float:
    """The median; NaN of nothing."""
    return median(seconds) if seconds else math.nan


def rows(samples: Sequence[Sample], parts: int) -> list[Sample]:
    """Means of so many equal parts of the time; NaN where nothing was measured."""
    length = max((one.second for one in samples), default=0.0) / parts
    found = []
    for part in range(parts):
        inside = [
            one
            for one in samples
            if part * length < one.second <= (part + 1) * length or (part, one.second) == (0, 0.0)
        ]
        if inside:
            found.append(Sample((part + 1) * length, *(_mean(inside, name) for name in NAMES)))
    return found


#: Figures of a sample.
NAMES = tuple(one.name for one in fields(Sample) if one.name != "second")


def _mean(samples: Sequence[Sample], name: str) -> float:
    known = [value for one in samples if not math.isnan(value := getattr(one, name))]
    return fmean(known) if known else math.nan
