"""Conformance cases as datasets of a pack, and the check of what the engine made of them.

Cases of one shape (same columns and settings) can share a dataset, told apart by their keys: the
engine sees dozens of keys at once, as it does in life, and a pack costs a few runs. `alone`
gives each case a dataset of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.arrivals import VARIATIONS
from tests.oracle.cases import Case, covered
from tests.oracle.emit import debezium_lines
from tests.oracle.expect import select_list
from tests.oracle.packs.driver import Rows
from tests.oracle.packs.pack import Landing, Pack
from tests.oracle.values import as_time, bag, difference

STRIDE = 10_000


@dataclass(frozen=True)
class Group:
    """Cases that share one dataset; `places` numbers them, and the number is part of the keys.

    `arrival` names the order in which their batches arrive.
    """

    arrival: str
    schema: str
    name: str
    cases: tuple[Case, ...]
    places: Mapping[str, int]

    @property
    def view(self) -> str:
        """Name of the Current view."""
        return f"{self.schema}.{self.name}"

    def shifted(self, case: Case, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with the case's place in the first key column; NULL keys stay NULL."""
        first = case.keys[0]
        return {**row, first: _shift(row.get(first), self.places[case.id])}

    def landing(self) -> Landing:
        """The dataset with the cases' batches side by side."""
        arrive = VARIATIONS[self.arrival]
        arrivals = [(case, arrive(case.batches)) for case in self.cases]
        depth = max(len(batches) for _, batches in arrivals)
        steps = [
            [
                self.shifted(case, row)
                for case, batches in arrivals
                for row in (batches[step] if step < len(batches) else ())
            ]
            for step in range(depth)
        ]
        case = self.cases[0]
        if case.unmodified is not None:
            lines = [
                debezium_lines([case.event(row) for row in step], self.schema, self.name, case.keys)
                for step in steps
            ]
            settings = {"history": case.history, "coalesce_unchanged": True}
            return Landing(self.schema, self.name, lines, settings, format="debezium")
        load = [self.shifted(case, row) for case in self.cases for row in case.seed]
        return Landing(self.schema, self.name, steps, _settings(case), load)

    def statement(self) -> str:
        """The view that the cases look at, as SQL."""
        case = self.cases[0]
        view = self.view + ("__history" if case.history else "")
        kept = " WHERE NOT hdr__deleted" if case.history else ""
        return f"SELECT {select_list(case)} FROM {view}{kept}"

    def mismatches(self, rows: Rows, *, after: int | None = None) -> list[str]:
        """What differs from the expected rows: at the end, or after a number of given batches."""
        case = self.cases[0]
        got = [
            tuple(
                as_time(row[name]) if name in ("start_at", "end_at") else row[name]
                for name in case.out_cols
            )
            for row in rows
        ]
        place = case.out_cols.index(case.keys[0])
        found = []
        for case in self.cases:
            if after is not None and after not in case.expected_after:
                continue
            wanted = case.wanted() if after is None else [case.timed(case.expected_after[after])]
            mine = bag(
                (*row[:place], _unshift(row[place]), *row[place + 1 :])
                for row in got
                if _place_of(row[place]) == self.places[case.id]
            )
            if mine not in [bag(rows) for rows in wanted]:
                found.append(
                    f"{self.schema}.{self.name}: {case.id}\n" + difference(bag(wanted[0]), mine)
                )
        strays = [row for row in got if _place_of(row[place]) not in self.places.values()]
        return found + [f"{self.schema}.{self.name}: row of no case {row}" for row in strays]


def groups(variation: str, *, alone: bool) -> list[Group]:
    """All covered cases in groups of one shape each, or each alone."""
    shapes: dict[Any, list[Case]] = {}
    for case in covered():
        # A truncate would reach the other cases of its dataset.
        apart = alone or case.truncate_when is not None
        shapes.setdefault(case.id if apart else _shape(case), []).append(case)
    made = []
    for number, cases in enumerate(shapes.values()):
        schema = f"{variation}_dbz" if cases[0].unmodified is not None else variation
        places = {case.id: place for place, case in enumerate(cases, start=1)}
        made.append(Group(variation, schema, f"g{number:02d}", tuple(cases), places))
    return made


def pack(directory: Path, all_groups: Mapping[str, Sequence[Group]]) -> Pack:
    """One project with the groups of several variations, a schema each."""
    landings = [group.landing() for several in all_groups.values() for group in several]
    return Pack(directory, landings)


def quarantined(several: Sequence[Group]) -> int:
    """How many landed rows must end in quarantine."""
    return sum(case.quarantined for group in several for case in group.cases)


def _shape(case: Case) -> tuple[Any, ...]:
    columns = sorted({name for row in (*case.seed, *case.rows) for name in row})
    kinds = {type(row.get(case.keys[0])) for row in case.rows} - {type(None)}
    return (
        case.history,
        case.keys,
        case.sequence,
        case.out_cols,
        case.delete_when,
        case.truncate_when,
        case.tracked,
        tuple(columns),
        tuple(sorted(map(str, kinds))),
        case.unmodified,
        case.ignored_nulls,
        tuple(case.columns.items()),
        bool(case.seed),
    )


def _settings(case: Case) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "keys": list(case.keys),
        "sequence_by": list(case.sequence),
        "timestamp": "eventTime",
        "except_columns": list(case.except_columns),
        "history": case.history,
    }
    if case.history:
        settings["coalesce_unchanged"] = True
    optional = {
        "apply_as_deletes": case.delete_when,
        "apply_as_truncates": case.truncate_when,
        "track_history_columns": list(case.tracked) if case.tracked else None,
        "columns": dict(case.columns) or None,
        "ignore_null_updates": _ignored(case),
    }
    return settings | {name: value for name, value in optional.items() if value is not None}


def _ignored(case: Case) -> Any:
    every = {*case.data_columns} <= {*case.ignored_nulls}
    return every or list(case.ignored_nulls) or None


def _shift(value: Any, place: int) -> Any:
    if isinstance(value, int):
        return value + place * STRIDE
    return None if value is None else f"{place}|{value}"


def _unshift(value: Any) -> Any:
    return value % STRIDE if isinstance(value, int) else value.split("|", 1)[1]


def _place_of(value: Any) -> int:
    return value // STRIDE if isinstance(value, int) else int(value.split("|", 1)[0])
