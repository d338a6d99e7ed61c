"""The feed: the same from the same seed, and its lines say what its events say."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.newcomer.shop.comparing import current_rows, differences
from tests.newcomer.shop.feed import CUSTOMERS, FIRST_MARKER, PAYMENTS, TABLES, Feed, Table, feeds
from tests.oracle.fold import DELETE, UPSERT, Event, fold


def landed(table: Table, seed: int = 1) -> tuple[Feed, list[str]]:
    """A feed after a load and six files of changes, and the texts of its files."""
    feed = feeds(seed)[table.name]
    return feed, [feed.load(200), *(feed.changes(100) for _ in range(6))]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_same_seed_lands_the_same_files(table: Table) -> None:
    assert landed(table)[1] == landed(table)[1]
    assert landed(table)[1] != landed(table, seed=2)[1]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_everything_that_a_newcomer_meets_is_in_it(table: Table) -> None:
    feed, texts = landed(table)
    events = [event for event in feed.events if not event.is_load]
    sequences = [event.sequence for event in events]

    assert {event.op for event in events} == {UPSERT, DELETE}
    assert sequences != sorted(sequences), "no event is late"
    assert len(set(sequences)) < len(sequences), "no event lands twice"
    assert feed.garbage > 0
    assert feed.lines == sum(_records(table, text) for text in texts)


def _records(table: Table, text: str) -> int:
    if table.format == "csv":
        return len(list(csv.reader(io.StringIO(text)))) - 1
    return text.count("\n")


def test_a_fold_of_the_landed_lines_is_that_of_the_events() -> None:
    """Read the text again, as a program that knows nothing of the feed."""
    feed, texts = landed(CUSTOMERS)
    again: list[Event] = []
    for text in texts:
        for line in text.splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            op = DELETE if row.get("op") == "D" else UPSERT
            values = {"batch": row.get("batch")}
            again.append(Event((row["id"],), row.get("seq", 0), op, values))

    wanted, got = fold(feed.events), fold(again)

    assert wanted.rejected == 0
    assert set(wanted.current()) == set(got.current())
    batches = [{k: v.values["batch"] for k, v in f.current().items()} for f in (wanted, got)]
    assert batches[0] == batches[1]


def test_each_file_begins_with_a_record_that_nothing_touches_again() -> None:
    feed, _ = landed(PAYMENTS)

    for number in range(1, feed.files):
        (event,) = {
            e.content(): e for e in feed.events if e.key[0] == FIRST_MARKER + number
        }.values()
        assert event.op == UPSERT
        assert event.values["batch"] == number


def test_a_row_that_is_lost_doubled_or_changed_is_found() -> None:
    feed, _ = landed(PAYMENTS)
    rows = list(current_rows(PAYMENTS, fold(feed.events)))
    changed = (*rows[0][:-1], not rows[0][-1])

    assert differences("t", rows, reversed(rows)) == ""
    assert "1 rows missing, 0 too many" in differences("t", rows, rows[1:])
    assert "0 rows missing, 1 too many" in differences("t", rows, [*rows, rows[5]])
    assert "1 rows missing, 1 too many" in differences("t", rows, [changed, *rows[1:]])
