"""The history of one record: every event and version of a key, with both clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

import pyarrow as pa
from fastapi import Query, Request
from pydantic import BaseModel, Field

from polynya.engine.commands.landed_places import LandedPlaces, LandingSearch, SoughtEvent
from polynya.engine.commands.record import EntryKind, RecordEntry, record_entries
from polynya.engine.inventory import ProjectTable, inventory
from polynya.lake.read.inspect import shape as shape_of_table
from polynya.lake.read.values import to_json
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.lake.warehouse.readers import reading
from polynya.model import headers as h
from polynya.model.config.access import AccessDocument, ViewKind
from polynya.model.config.derived import DerivedTask
from polynya.model.error_catalogue.access import NOT_READABLE
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE, REQUEST_INVALID
from polynya.model.error_catalogue.server_records import RECORD_KEY_WRONG, RECORD_NOT_FOLLOWED
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.access.roles import Person
from polynya.server.access.views import ALL_KINDS, Readable, may_read
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.running_queries import QueryLimits
from polynya.server.state import ServerState
from polynya.store.places import store_at

router = api_router("records")

Key = Annotated[
    list[str], Query(max_length=50, description="`COLUMN=VALUE`, once for each key column")
]
_MOST_KEY: Final = 10_000


class LandedShown(BaseModel):
    """Where an event landed: the object, its number there, and its message in the source."""

    file: str
    number: int = Field(description="of the record in the object, from 0")
    message: str | None = Field(description="such as `kafka:clicks/3/1234`")


class RecordEntryShown(BaseModel):
    """One event of a record and the version that it made. Times are ISO 8601 in UTC.

    What the viewer may not read is null: events need the Changes view, superseded versions History.
    """

    number: int = Field(description="place in the order of events, from 1")
    kind: EntryKind
    operation: str = Field(description="`L` `I` `U` `D` `T`; `i` `u` `d` of a correction")
    gone: bool = Field(description="the record does not exist after it")
    pending: bool = Field(description="the next apply takes it in; live views show it already")
    late: bool = Field(description="what comes after it had arrived before it")
    source_time: str | None
    copied_at: str | None = Field(description="by the clock of the engine")
    applied_at: str | None
    valid_from: str | None = Field(description="of the version, by the clock of the source")
    valid_to: str | None
    visible_from: str | None = Field(
        description="when Current began to show the record so, by the clock of the engine; null: "
        "never"
    )
    visible_to: str | None
    exact: bool = Field(
        description="`visible_from` is the copy; else the apply, a little after live views did"
    )
    sequence: str | None = Field(description="change identifier: the order of events")
    position: str | None = Field(description="place in the source that breaks ties")
    deliveries: int = Field(description="how often the same event was kept")
    unsent: list[str] = Field(description="columns that the event did not carry")
    changed: list[str] = Field(description="columns that differ from the version before")
    values: dict[str, Any]
    landed: LandedShown | None


class RecordHistory(ListPage[RecordEntryShown]):
    """The events of one record in their order, and what is true of it now."""

    dataset: str
    task: str
    key: dict[str, Any]
    exists: bool = Field(description="whether Current has the record now")
    current: dict[str, Any] | None = Field(description="its row in Current, pending changes folded")
    masked: list[str] = Field(description="columns that the viewer may not read: their values null")
    hidden: str | None = Field(description="what of the history the viewer may not read")
    landed: str | None = Field(description="why the landed place of some entries is not known")
    as_of: str


@dataclass(frozen=True, slots=True)
class RecordRights:
    """What a viewer may read of a dataset: the kinds of its views, and which columns."""

    kinds: frozenset[ViewKind]
    readable: tuple[Readable, ...]

    @classmethod
    def of(cls, person: Person, name: str, document: AccessDocument | None) -> RecordRights:
        """The rights of a person."""
        found = {kind: may_read(person, name, document, kind) for kind in ALL_KINDS}
        kinds = frozenset(kind for kind, one in found.items() if kind in one.kinds)
        return cls(kinds, tuple(found[kind] for kind in ALL_KINDS if kind in kinds))

    def masked(self, column: str) -> bool:
        """Whether the column is masked in any view that the viewer may read."""
        return any(one.masked(column) for one in self.readable)


@router.get("/datasets/{name}/record", dependencies=[allowed(Action.QUERY_DATA)])
def record(
    request: Request,
    name: str,
    key: Key,
    *,
    landed: Annotated[
        bool, Query(description="also look for the landed files and messages")
    ] = True,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> RecordHistory:
    """All events and versions of one record, in the order of events.

    The first pages are cheap: only rows of the record are read. Landed places are looked for in
    the files of the landing zone, for at most five seconds.
    """
    state = ServerState.of(request)
    # Who reads data is in the audit log, as for queries.
    request.scope["polynya.logs"] = True
    person, document = caller(request)
    project = state.known_project()
    rights = RecordRights.of(person, name, document)
    entry = readable_entry(project, name, rights, person)
    given = given_key(key)
    with one_query(state, caller(request)[0], request.url.path), reading(project):
        found = followed(entry, given, rights, person)
        shown_entries = list(_visible(found.entries, rights))
        numbered = [(place, one) for place, one in shown_entries]
        part = page(numbered, lambda one: (one[0], one[1].sequence), limit, cursor)
        places = LandedPlaces(why="the viewer may not read events")
        if landed and "changes" in rights.kinds:
            places = landed_places(state, project, entry, found.key, [one for _, one in part.items])
        elif not landed:
            places = LandedPlaces(why="it was not asked for")
    now = found.now
    return RecordHistory(
        items=[found.shown(place, one, rights, places) for place, one in part.items],
        total=part.total,
        next=part.next,
        dataset=name,
        task=entry.task.name,
        key={column: to_json(value[0].as_py(), value.type) for column, value in found.key.items()},
        exists=now is not None,
        current=None if now is None else found.values(now, rights),
        masked=sorted(column for column in found.types if rights.masked(column)),
        hidden=_hidden(rights),
        landed=places.why,
        as_of=state.clock.now().isoformat(),
    )


@dataclass(frozen=True, slots=True)
class FollowedRecord:
    """A record as its table has it: the key, the entries in order, the types of the columns."""

    entry: ProjectTable
    key: Mapping[str, pa.Array]
    entries: Sequence[RecordEntry]
    types: Mapping[str, pa.DataType]

    @property
    def now(self) -> RecordEntry | None:
        """The entry that Current shows; None where the record does not exist."""
        last = self.entries[-1] if self.entries else None
        return None if last is None or last.is_gone else last

    def values(self, one: RecordEntry, rights: RecordRights) -> dict[str, Any]:
        """The values of an entry as JSON; masked ones are NULL."""
        return {
            name: None if rights.masked(name) else to_json(one.values.get(name), kind)
            for name, kind in self.types.items()
        }

    def shown(
        self, number: int, one: RecordEntry, rights: RecordRights, places: LandedPlaces
    ) -> RecordEntryShown:
        """An entry as the API shows it."""
        events = "changes" in rights.kinds
        ordered_by = self.entry.dataset.events.sequence_by
        shows_order = events and not any(map(rights.masked, ordered_by))
        place = places.places.get(one.sequence)
        return RecordEntryShown(
            number=number,
            kind=one.kind,
            operation=one.operation,
            gone=one.is_gone,
            pending=one.pending,
            late=one.late,
            source_time=_iso(one.source_time),
            copied_at=_iso(one.copied_at) if events else None,
            applied_at=_iso(one.applied_at),
            valid_from=_iso(one.valid_from),
            valid_to=_iso(one.valid_to),
            visible_from=_iso(one.visible_from),
            visible_to=_iso(one.visible_to),
            exact=one.exact,
            sequence=(one.sequence or None) if shows_order else None,
            position=one.position if shows_order else None,
            deliveries=one.deliveries if events else 1,
            unsent=[name for name in one.unsent if not rights.masked(name)] if events else [],
            changed=[name for name in one.changed if not rights.masked(name)],
            values=self.values(one, rights),
            landed=place
            and LandedShown(file=place.file, number=place.number, message=place.message),
        )


def readable_entry(
    project: LoadedProject, name: str, rights: RecordRights, person: Person
) -> ProjectTable:
    """The table of a dataset `schema.view` whose Current view a person may read.

    Raises:
        ConfigError: POLYNYA-SRV-001, the project has no such one, for who may read all.
        RefusedError: POLYNYA-ACC-003, it does not exist, or nobody granted it to the person.
    """
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    entries = inventory(project, catalog, lambda one: one.relations.current == name)
    entry = next((one for one in entries if not one.is_ledger), None)
    if entry is not None and "current" in rights.kinds:
        return entry
    if rights.kinds == frozenset(ALL_KINDS):
        raise NO_SUCH_RESOURCE(what=f"dataset {shown(name)}")
    raise NOT_READABLE(where=shown(name), view=shown(name), person=person.name)


def given_key(key: Sequence[str]) -> dict[str, str]:
    """The key of a request. Raises ConfigError POLYNYA-SRV-002."""
    given = {}
    for one in key:
        column, equals, value = one.partition("=")
        if not equals or column in given or len(one) > _MOST_KEY:
            raise REQUEST_INVALID(reason="`key` is `COLUMN=VALUE`, once for each key column")
        given[column] = value
    return given


#: What the rows of one key may take.
_MOST_SECONDS: Final = 60.0
_MOST_MEGABYTES: Final = 64


@contextmanager
def one_query(state: ServerState, person: Person, what: str) -> Iterator[None]:
    """One of the queries that run at a time. Raises OperationError POLYNYA-SRV-005."""
    limits = QueryLimits(_MOST_SECONDS, _MOST_MEGABYTES)
    queries = state.queries.running(person.name, what, limits, is_shared=False)
    with queries as running, running.stop.running():
        yield


def followed(
    entry: ProjectTable, given: Mapping[str, str], rights: RecordRights, person: Person
) -> FollowedRecord:
    """The events and versions of a record.

    Raises:
        ConfigError: POLYNYA-SRV-080, the key is none of the dataset.
        OperationError: POLYNYA-SRV-081, its rows are not read here.
        RefusedError: POLYNYA-ACC-003, the key is masked for the viewer: values could be guessed.
    """
    if entry.table is None:
        return FollowedRecord(entry, {}, (), {})
    # Start-up time: sqlglot.
    from polynya.query.record_rows import key_values, record_rows, truncates
    from polynya.query.translate import NotEmbeddedError

    shape = shape_of_table(entry.table, entry.dataset)
    try:
        key = key_values(shape, given)
    except ValueError as error:
        keys = ", ".join(shape.keys) or "it has none"
        raise RECORD_KEY_WRONG(where=entry.name, reason=str(error), keys=keys) from error
    if any(map(rights.masked, shape.keys)):
        raise NOT_READABLE(where=entry.name, view=f"{entry.name} by its key", person=person.name)
    try:
        rows = record_rows(entry.table, shape, key)
        cleared = [] if shape.append_only else truncates(entry.table)
    except NotEmbeddedError as error:
        raise RECORD_NOT_FOLLOWED(where=entry.name, dataset=entry.name, reason=error) from error
    types = {
        field.name: field.type
        for field in rows.schema
        if field.name not in h.HEADER_NAMES and field.name not in shape.hidden
    }
    entries = record_entries(
        rows.to_pylist(),
        cleared,
        appends=shape.append_only,
        derived=isinstance(entry.task, DerivedTask),
    )
    return FollowedRecord(entry, key, entries, types)


def landed_places(
    state: ServerState,
    project: LoadedProject,
    entry: ProjectTable,
    key: Mapping[str, pa.Array],
    entries: Sequence[RecordEntry],
) -> LandedPlaces:
    """Where the events of entries landed."""
    sought = [
        SoughtEvent("" if one.operation == "L" else one.sequence, one.arrived, one.position)
        for one in entries
        if one.kind not in {"truncate", "correction"}
    ]
    if not sought:
        return LandedPlaces(why=None)
    target = project.target
    catalog = python_catalog(target) if has_tables(target) else None
    search = LandingSearch(store_at(target.landing, target.aws), catalog, state.clock)
    return search.find(entry.task, entry.dataset, key, sought)


def _visible(
    entries: Sequence[RecordEntry], rights: RecordRights
) -> Iterator[tuple[int, RecordEntry]]:
    """The entries that a viewer may read, with their numbers."""
    for number, one in enumerate(entries, 1):
        is_event = one.pending or one.copied_at is not None
        is_last = number == len(entries) and not one.is_gone
        if "history" in rights.kinds or ("changes" in rights.kinds and is_event) or is_last:
            yield number, one


def _hidden(rights: RecordRights) -> str | None:
    missing = [kind for kind in ("history", "changes") if kind not in rights.kinds]
    if not missing:
        return None
    return f"the viewer may not read {' and '.join(missing)}"


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
