"""The oracle on the real PostgreSQL capture: any arrival order ends in the database's end state."""

from __future__ import annotations

import random
from datetime import datetime

import pytest

from tests.oracle.emit import debezium_lines
from tests.oracle.fold import fold
from tests.oracle.histories import Shape, captured_history, seeded
from tests.oracle.packs.captured import capture_folder, end_state, events, records

TABLES = {"accounts": ("id",), "lines": ("a", "b")}


def test_what_is_emitted_is_what_is_read() -> None:
    shape = Shape(keys=("a", "b"), columns=("name", "note", "tags"), truncates=5, loads=30)
    made = captured_history(seeded(11), shape, 80)

    (read,) = events(debezium_lines(made, "s", "t", shape.keys)).values()

    assert read == made


@pytest.mark.parametrize("table", TABLES)
def test_the_real_capture_ends_in_the_end_state(table: str) -> None:
    """In any order; the default of a column that was added never appears in events."""
    folder = capture_folder()
    landed = events(records(folder / "postgres_workload.jsonl.gz"))[f"w.{table}"]
    random.Random(5).shuffle(landed)
    rows = end_state(table)

    folded = fold(landed)

    current = {key: version.values for key, version in folded.current().items()}
    wanted = {tuple(row[name] for name in TABLES[table]): row for row in rows}
    different = [
        (key, name, value, current[key].get(name))
        for key, row in wanted.items()
        for name, value in row.items()
        if name not in TABLES[table] and _plain(name, value) != _plain(name, current[key].get(name))
    ]
    assert set(current) == set(wanted)
    assert not folded.ties
    assert {(name, value, got) for _, name, value, got in different} <= {("tier", 1, None)}
    assert len(different) == (98 if table == "accounts" else 0)


def _plain(name: str, value: object) -> object:
    return datetime.fromisoformat(str(value)) if name == "updated" else value
