"""The fold of events in order against the independent fold; no Spark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polynya.lake.apply.in_memory import LOCAL_EVENTS, needs_query
from polynya.lake.apply.in_memory_fold import Versions, fold_chains, fold_latest
from polynya.lake.apply.records import FOUND, IN_CURRENT, POS, RECORD, TouchedRecords
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import KNOWN_FOOTERS
from polynya.model import headers as h
from polynya.model.types import DOUBLE, STRING, parse_type
from polynya.store.aws.data_objects import S3Files
from polynya.store.data_files import DataFiles, LocalFiles
from tests.oracle.fold import DELETE, UPSERT, Event, fold
from tests.oracle.values import EPOCH

SHAPE = Shape(
    ("id", "part"),
    {"id": parse_type("bigint"), "part": STRING, "name": STRING},
    tells_operations=True,
)
HISTORY = replace(SHAPE, history=True)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
_CHANGES = pa.schema(
    {
        h.KEY_HASH: pa.binary(),
        h.CHANGE_IDENTIFIER: pa.string(),
        h.SEQUENCE_TAIL: pa.string(),
        h.SOURCE_POSITION: pa.string(),
        h.OPERATION: pa.string(),
        h.TIMESTAMP: pa.timestamp("us", "UTC"),
        h.UNSENT: pa.string(),
        h.OLD_KEY: pa.string(),
        "id": pa.int64(),
        "part": pa.string(),
        "name": pa.string(),
    }
)


def pending(events: Sequence[Event]) -> pa.Table:
    """Events as rows of Changes."""
    rows = [
        {
            h.KEY_HASH: b"x",
            h.CHANGE_IDENTIFIER: f"{event.sequence:035d}",
            h.OPERATION: "D" if event.op == DELETE else "U",
            h.TIMESTAMP: event.timestamp,
            "id": event.key[0],
            "part": event.key[1],
            "name": event.values.get("name"),
        }
        for event in events
    ]
    return pa.Table.from_pylist(rows, _CHANGES).combine_chunks()


@dataclass
class Table:
    """Rows of Current and Prior as they would be stored."""

    shape: Shape = SHAPE
    rows: list[dict[str, Any]] = field(default_factory=list)

    def apply(self, events: Sequence[Event]) -> Versions | None:
        """Fold events with what is there."""
        changes = pending(events)
        records = TouchedRecords([changes.column(key).combine_chunks() for key in SHAPE.keys])
        found = self._found(records)
        fold = fold_chains if self.shape.history else fold_latest
        made = fold(changes, records, found, self.shape, NOW)
        if made is not None:
            places = found.to_pylist()
            gone = {row[POS] for row in places if self.shape.history or row[IN_CURRENT]}
            kept = [row for pos, row in enumerate(self.rows) if pos not in gone]
            self.rows = kept + made.rows.to_pylist()
        return made

    def _found(self, records: TouchedRecords) -> pa.Table:
        keys = [
            pa.array([row["id"] for row in self.rows], pa.int64()),
            pa.array([row["part"] for row in self.rows], pa.string()),
        ]
        numbers = records.of(keys).to_pylist()
        schema = pa.schema([*FOUND, *(one for one in _CHANGES if not one.name.startswith("hdr__"))])
        rows = [
            {name: row.get(name) for name in schema.names}
            | {RECORD: number, POS: pos, IN_CURRENT: row[h.PARTITION] == "current"}
            for pos, (number, row) in enumerate(zip(numbers, self.rows, strict=True))
            if number is not None and (not self.shape.history or is_newest(row))
        ]
        return pa.Table.from_pylist(rows, schema)

    def shown(self, partition: str) -> list[tuple[Any, ...]]:
        """Rows of a partition: key, sequence, operation, start and value."""
        return sorted(
            (row["id"], row["part"], int(row[h.CHANGE_IDENTIFIER]), row[h.OPERATION],
             row[h.FROM_TIMESTAMP], row["name"] if partition == "current" else None)
            for row in self.rows if row[h.PARTITION] == partition
        )  # fmt: skip


def is_newest(row: dict[str, Any]) -> bool:
    """Whether no version follows a stored one."""
    return row[h.PARTITION] == "current" or (
        row[h.OPERATION] == "D" and row[h.TO_TIMESTAMP] is None
    )


def history(seed: int, batches: int) -> list[list[Event]]:
    """Batches in order; the clock of the source goes back between some of them."""
    chance, sequence = random.Random(seed), 0
    made: list[list[Event]] = []
    for _ in range(batches):
        behind = timedelta(seconds=chance.choice((0, 0, 30)))
        batch = []
        for _ in range(chance.randrange(1, 9)):
            sequence += chance.randrange(1, 4)
            key = (chance.randrange(3), chance.choice("ab"))
            op = DELETE if chance.random() < 0.3 else UPSERT
            values = {} if op == DELETE else {"name": f"n{sequence}"}
            time = EPOCH + timedelta(seconds=sequence) - behind
            batch.append(Event(key, sequence, op, values, time))
        chance.shuffle(batch)
        made.append(batch)
    return made


@pytest.mark.parametrize("seed", range(60))
def test_batches_in_order_leave_what_the_fold_of_all_their_events_leaves(seed: int) -> None:
    table, events = Table(), list[Event]()
    for batch in history(seed, 6):
        made = table.apply(batch)
        assert made is not None
        events += batch
        folded = fold(events)
        assert table.shown("current") == sorted(
            (*one.key, one.sequence, one.op, one.from_ts, one.values["name"])
            for one in folded.current().values()
        )
        assert table.shown("prior") == sorted(
            (*one.key, one.sequence, one.op, one.from_ts, None)
            for one in folded.history() if one.deleted
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_with_history_every_version_stays(seed: int) -> None:
    table, events = Table(HISTORY), list[Event]()
    for batch in history(seed, 6):
        made = table.apply(batch)
        assert made is not None
        events += batch
        found = [
            (row["id"], row["part"], int(row[h.CHANGE_IDENTIFIER]), row[h.OPERATION],
             row[h.FROM_TIMESTAMP], row[h.TO_TIMESTAMP], row["name"],
             row[h.PARTITION] == "current")
            for row in table.rows
        ]  # fmt: skip
        folded = fold(events)
        newest = folded.current()
        expected = [
            (*one.key, one.sequence, one.op, one.from_ts, one.to_ts, one.values.get("name"),
             newest.get(one.key) == one)
            for one in folded.history()
        ]  # fmt: skip
        assert sorted(found, key=str) == sorted(expected, key=str)
        assert made.figures.events == len(batch)


def test_each_row_says_since_when_its_record_is_there() -> None:
    table = Table()
    table.apply([Event((1, "a"), 1, UPSERT, {"name": "Ann"}, EPOCH)])
    table.rows[0][h.INSERTED_TIMESTAMP] = EPOCH

    table.apply([Event((1, "a"), 2, UPSERT, {"name": "Anna"}, EPOCH)])

    (row,) = table.rows
    assert (row[h.INSERTED_TIMESTAMP], row[h.MODIFIED_TIMESTAMP]) == (EPOCH, NOW)


def test_the_figures_say_how_events_contradict_what_is_there() -> None:
    table = Table()
    made = table.apply(
        [
            Event((1, "a"), 1, DELETE, {}, EPOCH),
            Event((2, "a"), 2, UPSERT, {"name": "Ben"}, EPOCH),
            Event((2, "a"), 3, UPSERT, {"name": "Bea"}, EPOCH),
        ]
    )

    assert made is not None
    figures = made.figures
    assert (figures.events, figures.current, figures.prior, figures.removed) == (3, 1, 1, 0)
    assert (figures.delete_of_missing, figures.update_of_missing) == (1, 1)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([(5, 0)], id="older than what is stored"),
        pytest.param([(10, 0)], id="as old as what is stored"),
        pytest.param([(11, 0), (11, 1)], id="two in one place"),
        pytest.param([(11, 5), (12, 4)], id="times that go backwards"),
    ],
)
def test_events_that_are_not_in_order_have_no_answer(events: list[tuple[int, int]]) -> None:
    table = Table()
    table.apply([Event((1, "a"), 10, UPSERT, {"name": "Ann"}, EPOCH)])
    before = list(table.rows)

    made = table.apply(
        [
            Event((1, "a"), sequence, UPSERT, {"name": "x"}, EPOCH + timedelta(seconds=time))
            for sequence, time in events
        ]
    )

    assert made is None
    assert table.rows == before


@pytest.mark.parametrize(("partition", "operation"), [("prior", "U"), ("current", "D")])
def test_what_other_settings_have_left_has_no_answer(partition: str, operation: str) -> None:
    """Versions of a history that is no longer kept, and records that were deleted softly."""
    table = Table()
    table.apply([Event((1, "a"), 10, UPSERT, {"name": "Ann"}, EPOCH)])
    table.rows[0] |= {h.PARTITION: partition, h.OPERATION: operation}

    assert table.apply([Event((1, "a"), 11, UPSERT, {"name": "Anna"}, EPOCH)]) is None
    assert table.apply([Event((2, "a"), 12, UPSERT, {"name": "Ben"}, EPOCH)]) is not None


def test_records_of_several_key_columns_are_told_apart() -> None:
    """Also those whose columns would read the same one after the other."""
    left = [pa.array(["a", "ab", "a"]), pa.array(["bc", "c", "bc"]), pa.array([1, 1, 2])]
    records = TouchedRecords(left)

    others = [pa.array(["a", "ab", "abc"]), pa.array(["bc", "bc", ""]), pa.array([2, 1, 1])]
    assert len(set(records.numbers.to_pylist())) == 3
    assert records.of(others).to_pylist() == [records.numbers[2].as_py(), None, None]


@given(
    rows=st.lists(st.tuples(st.integers(0, 2) | st.none(), st.sampled_from("pq")), max_size=6),
    others=st.lists(st.tuples(st.integers(0, 3) | st.none(), st.sampled_from("pqr")), unique=True),
)
def test_rows_and_records_find_each_other(rows: list[Any], others: list[Any]) -> None:
    def columns(keys: list[Any]) -> list[pa.Array]:
        kinds = (pa.int64(), pa.string())
        return [pa.array([key[n] for key in keys], kind) for n, kind in enumerate(kinds)]

    records = TouchedRecords(columns(rows))
    known = list(dict.fromkeys(rows))
    numbers = records.of(columns(others))

    assert records.count == len(known)
    assert records.numbers.type == pa.int32()
    assert [known[number] for number in records.numbers.to_pylist()] == rows
    of_records = [column.to_pylist() for column in records.keys()]  # noqa: SIM118 - a method
    assert list(zip(*of_records, strict=True)) == known
    assert numbers.to_pylist() == [known.index(k) if k in known else None for k in others]
    assert records.places(numbers).to_pylist() == [
        others.index(key) if key in others else None for key in known
    ]


_KEYS = st.one_of(
    st.tuples(st.just(kind), st.lists(values, max_size=8), st.lists(values, max_size=12))
    for kind, values in (
        (pa.int32(), st.integers(-3, 9)),
        (pa.int64(), st.integers(-3, 9)),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.text("aé\U0001f600\0", max_size=2)),
        (pa.binary(), st.binary(max_size=1)),
        (pa.date32(), st.dates(date(1969, 12, 28), date(1970, 1, 5))),
        (pa.timestamp("us"), st.datetimes(datetime(1969, 12, 31), datetime(1969, 12, 31, 0, 0, 1))),
        (pa.decimal128(5, 1), st.integers(-3, 9).map(Decimal)),
    )
)


@given(keys=_KEYS, rises=st.booleans())
@example(keys=(pa.int64(), [1, 3], [0, 1, 2, 3, 4, None]), rises=True)
@example(keys=(pa.string(), [], ["a"]), rises=True)
def test_a_record_is_found_by_a_key_of_any_type_in_any_order(
    keys: tuple[pa.DataType, list[Any], list[Any]], *, rises: bool
) -> None:
    kind, rows, others = keys
    if rises:
        rows = pa.array(sorted(set(rows)), kind).to_pylist()
    known = list(dict.fromkeys(rows))

    records = TouchedRecords([pa.array(rows, kind)])

    assert records.count == len(known)
    assert records.numbers.to_pylist() == [known.index(key) for key in rows]
    assert records.of([pa.array(others, kind)]).to_pylist() == [
        known.index(key) if key in known else None for key in others
    ]


def test_decimal_keys_are_compared_exactly() -> None:
    kind = pa.decimal128(38, 2)
    records = TouchedRecords([pa.array([Decimal("12345678901234567890.12")], kind)])
    near = pa.array([Decimal("12345678901234567890.13"), Decimal("12345678901234567890.12")], kind)

    assert records.of([near]).to_pylist() == [None, 0]


def data_file(partition: str, rows: int) -> DataFile:
    """A file of which only the figures are asked."""
    return DataFile(None, "/x.parquet", partition, rows, 20 * rows)


@pytest.mark.parametrize(
    ("shape", "events", "kept", "truncates", "reason"),
    [
        (SHAPE, 1000, 10**6, False, None),
        (Shape(SHAPE.keys, SHAPE.columns, partial=("name",)), 1000, 10**6, False, "inherit"),
        (Shape(SHAPE.keys, SHAPE.columns, soft_delete=True), 1000, 10**6, False, "inherit"),
        (HISTORY, 1000, 10**6, False, None),
        (HISTORY, 1000, 10**8, False, "all columns"),
        (Shape(("x",), {"x": DOUBLE}), 1000, 10**6, False, "compared exactly"),
        (SHAPE, 1000, 10**6, True, "truncate"),
        (SHAPE, LOCAL_EVENTS + 1, 10**6, False, "too many"),
        (SHAPE, 1000, 10**9, False, "all executors"),
    ],
)
def test_why_an_apply_takes_a_query(
    shape: Shape, events: int, kept: int, truncates: bool, reason: str | None
) -> None:
    pending, stored = [data_file("changes", events)], [data_file("current", kept)]
    found = needs_query(shape, pending, stored, LocalFiles(), truncates=truncates)

    assert (found is None) if reason is None else reason in str(found)


@pytest.mark.parametrize(
    ("store", "files", "reason"),
    [
        (LocalFiles(), KNOWN_FOOTERS + 1, None),
        (S3Files("eu-central-1"), KNOWN_FOOTERS, None),
        (S3Files("eu-central-1"), KNOWN_FOOTERS + 1, "2,001 files would be fetched again"),
        ("files of HadoopFileIO are not local", 1, "HadoopFileIO"),
    ],
)
def test_where_files_are_decides_too(
    store: DataFiles | str, files: int, reason: str | None
) -> None:
    stored = [data_file("current", 1) for _ in range(files)]

    found = needs_query(SHAPE, [data_file("changes", 1)], stored, store, truncates=False)

    assert (found is None) if reason is None else reason in str(found)
