"""The file of a proposed data mart: relationships, dimensions and facts, each with its reason.

Which table is a fact follows from the direction of relationships, its times and its measures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final

from polynya.model.names import folded, quote
from polynya.model.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
)
from polynya.observe.events import counted
from polynya.proposal.column_types import words
from polynya.proposal.relationships import (
    IDENTIFIERS,
    ColumnProfile,
    Confidence,
    JudgedReference,
    TableProfile,
)
from polynya.proposal.yaml_lines import one_line, yaml_name, yaml_value

#: Words of times at which nothing happened but to the row.
_BOOKKEEPING: Final = frozenset({
    "created", "create", "creation", "updated", "update", "modified", "changed", "inserted",
    "loaded", "last", "deleted", "born", "birth", "birthday", "hired", "hire", "registered",
    "valid", "expires", "expiry",
})  # fmt: skip
#: Words of numbers that nobody adds up.
_NO_MEASURE: Final = frozenset({
    "year", "month", "day", "week", "hour", "version", "seq", "sequence", "position", "line",
    "rank", "age", "zip", "phone", "latitude", "longitude", "lat", "lon",
}) | IDENTIFIERS  # fmt: skip
#: Words at the end of a time that its role does without.
_TIME_WORDS: Final = frozenset({"at", "on", "date", "time", "timestamp", "ts", "day", "dt"})
_NUMBERS: Final = frozenset({INT, BIGINT, FLOAT, DOUBLE})
_TIMES: Final = frozenset({DATE, TIMESTAMP, TIMESTAMP_NTZ})
#: Ways between two tables have at most so many relationships.
_LONGEST_WAY: Final = 8
#: Days of a calendar where no time was read.
_SOME_YEARS: Final = (date(2020, 1, 1), date(2030, 12, 31))
#: A calendar has 400 years at most.
_MOST_YEARS: Final = 399
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")


@dataclass(frozen=True, slots=True)
class _Link:
    """A relationship of the mart, under its name."""

    name: str
    judged: JudgedReference

    @property
    def child(self) -> str:
        return self.judged.reference.child

    @property
    def parent(self) -> str:
        return self.judged.reference.parent


@dataclass(frozen=True, slots=True)
class MartProposal:
    """A proposed mart as text; `dimensions` and `facts` are names of tables with the reason."""

    text: str
    dimensions: dict[str, str]
    facts: dict[str, str]
    left_out: dict[str, str]


def proposed_mart(
    name: str,
    sources: Sequence[str],
    tables: Sequence[TableProfile],
    judged: Sequence[JudgedReference],
    *,
    shows_rejected: bool = False,
) -> MartProposal:
    """The mart over tables of some tasks; it has no dimensions where no relationship is likely."""
    mart = _Mart({table.name: table for table in tables}, _links(judged))
    facts, dimensions, left_out = mart.sorted_tables()
    lines = [
        "# yaml-language-server: $schema=../.polynya/schema/task.v1.json",
        f"# Proposed from {counted(len(tables), 'table')}: look at each line.",
        "apiVersion: polynya/v1",
        "kind: data_mart",
        f"name: {name}",
        f"from: [{', '.join(sources)}]",
        "relationships:" if mart.links else "relationships: []",
    ]
    for link in mart.links:
        lines += [f"  # {_reason(link.judged)}", f"  - {_relationship(link.judged, link.name)}"]
    for one in judged:
        if one.confidence is Confidence.WEAK or (not one.is_proposed and shows_rejected):
            lines += [f"  # {_reason(one)}", f"  # - {_relationship(one, None)}"]
    lines += ["dimensions:"]
    for table, reason in dimensions.items():
        lines += mart.dimension(table, reason)
    if any(mart.times(table) for table in facts):
        lines += mart.calendar(facts)
    lines += ["facts:"] if facts else []
    for table, reason in facts.items():
        lines += mart.fact(table, reason, list(dimensions))
    lines += [f"# Left out: {one_line(f'{table}: {reason}')}" for table, reason in left_out.items()]
    return MartProposal("".join(f"{line}\n" for line in lines), dimensions, facts, left_out)


def _reason(one: JudgedReference) -> str:
    return one_line(f"{one.confidence}: {'; '.join(one.reasons)}")


def _relationship(one: JudgedReference, name: str | None) -> str:
    reference = one.reference
    on = ", ".join(
        f"{yaml_name(column)}: {yaml_value(key)}"
        for column, key in zip(reference.columns, reference.keys, strict=True)
    )
    named = "" if name in {None, reference.parent.rpartition(".")[2]} else f"name: {name}, "
    return f"{{{named}from: {reference.child}, to: {reference.parent}, on: {{{on}}}}}"


def _links(judged: Sequence[JudgedReference]) -> list[_Link]:
    """The proposed relationships, with names that differ among those from one table."""
    links: list[_Link] = []
    taken: set[tuple[str, str]] = set()
    for one in judged:
        if not one.is_proposed:
            continue
        reference = one.reference
        table = reference.parent.rpartition(".")[2]
        base = f"{reference.role}_{table}" if reference.role else table
        base = base if _NAME.fullmatch(base) else table
        name = _free(base, partial(_is_used, taken, reference.child))
        taken.add((reference.child, name.lower()))
        links.append(_Link(name, one))
    return links


def _is_used(taken: set[tuple[str, str]], child: str, name: str) -> bool:
    return (child, name.lower()) in taken


def _free(base: str, is_taken: Callable[[str], bool]) -> str:
    """A name that is not taken: the base, or the base with a number."""
    number, name = 1, base
    while is_taken(name):
        number += 1
        name = f"{base}_{number}"
    return name


@dataclass
class _Mart:
    """The tables, and the relationships between them."""

    tables: dict[str, TableProfile]
    links: list[_Link]

    def sorted_tables(self) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        """Facts, dimensions, and tables that are neither, each with the reason."""
        facts: dict[str, str] = {}
        dimensions: dict[str, str] = {}
        left_out: dict[str, str] = {}
        for name, table in self.tables.items():
            out = {link.parent for link in self.links if link.child == name and link.parent != name}
            into = {link.child for link in self.links if link.parent == name and link.child != name}
            measures = [one.name for one in self._measures(table)]
            times = [one.name for one in self._event_times(table)]
            told = _told(out, into, measures, times)
            if not table.columns:
                left_out[name] = table.unread or "it has no columns"
            elif not out and not into:
                left_out[name] = "no relationship leads from it or to it"
            elif not table.keys:
                left_out[name] = f"it would be a fact ({told}), but has no keys"
            elif self._is_fact(table, out, into, measures, times):
                facts[name] = told
                if not measures and set(table.keys) <= self._foreign(name):
                    facts[name] += "; it connects them, many to many"
            else:
                dimensions[name] = told
        return facts, dimensions, left_out

    def _is_fact(
        self,
        table: TableProfile,
        out: set[str],
        into: set[str],
        measures: Sequence[str],
        times: Sequence[str],
    ) -> bool:
        if not out:
            return False
        if into:
            return bool(times) and (bool(measures) or len(out) > 1)
        return bool(times or measures) or set(table.keys) <= self._foreign(table.name)

    def _foreign(self, table: str) -> set[str]:
        """The columns of a table that refer to others."""
        return {
            column
            for link in self.links
            if link.child == table
            for column in link.judged.reference.columns
        }

    def _measures(self, table: TableProfile) -> list[ColumnProfile]:
        foreign = self._foreign(table.name) | set(table.keys)
        return [
            column
            for column in table.columns.values()
            if (column.type in _NUMBERS or isinstance(column.type, Decimal))
            and column.name not in foreign
            and _NO_MEASURE.isdisjoint(words(column.name)[-1:])
        ]

    def _event_times(self, table: TableProfile) -> list[ColumnProfile]:
        return [
            column
            for column in table.columns.values()
            if column.type in _TIMES and _BOOKKEEPING.isdisjoint(words(column.name))
        ]

    def times(self, table: str) -> list[ColumnProfile]:
        """The times at which a fact happened."""
        return self._event_times(self.tables[table])

    def name_of(self, table: str) -> str:
        """What a table is called in the mart."""
        view = self.tables[table].view
        alike = [one for one in self.tables.values() if one.view.lower() == view.lower()]
        return view if len(alike) == 1 else table.replace(".", "_")

    def dimension(self, table: str, reason: str) -> Iterator[str]:
        """Yield the lines of a dimension."""
        profile, name = self.tables[table], self.name_of(table)
        columns = [column for column in profile.columns if column not in profile.keys]
        yield f"  # {one_line(reason)}"
        yield f"  - name: {name}"
        if profile.history:
            yield "    type: 1  # 2 for a row for each version: the table keeps its history"
        if (key := self._key_of(table)) != f"{name}_key":
            yield f"    key: {key}"
        yield f"    table: {table}"
        yield f"    keys: {yaml_value(profile.keys)}"
        if columns:
            yield f"    columns: {yaml_value(columns)}"

    def _key_of(self, table: str) -> str:
        taken = {folded(column) for column in self.tables[table].columns}
        name = self.name_of(table)
        return _free(f"{name}_key", lambda text: folded(text) in taken)

    def calendar(self, facts: dict[str, str]) -> Iterator[str]:
        """Yield the lines of the dimension of days."""
        times = [time for table in facts for time in self.times(table)]
        first = min((one.first for one in times if one.first), default=None)
        last = max((one.last for one in times if one.last), default=None)
        if first is None or last is None:
            first, last, reason = *_SOME_YEARS, "no times were looked at: change the days"
        else:
            last_year = min(last.year, first.year + _MOST_YEARS)
            first, last = date(first.year, 1, 1), date(last_year, 12, 31)
            reason = "the years of all times below"
        yield f"  # {reason}"
        yield f"  - {{name: {self._calendar}, type: date, first: {first}, last: {last}}}"

    @property
    def _calendar(self) -> str:
        taken = {self.name_of(table).lower() for table in self.tables}
        return _free("calendar", lambda text: text in taken)

    def fact(self, table: str, reason: str, dimensions: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a fact."""
        profile = self.tables[table]
        times = self.times(table)
        measures = self._measures(profile)
        yield f"  # {one_line(reason)}"
        yield f"  - name: {self.name_of(table)}"
        yield f"    table: {table}"
        yield f"    keys: {yaml_value(profile.keys)}"
        if times:
            yield f"    time: {yaml_value(_expression(times[0].name))}"
        taken = {folded(one) for one in (*profile.keys, *(m.name for m in measures))}
        roles = [*self._roles(table, dimensions, taken), *self._days(times, taken)]
        if roles:
            yield "    dimensions:"
            yield from (f"      - {role}" for role in roles)
        if measures:
            yield "    measures:"
            for one in measures:
                yield f"      {yaml_name(one.name)}: {yaml_value(_expression(one.name))}"

    def _roles(self, table: str, dimensions: Sequence[str], taken: set[str]) -> Iterator[str]:
        for dimension in dimensions:
            ways = list(self._ways(table, dimension))
            shortest = min(map(len, ways), default=0)
            nearest = [way for way in ways if len(way) == shortest]
            if not ways or (shortest > 1 and len(nearest) > 1):
                continue
            for way in nearest:
                name = self.name_of(dimension)
                base = name if len(nearest) == 1 else way[0].name
                role = _free(base, lambda text: folded(f"{text}_key") in taken)
                taken.add(folded(f"{role}_key"))
                parts = [f"dimension: {name}"]
                parts += [] if role == name else [f"as: {role}"]
                if len(ways) > 1:
                    parts += [f"via: [{', '.join(link.name for link in way)}]"]
                yield name if len(parts) == 1 else f"{{{', '.join(parts)}}}"

    def _days(self, times: Sequence[ColumnProfile], taken: set[str]) -> Iterator[str]:
        for index, time in enumerate(times):
            base = "_".join(word for word in words(time.name) if word not in _TIME_WORDS)
            base = base if _NAME.fullmatch(base) else "day"
            role = _free(base, lambda text: folded(f"{text}_key") in taken)
            taken.add(folded(f"{role}_key"))
            at = f", at: {yaml_value(_expression(time.name))}" if index else ""
            yield f"{{dimension: {self._calendar}, as: {role}{at}}}"

    def _ways(self, child: str, parent: str) -> Iterator[tuple[_Link, ...]]:
        """Yield the ways from one table to another that visit no table twice."""
        waiting: list[tuple[_Link, ...]] = [
            (link,) for link in self.links if link.child == child and link.parent != child
        ]
        while waiting:
            way = waiting.pop(0)
            if way[-1].parent == parent:
                yield way
            elif len(way) < _LONGEST_WAY:
                visited = {child, *(link.parent for link in way)}
                waiting += [
                    (*way, link)
                    for link in self.links
                    if link.child == way[-1].parent and link.parent not in visited
                ]


def _told(out: set[str], into: set[str], measures: Sequence[str], times: Sequence[str]) -> str:
    """What decides whether a table is a fact."""
    parts = [
        f"refers to {', '.join(sorted(out)) or 'no table'}",
        f"referred to by {', '.join(sorted(into)) or 'no table'}",
    ]
    parts += [f"times: {', '.join(times)}"] if times else []
    parts += [f"measures: {', '.join(measures)}"] if measures else []
    return "; ".join(parts)


def _expression(column: str) -> str:
    """A column as an expression."""
    return column if _NAME.fullmatch(column) else quote(column)
