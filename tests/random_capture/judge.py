"""Holds tables of the lake, as DuckDB reads them, against the source and its log of changes.

Shares no code with the engine: values are read from texts of the database (`types.py`).
"""

from __future__ import annotations

import json
from collections import ChainMap, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from tests.oracle.packs.read_back import internal_table, metadata_location, read_duckdb
from tests.random_capture.source import Column, Source
from tests.random_capture.workload import Table

SCHEMA = "mill"
_MOST = 5
Key = tuple[Any, ...]
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class State:
    """What a record was after a change at the source.

    Attributes:
        row: the values by column; None for a delete.
        surely: whether the capture followed the table then, so that History must have it.
        loads: how often all rows of the table had been loaded by then.
    """

    revision: int | None
    row: Row | None
    surely: bool
    loads: int


class Judge:
    """What the source says of its tables, and what is wrong with those of the lake."""

    def __init__(self, source: Source, session: Any, loaded: Mapping[str, list[datetime]]) -> None:
        """`loaded`: by table, when the capture said that all of its rows are loaded."""
        self._source, self._session, self._loaded = source, session, loaded
        self.versions = 0
        self.rows = 0

    def wrong(self, project: Path, table: Table) -> list[str]:
        """What is wrong with a table: at most some lines for each of both checks."""
        stored = read_duckdb(
            project, *internal_table(SCHEMA, table.name),
            where="hdr__partition IN ('current', 'prior')",
        )  # fmt: skip
        current = [row for row in stored if row["hdr__partition"] == "current"]
        found = [
            *_first(self._wrong_rows(table, current)),
            *_first(self._wrong_versions(table, stored)),
        ]
        where = metadata_location(project, *internal_table(SCHEMA, table.name)) if found else ""
        return [f"{table.name}: {line}" for line in found] + ([where] if where else [])

    # ---- Current ----

    def _wrong_rows(self, table: Table, stored: Sequence[Row]) -> Iterator[str]:
        every = [*table.keys, *table.columns, Column("rev", self._source.revision)]
        texts = ", ".join(one.type.text.format(one.name) for one in every)
        source: dict[Key, Row] = {}
        for values in self._session.run(f"SELECT {texts} FROM {table.name}"):
            row = {
                one.name: _meant(one.type, text) for one, text in zip(every, values, strict=True)
            }
            source[_key(table, row)] = row
        self.rows += len(source)
        ours: dict[Key, Row] = {}
        for row in stored:
            shown = {one.name: _shown(one.type, row.get(one.name)) for one in every}
            if _key(table, shown) in ours:
                yield f"Current has {_key(table, shown)} twice"
            ours[_key(table, shown)] = shown
        for key in source.keys() - ours.keys():
            yield f"Current lacks {key}, rev {source[key]['rev']}"
        for key in ours.keys() - source.keys():
            yield f"Current has {key}, rev {ours[key]['rev']}, which the source has not"
        for key in source.keys() & ours.keys():
            for name, value in source[key].items():
                if ours[key][name] != value:
                    yield (
                        f"Current {key}.{name} ({_ddl(every, name)}): {_short(ours[key][name])},"
                        f" source {_short(value)}, rev {source[key]['rev']}"
                    )

    # ---- History ----

    def _wrong_versions(self, table: Table, stored: Sequence[Row]) -> Iterator[str]:
        states = self._states(table)
        versions: dict[Key, list[Row]] = defaultdict(list)
        for row in stored:
            key = tuple(_shown(one.type, row[one.name]) for one in table.keys)
            versions[key].append(row)
        for key in states.keys() | versions.keys():
            ours = sorted(versions[key], key=lambda row: row["hdr__change_identifier"])
            self.versions += len(ours)
            for line in _wrong_intervals(ours):
                yield f"History {key}: {line}"
            for line in self._wrong_order(table, states[key], ours):
                yield f"History {key}: {line}"

    def _states(self, table: Table) -> dict[Key, list[State]]:
        """All that the log of the source says of the records of a table, in order."""
        found: dict[Key, list[State]] = defaultdict(list)
        types = self._source.types
        loaded = iter(sorted(self._loaded.get(table.name, [])))
        following = next(loaded, None)
        surely, loads = False, 0
        rows = self._session.run(
            f"SELECT op, image, at FROM audit.log WHERE name = '{table.name}' ORDER BY seq"
        )
        for op, text, at in rows:
            moment = at.replace(tzinfo=None)
            while following is not None and following < moment:
                surely, loads, following = True, loads + 1, next(loaded, None)
            if op in {"T", "X"}:
                surely = surely and op == "T"
                for states in found.values():
                    if states[-1].row is not None:
                        states.append(State(None, None, surely, loads))
                continue
            given = dict(ChainMap(*(json.loads(text) if isinstance(text, str) else text)))
            kinds = {one.name: one.type for one in table.keys}
            row = {
                name: _meant(kinds[name] if number < 0 else types[number], value)
                for name, (number, value) in given.items()
            }
            is_put = op == "U"
            found[_key(table, row)].append(
                State(row["rev"] if is_put else None, row if is_put else None, surely, loads)
            )
        return found

    def _wrong_order(
        self, table: Table, states: Sequence[State], versions: Sequence[Row]
    ) -> Iterator[str]:
        puts = [(number, one) for number, one in enumerate(states) if one.row is not None]
        at_revision = {one.revision: number for number, one in puts}
        seen: set[int] = set()
        last, before = -1, dict[str, Any]()
        for version in versions:
            if version["hdr__operation"] in {"D", "d"}:
                continue
            number = at_revision.get(version["rev"])
            if number is None:
                yield f"has rev {version['rev']}, which the source never had"
                continue
            if number < last:
                yield f"has rev {version['rev']} after rev {states[last].revision}"
            # A load brings the values of a column that came with a default: no event has them.
            if number == last and states[number].surely and _values(version) == _values(before):
                yield f"has rev {version['rev']} twice"
            before = version
            seen.add(number)
            last = max(last, number)
            yield from self._wrong_values(table, states, number, version)
        for number, state in puts:
            if state.surely and number not in seen:
                yield f"lacks rev {state.revision}"
        yield from _wrong_deletes(states, versions, at_revision)

    def _wrong_values(
        self, table: Table, states: Sequence[State], number: int, version: Row
    ) -> Iterator[str]:
        state = states[number]
        assert state.row is not None
        types = {one.name: one.type for one in [*table.keys, *table.columns]}
        for name, value in state.row.items():
            if name not in types:
                continue  # dropped since: its type is not known any more
            ours = _shown(types[name], version.get(name))
            if ours != value and not (ours is None and _is_unknowable(states, number, name)):
                yield (
                    f"rev {state.revision} ({version['hdr__operation']}) {name}"
                    f" ({types[name].ddl}): {_short(ours)}, source {_short(value)}"
                )
        for column in table.columns:
            ours = _shown(column.type, version.get(column.name))
            known = column.name in state.row or column.name in table.defaults
            if not known and ours is not None:
                yield f"rev {state.revision} {column.name}: {_short(ours)}, it was not there"


def _is_unknowable(states: Sequence[State], number: int, name: str) -> bool:
    """Whether nobody can know a value: no change sent it, and it was gone before a load read it.

    The change to this state left the value as it was, so PostgreSQL need not send it; and before
    the next load had ended the column had another value, or the record was deleted.
    """
    state = states[number]
    before = states[number - 1].row if number else None
    if state.surely or state.row is None or before is None or before.get(name) != state.row[name]:
        return False
    after = (
        one for one in states[number:] if one.row is None or one.row.get(name) != state.row[name]
    )
    gone = next(after, None)
    return gone is not None and gone.loads == state.loads


def _wrong_deletes(
    states: Sequence[State], versions: Sequence[Row], at_revision: Mapping[Any, int]
) -> Iterator[str]:
    """Between two puts there is a delete in History where there was one at the source."""
    deleted: dict[int, bool] = {}
    last = -1
    for version in versions:
        if version["hdr__operation"] in {"D", "d"}:
            deleted[last] = True
        else:
            last = at_revision.get(version["rev"], last)
    last = -1
    for state in states:
        if state.row is not None:
            last = at_revision[state.revision]
        elif state.surely and last >= 0 and states[last].surely and last not in deleted:
            yield f"lacks the delete after rev {states[last].revision}"
    for number in deleted:
        both = states[number : number + 2] if number >= 0 else []
        if len(both) == 2 and all(one.surely and one.row is not None for one in both):
            yield f"has a delete after rev {states[number].revision}, the source has not"


def _wrong_intervals(versions: Sequence[Row]) -> Iterator[str]:
    for one, following in pairwise(versions):
        if one["hdr__to_timestamp"] != following["hdr__from_timestamp"]:
            yield (
                f"ends {one['hdr__to_timestamp']}, the next begins"
                f" {following['hdr__from_timestamp']}"
            )
    if any(row["hdr__partition"] == "current" for row in versions[:-1]):
        yield "Current does not have the last version"


def _values(version: Row) -> Row:
    return {name: value for name, value in version.items() if not name.startswith("hdr__")}


def _meant(kind: Any, text: str | None) -> Any:
    return None if text is None else kind.value(text)


def _shown(kind: Any, value: Any) -> Any:
    return None if value is None else kind.shown(value)


def _key(table: Table, row: Row) -> Key:
    return tuple(row[one.name] for one in table.keys)


def _ddl(columns: Sequence[Column], name: str) -> str:
    return next(one.type.ddl for one in columns if one.name == name)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 90 else f"{text[:60]}… ({len(text)})"


def _first(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == _MOST:
            rest = sum(1 for _ in lines) + 1
            yield f"and {rest} more"
            return
        yield line
