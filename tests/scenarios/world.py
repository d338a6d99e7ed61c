"""What a source would say of its own past: the independent side of a scenario.

A column of the source is known by a number, whatever it is called at the time; so a rename moves a
name, and nothing else. Reloads are events: what the extract differs in, at its place in the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.oracle.fold import DELETE, TRUNCATE, UPSERT, Event, Version, fold

#: Before every event: the place of what is loaded first.
FIRST = (-(10**9), 0, 0)
Values = Mapping[int, Any]


@dataclass
class Column:
    """A column of the source as it is now; `variant` holds what does not fit its first type."""

    number: int
    name: str
    kind: str
    first_kind: str
    variant: int | None = None


@dataclass
class World:
    """Everything that happened, and what the table must look like for it."""

    columns: list[Column] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    compared: dict[Any, bool] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    names: dict[int, str] = field(default_factory=dict)
    reloads: int = 0
    _numbers: int = 0

    def add_column(self, kind: str) -> Column:
        """The source gets a column."""
        self._numbers += 1
        name = f"c{self._numbers}"
        column = Column(self._numbers, name, kind, kind)
        self.columns.append(column)
        self.names[column.number] = name
        return column

    def rename(self, column: Column) -> None:
        """The source calls a column by another name."""
        self._numbers += 1
        column.name = self.names[column.number] = f"r{self._numbers}"

    def drop(self, column: Column, *, follow: bool) -> None:
        """The source drops a column; the table drops it too if it is told to follow."""
        self.columns.remove(column)
        if follow:
            self.gone.add(column.number)

    def retype(self, column: Column) -> None:
        """The source makes texts of a column's numbers."""
        column.kind = "string"
        self._numbers += 1
        column.variant = self._numbers

    def seen(self, row: Mapping[str, Any]) -> dict[int, Any]:
        """A row of the source as the table keeps it: by column, in every type that it fits."""
        values: dict[int, Any] = {}
        for column in self.columns:
            value = row[column.name]
            values[column.number] = value
            if column.variant is not None:
                if value is not None:
                    # The column is made for the first value that needs it.
                    self.names.setdefault(column.variant, f"{column.name}_string")
                values[column.variant] = value
                is_number = value is not None and value.lstrip("-").isdigit()
                values[column.number] = int(value) if is_number else None
        return values

    def change(self, key: int, seq: int, row: Mapping[str, Any], at: datetime) -> None:
        """An insert or update."""
        self.events.append(Event((key,), (seq, 0, 0), UPSERT, self.seen(row), at))

    def delete(self, key: int, seq: int, at: datetime) -> None:
        """A delete."""
        self.events.append(Event((key,), (seq, 0, 0), DELETE, {}, at))

    def first_load(self, rows: Mapping[int, Mapping[str, Any]], at: datetime) -> None:
        """The first full load."""
        for key, row in rows.items():
            self.events.append(Event((key,), FIRST, UPSERT, self.seen(row), at, is_load=True))

    def reload(self, mode: str, rows: Mapping[int, Mapping[str, Any]], at: datetime) -> None:
        """A new full load, in one of the four modes."""
        self.reloads += 1
        place = max(event.sequence for event in self.events)[0] if self.events else FIRST[0]
        loaded = {(key,): self.seen(row) for key, row in rows.items()}
        if mode in {"drop_and_create", "truncate_and_insert"}:
            self._replace(mode, loaded, (place, self.reloads), at)
            return
        sequence = (place, self.reloads, 0)
        self.compared[sequence] = True
        current = fold(self.events).current()
        live = {key: version for key, version in current.items() if not version.deleted}
        for key, values in loaded.items():
            if key not in live or self._shown(live[key].values) != self._shown(values):
                self.events.append(Event(key, sequence, UPSERT, values, at))
        if mode == "compare_and_apply_with_deleted_rows":
            for key in live.keys() - loaded.keys():
                self.events.append(Event(key, sequence, DELETE, {}, at))

    def _replace(self, mode: str, loaded: Mapping[Any, Values], place: Any, at: datetime) -> None:
        if mode == "drop_and_create":
            self.events.clear()
            self.compared.clear()
        else:
            self.events.append(Event((), (*place, 0), TRUNCATE, {}, at))
        for key, values in loaded.items():
            self.events.append(Event(key, (*place, 1), UPSERT, values, at, is_load=True))

    def current(self, *, soft: bool) -> list[tuple[Any, ...]]:
        """Rows of the Current view: key and columns."""
        found = fold(self.events).current(soft=soft)
        return [(key[0], *self._shown(version.values)) for key, version in found.items()]

    def history(self) -> list[tuple[Any, ...]]:
        """Rows of the History view: key, columns, operation, from, to."""
        return [
            (version.key[0], *self._shown(version.values), self._operation(version),
             version.from_ts, version.to_ts)
            for version in fold(self.events).history()
        ]  # fmt: skip

    def table_columns(self) -> list[str]:
        """Names of the table's columns, in the order of `_shown`."""
        return [name for number, name in sorted(self.names.items()) if number not in self.gone]

    def _shown(self, values: Values) -> tuple[Any, ...]:
        shown = [number for number in sorted(self.names) if number not in self.gone]
        return tuple(values.get(number) for number in shown)

    def _operation(self, version: Version) -> str:
        """Small letters for what a comparison found."""
        return version.op.lower() if version.sequence in self.compared else version.op
