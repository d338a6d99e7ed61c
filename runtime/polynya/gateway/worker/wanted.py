"""Which tables are loaded again: what was asked for, what has changed, and what cannot be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from polynya.gateway.landing.keyless import would_come_twice
from polynya.gateway.landing.position import Position, TableProgress
from polynya.gateway.landing.progress import unloaded
from polynya.gateway.source import SourceTable
from polynya.gateway.worker.requests import Request
from polynya.model.errors import OperationError


def asked_for(
    before: Position, tables: Mapping[str, SourceTable], asked: Sequence[Request]
) -> tuple[Position, list[str], dict[str, OperationError]]:
    """The position after what was asked for and what has changed meanwhile.

    With it the tables that are emptied and loaded again, and those that cannot be, with the reason.
    """
    stale = [name for name in tables if _is_stale(before, tables[name])]
    resumed = _named(asked, "resume", tables)
    lacking = before.lacking & set(resumed)
    back = before.gone & set(tables)
    wanted = {*_named(asked, "reload", tables), *stale, *back}
    wanted |= {*_whole_again(before, tables, lacking)}
    refused = {
        name: twice(name)
        for name in wanted
        if would_come_twice(before.tables.get(name), tables[name])
    }
    again = sorted(wanted - set(refused))
    filled = [name for name in tables if _lacks_defaults(before, tables[name])]
    position = known_of(before.with_tables(tables, {*again, *filled}), tables)
    for name in resumed:
        position = position.with_table(name, _resumed(position.tables[name], tables[name]))
    position, half = _without_twice(position, tables, stale)
    refused |= half
    return position, again, refused


def has_changed(position: Position, tables: Mapping[str, SourceTable]) -> bool:
    """Whether tables came, or were changed in a way that the stream does not tell."""
    return any(
        name not in position.tables or _is_stale(position, one) or _lacks_defaults(position, one)
        for name, one in tables.items()
    )


def known_of(position: Position, tables: Mapping[str, SourceTable]) -> Position:
    """With what is known of tables whose load is still to come, or began before this was kept."""
    known = {name: one.of_table(tables[name]) for name, one in position.tables.items()}
    return replace(position, tables=known)


def twice(name: str) -> OperationError:
    """What is said of a table without key that would have to be loaded again."""
    return OperationError(
        "POLYNYA-GTW-012",
        f"{name} has no key and cannot be loaded again: its rows would come twice",
        state="what has landed of it stays; changes that the stream did not bring are missing",
        fix="give it a primary key, or capture it anew into another folder and table; "
        "`polynya landing resume` goes on with the changes from then on",
    )


def _without_twice(
    position: Position, tables: Mapping[str, SourceTable], stale: Collection[str]
) -> tuple[Position, dict[str, OperationError]]:
    """Tables without key suspended that would have to be loaded again, and why."""
    refused = {}
    for name in {*stale, *unloaded(position)}:
        if would_come_twice(position.tables[name], tables[name]):
            refused[name] = twice(name)
            position = position.with_table(name, position.tables[name].suspended(refused[name]))
    return position, refused


def _whole_again(
    position: Position, tables: Mapping[str, SourceTable], lacking: Collection[str]
) -> list[str]:
    """Of tables that lack changes those that are loaded anew when they are resumed."""
    return [one for one in lacking if not would_come_twice(position.tables[one], tables[one])]


def _is_stale(position: Position, table: SourceTable) -> bool:
    progress = position.tables.get(table.name)
    return progress is not None and _follows(progress) and progress.is_stale(table)


def _lacks_defaults(position: Position, table: SourceTable) -> bool:
    if table.lacks_key:
        # Its rows would come twice.
        return False
    progress = position.tables.get(table.name)
    return progress is not None and _follows(progress) and progress.lacks_defaults(table)


def _follows(progress: TableProgress) -> bool:
    """A table that was given up waits for a person, whatever becomes of it."""
    return progress.state != "suspended"


def _named(asked: Sequence[Request], type_: str, tables: Mapping[str, SourceTable]) -> list[str]:
    """The tables that requests of a type name."""
    wanted = [one for one in asked if one.type == type_]
    if any(not one.tables for one in wanted):
        return list(tables)
    return sorted({name for one in wanted for name in one.tables if name in tables})


def _resumed(progress: TableProgress, table: SourceTable) -> TableProgress:
    """A suspended table in its load again; any other stays as it is.

    One without key whose rows have landed is followed again, and lacks what came meanwhile.
    """
    if progress.state != "suspended":
        return progress
    if would_come_twice(progress, table):
        return replace(progress, state="loaded", why=None, lacks_changes=False)
    return replace(progress, state="loading" if progress.chunks else "queued", why=None)
