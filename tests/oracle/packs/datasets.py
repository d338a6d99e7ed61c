"""Datasets of random histories: how they land, and what their views must show.

Expected rows come from the fold. A dataset knows its settings, so one check serves datasets with
and without history, soft deletes, coalescing, composite keys, native and Debezium records.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.arrivals import split
from tests.oracle.emit import NATIVE_SETTINGS, debezium_lines, native_line
from tests.oracle.fold import TRUNCATE, Event, Folded, Version, fold
from tests.oracle.histories import COLUMN_TYPES
from tests.oracle.packs.driver import Rows
from tests.oracle.packs.pack import Landing
from tests.oracle.values import as_time, bag, canonical, difference


@dataclass(frozen=True)
class Dataset:
    """Batches of events and the settings under which they are folded."""

    schema: str
    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    batches: Sequence[Sequence[Event]]
    format: str = "json"
    history: bool = True
    soft: bool = False
    coalesce: bool = False
    tracked: tuple[str, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def view(self) -> str:
        """Name of the Current view."""
        return f"{self.schema}.{self.name}"

    def landing(self) -> Landing:
        """The batches as landed files."""
        settings: dict[str, Any] = {"history": self.history, **self.extra}
        types = {name: COLUMN_TYPES[name] for name in self.columns if name in COLUMN_TYPES}
        if types:
            settings["columns"] = types
        if self.soft:
            settings["delete_mode"] = "soft"
        if self.coalesce:
            settings["coalesce_unchanged"] = True
        if self.tracked is not None:
            settings["track_history_columns"] = list(self.tracked)
        if self.format == "debezium":
            steps = [
                debezium_lines(batch, self.schema, self.name, self.keys) for batch in self.batches
            ]
            return Landing(self.schema, self.name, steps, settings, format="debezium")
        lines = [
            [native_line(event, self.keys, self.columns) for event in batch]
            for batch in self.batches
        ]
        settings = {**NATIVE_SETTINGS, "keys": list(self.keys), **settings}
        return Landing(self.schema, self.name, lines, settings)

    def statements(self) -> list[str]:
        """Current, and History where it is kept."""
        columns = ", ".join(f"`{name}`" for name in (*self.keys, *self.columns))
        deleted = ", hdr__deleted" if self.soft else ""
        wanted = [f"SELECT {columns}{deleted} FROM {self.view}"]
        if self.history:
            headers = "hdr__operation, hdr__deleted, hdr__from_timestamp, hdr__to_timestamp"
            wanted.append(f"SELECT {columns}, {headers} FROM {self.view}__history")
        return wanted

    def landed(self, steps: int | None = None) -> list[Event]:
        """Events of the first steps, or all."""
        return [event for batch in self.batches[:steps] for event in batch]

    def mismatches(self, results: Sequence[Rows], steps: int | None = None) -> list[str]:
        """What differs between the views and the fold of the events of the first steps."""
        folded = fold(self.landed(steps), looks=self.format == "debezium" and self.history)
        pairs = [("current", self._current(folded), self._rows(results[0], self.soft))]
        if self.history:
            # The start of a first load is the engine's: times of its records are compared apart.
            loaded = {event.key for event in self.landed(steps) if event.is_load}
            keep = [row for row in self._history(folded) if _key(row, self.keys) not in loaded]
            got = self._history_rows(results[1])
            pairs.append(("history", keep, [r for r in got if _key(r, self.keys) not in loaded]))
            pairs.append(
                (
                    "history of loaded records, without times",
                    [row[:-2] for row in self._history(folded)],
                    [row[:-2] for row in got],
                )
            )
            pairs.append(("holes or overlaps", [], _broken(got, len(self.keys), self.coalesce)))
        found = []
        for what, expected, rows in pairs:
            text = difference(bag(expected), bag(rows))
            if text:
                found.append(f"{self.view} {what} after step {steps}:\n{text}")
        return found

    def explain(self, key: tuple[Any, ...]) -> str:
        """All events of one key and all truncates, batch by batch: the reproduction to report."""
        lines = []
        for number, batch in enumerate(self.batches, start=1):
            lines += [
                f"  step {number}: {event}"
                for event in batch
                if event.key == key or event.op == TRUNCATE or event.old_key == key
            ]
        return "\n".join(lines)

    def _current(self, folded: Folded) -> list[tuple[Any, ...]]:
        versions = folded.current(soft=self.soft).values()
        return [(*self._values(v), *((v.deleted,) if self.soft else ())) for v in versions]

    def _history(self, folded: Folded) -> list[tuple[Any, ...]]:
        versions: Iterable[Version] = folded.history()
        if self.coalesce:
            # Whether runs of deletes coalesce is not said: only living versions are compared.
            versions = [v for v in folded.coalesced(self.tracked) if not v.deleted]
        return [
            (*self._values(v), "" if self.coalesce else v.op, v.deleted, v.from_ts, v.to_ts)
            for v in versions
        ]

    def _values(self, version: Version) -> tuple[Any, ...]:
        return tuple(canonical((*version.key, *(version.values.get(n) for n in self.columns))))

    def _rows(self, rows: Rows, soft: bool) -> list[tuple[Any, ...]]:
        names = (*self.keys, *self.columns, *(("hdr__deleted",) if soft else ()))
        return [tuple(self._cell(name, row[name]) for name in names) for row in rows]

    def _history_rows(self, rows: Rows) -> list[tuple[Any, ...]]:
        return [
            (
                *values,
                "" if self.coalesce else row["hdr__operation"],
                row["hdr__deleted"],
                as_time(row["hdr__from_timestamp"]),
                as_time(row["hdr__to_timestamp"]),
            )
            for values, row in zip(self._rows(rows, False), rows, strict=True)
            if not (self.coalesce and row["hdr__deleted"])
        ]

    def _cell(self, name: str, value: Any) -> Any:
        return as_time(value) if COLUMN_TYPES.get(name) == "timestamp" else value


def arrivals(events: Sequence[Event], steps: int, seed: int) -> list[list[Event]]:
    """One random arrival of the events: order, batches, 10 % redelivery, all from the seed."""
    return split(events, steps, random.Random(seed))


def _key(row: Sequence[Any], keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[: len(keys)])


def _broken(rows: Sequence[tuple[Any, ...]], width: int, coalesced: bool) -> list[tuple[Any, ...]]:
    """Neighbouring versions of one key whose intervals overlap or leave a hole."""
    by_key: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for row in rows:
        by_key.setdefault(row[:width], []).append((row[-2], row[-1] or "9999"))
    broken = []
    for key, spans in by_key.items():
        spans.sort()
        for (_, end), (start, _) in itertools.pairwise(spans):
            if end > start or (end < start and not coalesced):
                broken.append((*key, end, start))
    return broken
