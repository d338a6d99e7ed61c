"""The conformance cases as data: what each lands, what it expects, which ones wait and why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.oracle.fold import DELETE, TRUNCATE, UPSERT, Event
from tests.oracle.not_covered import NOT_COVERED
from tests.oracle.values import to_iso, to_time

DATA = Path(__file__).resolve().parents[2] / "docs" / "conformance"
TIME = "eventTime"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One case. Rows are JSON objects as landed; `expected` holds rows over `out_cols`."""

    id: str
    history: bool
    keys: tuple[str, ...]
    sequence: tuple[str, ...]
    batches: tuple[tuple[Row, ...], ...]
    out_cols: tuple[str, ...]
    expected: tuple[tuple[tuple[Any, ...], ...], ...]
    delete_when: str | None = None
    truncate_when: str | None = None
    tracked: tuple[str, ...] | None = None
    control: tuple[str, ...] = ()
    quarantined: int = 0
    seed: tuple[Row, ...] = ()
    expected_after: Mapping[int, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)
    unmodified: str | None = None
    ignored_nulls: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows in arrival order."""
        return tuple(row for batch in self.batches for row in batch)

    @property
    def except_columns(self) -> tuple[str, ...]:
        """Columns that steer and are not data."""
        steering = dict.fromkeys((*self.control, *self.sequence, TIME))
        return tuple(name for name in steering if name not in self.out_cols)

    @property
    def data_columns(self) -> tuple[str, ...]:
        """Every column that becomes data, in order of first sight, without the keys."""
        seen = dict.fromkeys(name for row in (*self.seed, *self.rows) for name in row)
        return tuple(name for name in seen if name not in (*self.except_columns, *self.keys))

    def event(self, row: Row, *, load: bool = False) -> Event:
        """The event that a landed row stands for."""
        op = UPSERT
        if not load and matches(self.truncate_when, row):
            op = TRUNCATE
        elif not load and matches(self.delete_when, row):
            op = DELETE
        values = {name: row.get(name) for name in self.data_columns}
        unsent = frozenset(
            n
            for n, value in values.items()
            if (value == self.unmodified and self.unmodified is not None)
            or (value is None and n in self.ignored_nulls and op == UPSERT and not load)
        )
        sequence = [self._comparable(row, name) for name in self.sequence]
        return Event(
            key=() if op == TRUNCATE else tuple(row.get(name) for name in self.keys),
            sequence=(0, ()) if load else _ranked(sequence),
            op=op,
            values={} if op == DELETE else values,
            timestamp=to_time(row.get(TIME)),
            unsent=unsent,
            is_load=load,
        )

    def _comparable(self, row: Row, name: str) -> Any:
        value = row.get(name)
        return to_time(value) if self.columns.get(name) == "timestamp" else value

    def wanted(self) -> list[list[tuple[Any, ...]]]:
        """Accepted outcomes, with start and end as times."""
        return [self.timed(rows) for rows in self.expected]

    def timed(self, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Rows over `out_cols` with the sequence values of start and end as times."""
        return [
            tuple(
                to_time(value) if name in ("start_at", "end_at") else value
                for name, value in zip(self.out_cols, row, strict=True)
            )
            for row in rows
        ]

    @classmethod
    def of_corpus(cls, corpus: Mapping[str, Any]) -> Case:
        """A corpus of random histories as a case without an expected outcome."""
        raw = {
            "id": f"random-{corpus['seed']}",
            "sequence": "seq",
            "delete_when": "op='D'",
            "expected": [],
            **corpus,
        }
        return _build(raw)

    def events(self) -> list[Event]:
        """All events of the case, the first load included."""
        return [self.event(row, load=True) for row in self.seed] + list(map(self.event, self.rows))


def _ranked(sequence: Sequence[Any]) -> tuple[Any, ...]:
    """Sequence values behind a rank, so that first-load rows come before all of them."""
    return (1, tuple(sequence)) if all(part is not None for part in sequence) else (None,)


def matches(condition: str | None, row: Row) -> bool:
    """Whether a landed row meets a condition of the form `column='text'` or `column=true`."""
    if condition is None:
        return False
    found = re.fullmatch(r"\s*(\w+)\s*=\s*(?:'([^']*)'|(true|false))\s*", condition)
    assert found, f"condition of another form: {condition}"
    name, text, flag = found.groups()
    return row.get(name) == (text if flag is None else flag == "true")


@lru_cache(maxsize=1)
def covered() -> tuple[Case, ...]:
    """Every data case that lands events, from the given file and from our own extra cases."""
    events = [raw for raw in raw_cases() if "snapshots" not in raw]
    return tuple(_build(raw) for raw in events if raw["id"] not in NOT_COVERED)


@lru_cache(maxsize=1)
def raw_cases() -> Sequence[Mapping[str, Any]]:
    """All cases as written in the data files."""
    names = ("cases.json", "extra_cases.json")
    files = [json.loads((DATA / name).read_text("utf-8")) for name in names]
    return [case for content in files for case in content["cases"]]


def _build(raw: Mapping[str, Any]) -> Case:
    batches = _landed(raw)
    if "sequence" not in raw and raw["id"] not in _SEQUENCES:
        batches = _numbered(batches)
    sequence = raw.get("sequence", _SEQUENCES.get(raw["id"], "seq"))
    sequence = (sequence,) if isinstance(sequence, str) else tuple(sequence)
    keys = tuple(raw.get("keys", ("id",)))
    if raw["id"] in _KEYLESS:
        raw = {**raw, **_with_key(raw, keys[0])}
    conditions = (raw.get("delete_when"), raw.get("truncate_when"))
    control = {c.split("=")[0].strip() for c in conditions if c} | {"op"} & _columns(batches)
    value = [name for name in ("value",) if name in _columns(batches)]
    out_cols = tuple(raw.get("out_cols", (*keys, *value, "start_at", "end_at")))
    tracked = raw.get("track_history", "all")
    wanted = raw["expected_one_of"] if "expected_one_of" in raw else [raw["expected"]]
    case = Case(
        id=raw["id"],
        history="start_at" in out_cols or raw["id"] in _KEYLESS,
        keys=keys,
        sequence=sequence,
        batches=batches,
        out_cols=out_cols,
        expected=tuple(map(_rows, wanted)),
        delete_when=conditions[0],
        truncate_when=conditions[1],
        tracked=None if tracked == "all" else tuple(tracked),
        control=tuple(sorted(control)),
        seed=tuple(_seed(raw)),
        columns=raw.get("columns", {}),
        unmodified=raw.get("unmodified"),
        ignored_nulls=_ignored_nulls(raw, batches, keys),
        expected_after={int(n): _rows(r) for n, r in raw.get("expected_after_batch", {}).items()},
    )
    case = replace(case, batches=tuple(tuple(_timed(case, r) for r in b) for b in case.batches))
    bad = sum(1 for row in case.rows if not _good(case, row))
    return replace(case, quarantined=bad)


_SEQUENCES = {"SPK1-14": "version", "SPK2-35": "seq", "SPK1-12": "seq"}
# Cases with history whose expected rows tell neither the key nor the times.
_KEYLESS = frozenset({"SPK2-N2", "SPK2-N4"})


def _with_key(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """What a case with one record leaves out: the key in the expected rows, what a delete is."""
    (record,) = {row[raw["in_cols"].index(key)] for batch in raw["batches"] for row in batch}
    expected = [[record, *row] for row in raw["expected"]]
    columns = [key, *raw["out_cols"]]
    return {"out_cols": columns, "expected": expected, "delete_when": "op='D'"}


def _ignored_nulls(
    raw: Mapping[str, Any], batches: tuple[tuple[Row, ...], ...], keys: tuple[str, ...]
) -> tuple[str, ...]:
    """Columns whose NULLs in updates were not sent: as the case says, or all of them."""
    partial = raw.get("semantics") == "partial_update" and raw["id"] != "FVT-2"
    named = raw.get("ignore_null", "all" if partial else ())
    return tuple(sorted(_columns(batches) - {*keys})) if named == "all" else tuple(named)


def _landed(raw: Mapping[str, Any]) -> tuple[tuple[Row, ...], ...]:
    if "runs" in raw:
        return tuple(_rows_as_objects(run["cols"], run["rows"]) for run in raw["runs"])
    batches = tuple(_rows_as_objects(raw["in_cols"], batch) for batch in raw["batches"])
    if raw["id"] == "FVT-2":  # the stored versions it starts from, as events
        columns = ("id", "col1", "col2", "ts")
        batches = (_rows_as_objects(columns, [row[:4] for row in raw["seed"]]), *batches)
    return batches


def _rows_as_objects(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[Row, ...]:
    names = [re.sub(r"\[.*", "", name) for name in columns]
    return tuple(dict(zip(names, row, strict=True)) for row in rows)


def _seed(raw: Mapping[str, Any]) -> list[Row]:
    """First-load rows of the one case (BQ-1) that starts from a table without times."""
    if raw["id"] != "BQ-1":
        return []
    return [dict(zip(raw["out_cols"], row, strict=True)) for row in raw["seed"]]


def _numbered(batches: tuple[tuple[Row, ...], ...]) -> tuple[tuple[Row, ...], ...]:
    """A case without a sequence says that arrival is the order: number the rows."""
    numbers = iter(range(1, 1_000_000))
    return tuple(tuple({**row, "seq": next(numbers)} for row in batch) for batch in batches)


def _columns(batches: tuple[tuple[Row, ...], ...]) -> set[str]:
    return {name for batch in batches for row in batch for name in row}


def _timed(case: Case, row: Row) -> Row:
    return {**row, TIME: to_iso(to_time(row.get(case.sequence[0])))}


def _good(case: Case, row: Row) -> bool:
    truncate = matches(case.truncate_when, row)
    needed = case.sequence if truncate else (*case.sequence, *case.keys)
    return all(row.get(name) is not None for name in needed)


def _rows(rows: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, rows))
