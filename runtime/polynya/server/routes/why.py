"""Why a row is so: back through transforms, rules and versions to what landed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import Query, Request
from pydantic import BaseModel, Field

from polynya.engine.commands.landed_places import LandedPlaces
from polynya.lake.read.values import to_json
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.warehouse.readers import reading
from polynya.model.config.access import AccessDocument, ViewKind
from polynya.model.loader import LoadedProject
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.access.roles import Person, decide
from polynya.server.routes.records import (
    FollowedRecord,
    Key,
    RecordEntryShown,
    RecordRights,
    followed,
    given_key,
    landed_places,
    one_query,
    readable_entry,
)
from polynya.server.state import ServerState

if TYPE_CHECKING:
    from polynya.engine.commands.why import WhyInput, WhyRow

router = api_router("records")

#: Rows of tables whose landed places are looked for.
_MOST_LANDED: Final = 10
_NO_LANDED: Final = LandedPlaces(why="it was not looked for")


class WhyRowShown(BaseModel):
    """A row, and what it was made of: of a transform its query and inputs, else its event."""

    dataset: str
    task: str
    kind: Literal["transform", "table"]
    key: dict[str, Any]
    values: dict[str, Any]
    masked: list[str] = Field(description="columns that the viewer may not read")
    valid_from: str | None = Field(description="of a version that is read from History; else null")
    valid_to: str | None = Field(description="its end; null where it still holds")
    entry: RecordEntryShown | None = Field(description="the event and version that it is")
    landed: str | None = Field(description="why the landed place is not known")
    sql: str | None = Field(description="the query; null where the viewer may not read documents")
    computed: str | None = Field(description="how steps are restricted to what changed")
    columns: dict[str, list[str]] = Field(
        description="what each column is made of, as `dataset.column`"
    )
    inputs: list[WhyInputShown]
    left_out: str | None = Field(description="why it is not followed further")


class WhyInputShown(BaseModel):
    """What a row was made of in one input: the first of `count` rows, if that is known."""

    dataset: str
    by: list[str] = Field(description="columns by which the rows were found")
    exact: bool = Field(description="these rows and no others; else they may be more")
    reason: str | None = Field(description="why they are not known, not all here, or not exact")
    count: int | None
    rows: list[WhyRowShown]


class WhyShown(BaseModel):
    """A row of Current with everything that made it; `row` is null where it does not exist."""

    dataset: str
    exists: bool
    row: WhyRowShown | None
    as_of: str


@router.get("/datasets/{name}/why", dependencies=[allowed(Action.QUERY_DATA)])
def why(
    request: Request,
    name: str,
    key: Key,
    *,
    depth: Annotated[int, Query(ge=0, le=8, description="steps back")] = 4,
    rows: Annotated[int, Query(ge=1, le=20, description="most rows of each input")] = 3,
    landed: Annotated[bool, Query(description="also look for landed files and messages")] = True,
) -> WhyShown:
    """What made a row: the rows of each input, their events, and where these landed.

    At most 60 rows in ten seconds, and the landed places of ten rows.
    """
    # Start-up time: DuckDB and sqlglot.
    from polynya.engine.commands.why import WhyFollower, WhyLimits

    state = ServerState.of(request)
    # Who reads data is in the audit log, as for queries.
    request.scope["polynya.logs"] = True
    person, document = caller(request)
    project = state.known_project()
    rights = RecordRights.of(person, name, document)
    entry = readable_entry(project, name, rights, person)
    with one_query(state, caller(request)[0], request.url.path), reading(project):
        found = followed(entry, given_key(key), rights, person)
        now, shown_row = found.now, None
        if now is not None:
            viewer = _Viewer(state, project, person, document, landed=landed)
            follower = WhyFollower(
                project,
                python_catalog(project.target),
                state.clock,
                viewer.refusal,
                WhyLimits(depth=depth, rows=rows),
            )
            shown_row = viewer.row(follower.follow(entry, now.values))
    return WhyShown(
        dataset=name,
        exists=now is not None,
        row=shown_row,
        as_of=state.clock.now().isoformat(),
    )


class _Viewer:
    """What a person may see of rows that were followed."""

    def __init__(
        self,
        state: ServerState,
        project: LoadedProject,
        person: Person,
        document: AccessDocument | None,
        *,
        landed: bool,
    ) -> None:
        self._state, self._project = state, project
        self._person, self._document = person, document
        self._left = _MOST_LANDED if landed else 0
        self._reads_sql = decide(person, Action.VIEW_DOCUMENTS, document).allowed
        self._sees_lineage = decide(person, Action.VIEW_LINEAGE, document).allowed
        self._rights: dict[str, RecordRights] = {}

    def rights(self, dataset: str) -> RecordRights:
        """The rights of the viewer to a dataset."""
        if dataset not in self._rights:
            self._rights[dataset] = RecordRights.of(self._person, dataset, self._document)
        return self._rights[dataset]

    def refusal(self, dataset: str, columns: Sequence[str], kind: ViewKind) -> str | None:
        """Why rows of a view are not looked for by some columns; None where they may be."""
        rights = self.rights(dataset)
        if kind not in rights.kinds:
            return "the viewer may not read it"
        if any(map(rights.masked, columns)):
            return "its rows are found by a column that is masked for the viewer"
        return None

    def row(self, one: WhyRow) -> WhyRowShown:
        """A row as the API shows it."""
        rights = self.rights(one.dataset)
        entry, places = None, _NO_LANDED
        if one.entry is not None:
            places = self._places(one, rights)
            record = FollowedRecord(one.table, {}, (one.entry,), one.types)
            entry = record.shown(one.number, one.entry, rights, places)
        begin, end = one.valid or (None, None)
        return WhyRowShown(
            dataset=one.dataset,
            task=one.task,
            kind=one.kind,
            key=self._json(one, one.key, rights),
            values=self._json(one, {name: one.values.get(name) for name in one.types}, rights),
            masked=sorted(name for name in one.types if rights.masked(name)),
            valid_from=begin and begin.isoformat(),
            valid_to=end and end.isoformat(),
            entry=entry,
            landed=None if one.kind == "transform" else places.why,
            sql=one.sql if self._reads_sql else None,
            computed=one.computed,
            columns={name: list(made) for name, made in one.origins.items()}
            if self._sees_lineage
            else {},
            inputs=[self._input(made) for made in one.inputs],
            left_out=one.left_out,
        )

    def _input(self, one: WhyInput) -> WhyInputShown:
        return WhyInputShown(
            dataset=one.dataset,
            by=list(one.by),
            exact=one.exact,
            reason=one.reason,
            count=one.count,
            rows=[self.row(row) for row in one.rows],
        )

    def _places(self, one: WhyRow, rights: RecordRights) -> LandedPlaces:
        if one.kind == "transform" or "changes" not in rights.kinds or self._left <= 0:
            return _NO_LANDED
        self._left -= 1
        assert one.entry is not None, "it is asked for that"
        return landed_places(self._state, self._project, one.table, one.key_arrays, [one.entry])

    def _json(self, one: WhyRow, values: Any, rights: RecordRights) -> dict[str, Any]:
        return {
            name: None if rights.masked(name) else to_json(value, one.types[name])
            for name, value in values.items()
            if name in one.types
        }
