"""The demo's comparison finds what is different, and forgives only what is proven."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from examples.parity import compare
from examples.questions import SOURCE

ACCOUNTS = SOURCE[0]
TRUTH = [
    {"id": 1, "balance": "10.50", "updated": "2026-11-21 02:00:00+00:00", "tier": 2},
    {"id": 2, "balance": "20.00", "updated": "2026-11-21 02:00:00.5+00:00", "tier": 1},
]
EQUAL: list[dict[str, Any]] = [
    {"id": 1, "balance": "10.5", "updated": "2026-11-21T02:00:00Z", "tier": 2},
    {"id": 2, "balance": "20.00", "updated": "2026-11-21T02:00:00.500000Z", "tier": None},
]


def event(key: int, position: int, **after: object) -> dict[str, Any]:
    source = {"table": "accounts", "lsn": position}
    return {"key": {"id": key}, "value": {"source": source, "after": {"id": key, **after}}}


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write(tmp_path, event(2, 10), event(1, 20, tier=2), {"key": {"id": 2}, "value": None})


def write(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "capture.jsonl.gz"
    with gzip.open(path, "wt") as lines:
        lines.writelines(json.dumps(record) + "\n" for record in records)
    return path


def test_instants_and_decimals_are_compared_as_values(capture: Path) -> None:
    found = compare(ACCOUNTS, TRUTH, EQUAL, capture)

    assert found.differences == ()
    assert (found.source_rows, found.current_rows, found.unsent_defaults) == (2, 2, 1)


@pytest.mark.parametrize(
    "row",
    [
        {"balance": "10.51"},
        {"updated": "2026-11-21T02:00:01Z"},
        {"tier": None},
        {"tier": "2"},
        {"tier": True},
        {"balance": None},
    ],
)
def test_another_value_is_a_difference(row: dict[str, Any], capture: Path) -> None:
    found = compare(ACCOUNTS, TRUTH, [{**EQUAL[0], **row}, EQUAL[1]], capture)

    assert len(found.differences) == 1
    assert found.differences[0].startswith(f"(1,): {next(iter(row))} is")


def test_missing_unknown_and_doubled_rows_are_differences(capture: Path) -> None:
    missing = compare(ACCOUNTS, TRUTH, EQUAL[:1], capture)
    unknown = compare(ACCOUNTS, TRUTH, [*EQUAL, {**EQUAL[0], "id": 3}], capture)
    doubled = compare(ACCOUNTS, TRUTH, [*EQUAL, EQUAL[0]], capture)

    assert missing.differences == ("(2,): not in Current",)
    assert unknown.differences == ("(3,): not in the source",)
    assert doubled.differences == ("1 rows of Current have a key twice",)


def test_a_missing_default_is_a_difference_once_an_event_touched_the_row(tmp_path: Path) -> None:
    """An event after the column appeared would have told the value."""
    touched = write(tmp_path, event(2, 10), event(1, 20, tier=2), event(2, 21, tier=1))

    found = compare(ACCOUNTS, TRUTH, EQUAL, touched)

    assert found.unsent_defaults == 0
    assert found.differences == ("(2,): tier is None, in the source 1",)
