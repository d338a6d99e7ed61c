"""Full extracts: the conformance cases that land them, and the events that they stand for.

The reference compares each extract with what the one before left, in plain Python; the fold makes
versions of the events. Like the fold it imports nothing of the engine.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from tests.oracle.cases import Row, raw_cases
from tests.oracle.fold import DELETE, UPSERT, Event, Key, Version, fold
from tests.oracle.not_covered import NOT_COVERED
from tests.oracle.packs.driver import Rows
from tests.oracle.packs.pack import Landing
from tests.oracle.values import as_time, bag, difference, to_time

NAME = "%Y-%m-%dT%H%M%S.%f"
#: Output columns that are no data, as the History view calls them.
HEADERS = {
    "start_at": "hdr__from_timestamp",
    "end_at": "hdr__to_timestamp",
    "deleted": "hdr__deleted",
}


@dataclass(frozen=True)
class ExtractCase:
    """Extracts with their times, and rows over `out_cols` (None: those of the reference)."""

    id: str
    keys: tuple[str, ...]
    extracts: tuple[tuple[datetime, tuple[Row, ...]], ...]
    out_cols: tuple[str, ...]
    expected: tuple[tuple[Any, ...], ...] | None = None
    expected_after: Mapping[int, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)
    current: tuple[tuple[Any, ...], ...] | None = None
    tracked: tuple[str, ...] | None = None
    absent: str = "delete"
    updated_at: str | None = None

    def events(self, count: int | None = None) -> list[Event]:
        """What the first extracts change, one after the other."""
        known: dict[Key, Row] = {}
        events = []
        for number, (time, rows) in enumerate(self.extracts[:count]):
            loaded = {tuple(row[name] for name in self.keys): row for row in rows}
            for key, row in loaded.items():
                if self._changed(known.get(key), row):
                    own = to_time(row[self.updated_at]) if self.updated_at else time
                    values = {n: value for n, value in row.items() if n not in self.keys}
                    events.append(Event(key, number, UPSERT, values, own, is_load=number == 0))
                    known[key] = row
            gone = set(known) - set(loaded) if self.absent == "delete" else set()
            for key in gone:
                events.append(Event(key, number, DELETE, {}, time))
                del known[key]
        return events

    def _changed(self, before: Row | None, row: Row) -> bool:
        if before is None or self.updated_at is None:
            return before != row
        return bool(row[self.updated_at] > before[self.updated_at])

    def rows(self, count: int | None = None) -> list[tuple[Any, ...]]:
        """Rows of the history after the first extracts, as the reference has them."""
        versions = fold(self.events(count)).coalesced(self.tracked)
        shown = [v for v in versions if "deleted" in self.out_cols or not v.deleted]
        return [self._row(version) for version in shown]

    def _row(self, version: Version) -> tuple[Any, ...]:
        record = {
            **dict(zip(self.keys, version.key, strict=True)),
            **version.values,
            "start_at": version.from_ts,
            "end_at": version.to_ts,
            "deleted": version.deleted,
        }
        return tuple(record[name] for name in self.out_cols)

    def landing(self, schema: str, name: str, steps: Sequence[int]) -> Landing:
        """The extracts as files; `steps` says which step lands each."""
        files: list[dict[str, Sequence[Any]]] = [{} for _ in range(max(steps) + 1)]
        for step, (time, rows) in zip(steps, self.extracts, strict=True):
            files[step][f"{time:{NAME}}.json"] = rows
        extracts = {"time_in_name": NAME, "absent": self.absent, "updated_at": self.updated_at}
        settings: dict[str, Any] = {
            "keys": list(self.keys),
            "history": True,
            "extracts": {key: value for key, value in extracts.items() if value is not None},
        }
        if self.tracked is not None:
            settings |= {"coalesce_unchanged": True, "track_history_columns": list(self.tracked)}
        return Landing(schema, name, files, settings)

    def statements(self, view: str) -> list[str]:
        """The history that the case looks at, and Current."""
        columns = ", ".join(f"{HEADERS.get(n, f'`{n}`')} AS `{n}`" for n in self.out_cols)
        kept = "" if "deleted" in self.out_cols else " WHERE NOT hdr__deleted"
        data = ", ".join(f"`{name}`" for name in self._data())
        return [f"SELECT {columns} FROM {view}__history{kept}", f"SELECT {data} FROM {view}"]

    def mismatches(self, results: Sequence[Rows], count: int | None = None) -> str:
        """What differs after the first extracts."""
        rows = self.expected if count is None else self.expected_after.get(count)
        wanted = self.rows(count) if rows is None else rows
        got = [
            tuple(as_time(v) if n in ("start_at", "end_at") else v for n, v in row.items())
            for row in results[0]
        ]
        current = [tuple(row.values()) for row in results[1]]
        last = fold(self.events(count)).current().values()
        here = [
            tuple({**dict(zip(self.keys, v.key, strict=True)), **v.values}.values()) for v in last
        ]
        texts = (difference(bag(wanted), bag(got)), difference(bag(here), bag(current)))
        return "\n".join(text for text in texts if text)

    def _data(self) -> list[str]:
        names = [name for _, rows in self.extracts for row in rows for name in row]
        return list(dict.fromkeys([*self.keys, *names]))


@lru_cache(maxsize=1)
def extract_cases() -> tuple[ExtractCase, ...]:
    """Every covered case whose source gives full extracts."""
    raw = [case for case in raw_cases() if "snapshots" in case]
    return tuple(_build(case) for case in raw if case["id"] not in NOT_COVERED)


def drawn_extracts(seed: int, count: int) -> ExtractCase:
    """Extracts of a dozen records that come, change, go and come back."""
    chance = random.Random(seed)
    extracts = tuple(
        (
            _time(number * 60),
            tuple(
                {"id": key, "name": chance.choice(("x", "y", None)), "n": chance.choice((1, 2))}
                for key in range(12)
                if chance.random() < 0.7
            ),
        )
        for number in range(count)
    )
    columns = ("id", "name", "n", "start_at", "end_at", "deleted")
    return ExtractCase(f"random-{seed}", ("id",), extracts, columns)


def _build(raw: Mapping[str, Any]) -> ExtractCase:
    out_cols = tuple(raw["out_cols"])
    extracts = tuple(
        (
            _time(one["version"]),
            tuple(dict(zip(raw["in_cols"], row, strict=True)) for row in one["rows"]),
        )
        for one in raw["snapshots"]
    )

    def timed(rows: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
        return tuple(
            tuple(
                to_time(value) if name in ("start_at", "end_at") else value
                for name, value in zip(out_cols, row, strict=True)
            )
            for row in rows
        )

    return ExtractCase(
        id=raw["id"],
        keys=tuple(raw["keys"]),
        extracts=extracts,
        out_cols=out_cols,
        expected=timed(raw["expected"]),
        expected_after={
            int(n): timed(rows) for n, rows in raw.get("expected_after_snapshot", {}).items()
        },
        current=tuple(map(tuple, raw["expected_scd1"])) if "expected_scd1" in raw else None,
        tracked=tuple(raw["track_history"]) if "track_history" in raw else None,
        absent="delete" if raw.get("absent_means_deleted", True) else "keep",
        updated_at=raw.get("updated_at"),
    )


def _time(version: Any) -> datetime:
    time = to_time(version)
    assert time is not None, f"a version that is no time: {version}"
    return time
