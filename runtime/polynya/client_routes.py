"""The routes of the API as methods with types, in groups.

`python -m polynya.server.client_code` writes this module from the routes of the server: do
not edit it. Use it as `PolynyaClient(URL).routes`:

    for dataset in client.routes.datasets.datasets(health=HealthWord.SUSPENDED):
        print(dataset.name)

Each method raises PolynyaError with the code that the server answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from polynya.client_actions import (
    ActionsRoutes,
    AutomationsRoutes,
    NotificationsRoutes,
    OperationsRoutes,
    PlansRoutes,
)
from polynya.client_group import RouteGroup
from polynya.server.documents import DocumentPlace
from polynya.server.health import HealthWord
from polynya.server.routes.access import (
    AccessReplaced,
    AccessText,
    AuditPage,
    MyAccess,
    NewAccess,
    NewToken,
    RoleShown,
    SessionShown,
    TokenMade,
    TokenShown,
)
from polynya.server.routes.captures import CapturedTableShown, CaptureShown
from polynya.server.routes.clusters import ClusterShown, NodeShown, UnitShown
from polynya.server.routes.datasets import (
    DatasetDetails,
    DatasetOrder,
    DatasetShown,
    QuarantinedRecord,
    SampleRows,
    TableFiles,
)
from polynya.server.routes.documents import DocumentChanged, DocumentShown
from polynya.server.routes.latency import Latencies
from polynya.server.routes.lineage import LineageShown
from polynya.server.routes.projects import ProjectShown, RecentChanges, TaskShown, Validated
from polynya.server.routes.queries import (
    QueriesShown,
    QueryAnswered,
    QueryAsked,
    QueryPlanned,
    StatementAsked,
)
from polynya.server.routes.records import RecordHistory
from polynya.server.routes.runs import CommitShown, EventList, RunList, RunShown
from polynya.server.routes.streams import StreamPlace, StreamShown
from polynya.server.routes.transforms import (
    FlowChecked,
    FlowDraft,
    FlowStepRows,
    TransformDetails,
    TransformShown,
)
from polynya.server.routes.views import ViewShown
from polynya.server.routes.why import WhyShown

if TYPE_CHECKING:
    from polynya.client import PolynyaClient


class AccessRoutes(RouteGroup):
    """Routes of `access`."""

    def me(self) -> MyAccess:
        """The person of this request, and what they may do; `anonymous` without a login."""
        return self._get(MyAccess, "/me")

    def sessions(self) -> list[SessionShown]:
        """The sessions of the person who asks."""
        return self._get(list[SessionShown], "/me/sessions")

    def end_session(self, session_id: str) -> None:
        """End a session of the person who asks."""
        self._client.call("DELETE", f"/me/sessions/{quote(session_id, '')}")

    def end_sessions(self, name: str) -> None:
        """End all sessions of a person."""
        self._client.call("DELETE", f"/access/people/{quote(name, '')}/sessions")

    def tokens(self, *, everybody: bool = False) -> list[TokenShown]:
        """The tokens of the person who asks; with `everybody` those of all, for owners."""
        return self._get(list[TokenShown], "/access/tokens", everybody=everybody)

    def make_token(self, asked: NewToken) -> TokenMade:
        """Make a token of the person who asks. A token makes none with more than it may do itself."""
        return self._ask(TokenMade, "POST", "/access/tokens", asked)

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token of the person who asks; owners revoke those of all."""
        self._client.call("DELETE", f"/access/tokens/{quote(token_id, '')}")

    def access(self) -> AccessText:
        """The access file as it is, with its version as `ETag`."""
        return self._get(AccessText, "/access")

    def replace_access(
        self, asked: NewAccess, *, dry_run: bool = False, if_match: str
    ) -> AccessReplaced:
        """Replace the access file of this version. The answer is the difference, and its effects."""
        return self._ask(
            AccessReplaced, "PUT", "/access", asked, {"if-match": if_match}, dry_run=dry_run
        )

    def roles(self) -> list[RoleShown]:
        """The table of roles and their actions."""
        return self._get(list[RoleShown], "/access/roles")

    def audit(self, *, before: int | None = None, size: int = 100) -> AuditPage:
        """Lines of the audit log, the newest first."""
        return self._get(AuditPage, "/access/audit", before=before, size=size)


class ProjectRoutes(RouteGroup):
    """Routes of `project`."""

    def project(self) -> ProjectShown:
        """The project that this server answers for."""
        return self._get(ProjectShown, "/project")

    def changes(self, *, hours: int = 24) -> RecentChanges:
        """What has changed lately: commits, rows, rejected records, and shapes of sources."""
        return self._get(RecentChanges, "/project/changes", hours=hours)

    def validate(self) -> Validated:
        """Check all files of the project as they are now, without the network."""
        return self._ask(Validated, "POST", "/project/validate")

    def tasks(self) -> Iterator[TaskShown]:
        """The tasks of the project by name."""
        return self._all(TaskShown, "/tasks")

    def task(self, name: str) -> TaskShown:
        """One task."""
        return self._get(TaskShown, f"/tasks/{quote(name, '')}")


class DatasetsRoutes(RouteGroup):
    """Routes of `datasets`."""

    def datasets(
        self,
        *,
        name: str = "*",
        task: str | None = None,
        health: HealthWord | None = None,
        sort: DatasetOrder = DatasetOrder.NAME,
    ) -> Iterator[DatasetShown]:
        """The datasets of the project, as of the newest look at their tables."""
        return self._all(DatasetShown, "/datasets", name=name, task=task, health=health, sort=sort)

    def dataset(self, name: str) -> DatasetDetails:
        """One dataset."""
        return self._get(DatasetDetails, f"/datasets/{quote(name, '')}")

    def quarantined(self, name: str, *, rule: str | None = None) -> Iterator[QuarantinedRecord]:
        """The rejected records of a dataset, by the rule that rejects them and their id."""
        return self._all(QuarantinedRecord, f"/datasets/{quote(name, '')}/quarantine", rule=rule)

    def files(self, name: str) -> TableFiles:
        """The files of a dataset's table, their health, and what maintenance will do and why."""
        return self._get(TableFiles, f"/datasets/{quote(name, '')}/files")

    def rows(
        self,
        name: str,
        *,
        view: Literal["current", "history", "changes"] = "current",
        limit: int = 50,
    ) -> SampleRows:
        """Some rows of a live view, as a query of the person who asks reads them."""
        return self._get(SampleRows, f"/datasets/{quote(name, '')}/rows", view=view, limit=limit)

    def dataset_latency(
        self,
        name: str,
        *,
        days: float = 30.0,
        hours: float = 4.0,
        percentile: list[int] | None = None,
    ) -> Latencies:
        """How long changes of a dataset took and what waited; kept where the project sets `latency`."""
        return self._get(
            Latencies,
            f"/datasets/{quote(name, '')}/latency",
            days=days,
            hours=hours,
            percentile=percentile,
        )

    def task_latency(
        self,
        name: str,
        *,
        days: float = 30.0,
        hours: float = 4.0,
        percentile: list[int] | None = None,
    ) -> Latencies:
        """The worst latencies of the datasets of a task, and what waited of all of them."""
        return self._get(
            Latencies,
            f"/tasks/{quote(name, '')}/latency",
            days=days,
            hours=hours,
            percentile=percentile,
        )


class RecordsRoutes(RouteGroup):
    """Routes of `records`."""

    def record(
        self,
        name: str,
        *,
        key: list[str],
        landed: bool = True,
        limit: int = 100,
        cursor: str | None = None,
    ) -> RecordHistory:
        """All events and versions of one record, in the order of events."""
        return self._get(
            RecordHistory,
            f"/datasets/{quote(name, '')}/record",
            key=key,
            landed=landed,
            limit=limit,
            cursor=cursor,
        )

    def why(
        self, name: str, *, key: list[str], depth: int = 4, rows: int = 3, landed: bool = True
    ) -> WhyShown:
        """What made a row: the rows of each input, their events, and where these landed."""
        return self._get(
            WhyShown,
            f"/datasets/{quote(name, '')}/why",
            key=key,
            depth=depth,
            rows=rows,
            landed=landed,
        )


class RunsRoutes(RouteGroup):
    """Routes of `runs`."""

    def runs(
        self,
        *,
        task: str | None = None,
        dataset: str | None = None,
        kind: Literal["operation", "automation", "process"] | None = None,
        outcome: Literal[
            "queued",
            "running",
            "succeeded",
            "failed",
            "cancelled",
            "interrupted",
            "owner",
            "overtaken",
        ]
        | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunList:
        """The runs of a time, the newest first: what was begun, how far it came, how it ended."""
        return self._get(
            RunList,
            "/runs",
            task=task,
            dataset=dataset,
            kind=kind,
            outcome=outcome,
            since=since,
            until=until,
            limit=limit,
            cursor=cursor,
        )

    def run(self, name: str) -> RunShown:
        """One run."""
        return self._get(RunShown, f"/runs/{quote(name, '')}")

    def events(
        self,
        *,
        task: str | None = None,
        dataset: str | None = None,
        level: Literal["detail", "note", "caution", "warning", "failure"] = "note",
        kind: str | None = None,
        code: str | None = None,
        run: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> EventList:
        """The events of a time, the newest first; the newest 10,000 that match."""
        return self._get(
            EventList,
            "/events",
            task=task,
            dataset=dataset,
            level=level,
            type=kind,
            code=code,
            run=run,
            since=since,
            until=until,
            limit=limit,
            cursor=cursor,
        )

    def table_commits(self, name: str) -> Iterator[CommitShown]:
        """The commits of a dataset's table, the newest first, as far as its snapshots go back."""
        return self._all(CommitShown, f"/datasets/{quote(name, '')}/commits")


class CapturesRoutes(RouteGroup):
    """Routes of `captures`."""

    def captures(self) -> Iterator[CaptureShown]:
        """The captures of the project by name."""
        return self._all(CaptureShown, "/captures")

    def capture(self, task: str) -> CaptureShown:
        """One capture."""
        return self._get(CaptureShown, f"/captures/{quote(task, '')}")

    def captured_tables(
        self,
        task: str,
        *,
        table_state: Literal[
            "queued",
            "loading",
            "caching changes",
            "applying cached changes",
            "running",
            "loaded",
            "error",
        ]
        | None = None,
    ) -> Iterator[CapturedTableShown]:
        """The tables of a capture by name, or those in one state."""
        return self._all(
            CapturedTableShown, f"/captures/{quote(task, '')}/tables", state=table_state
        )


class StreamsRoutes(RouteGroup):
    """Routes of `streams`."""

    def streams(self, *, task: str | None = None) -> Iterator[StreamShown]:
        """The streams of the project by name; a task that has read nothing yet is one of them."""
        return self._all(StreamShown, "/streams", task=task)

    def stream(self, task: str, table: str) -> StreamShown:
        """One stream."""
        return self._get(StreamShown, f"/streams/{quote(task, '')}/{quote(table, '')}")

    def positions(self, task: str, table: str) -> Iterator[StreamPlace]:
        """The partitions or shards of a stream, each with the next position to read."""
        return self._all(StreamPlace, f"/streams/{quote(task, '')}/{quote(table, '')}/positions")


class ClustersRoutes(RouteGroup):
    """Routes of `clusters`."""

    def clusters(self) -> Iterator[ClusterShown]:
        """The clusters that the project names, and those that ever had a node, by name."""
        return self._all(ClusterShown, "/clusters")

    def cluster(self, name: str) -> ClusterShown:
        """One cluster."""
        return self._get(ClusterShown, f"/clusters/{quote(name, '')}")

    def nodes(self, name: str, *, gone: bool = False) -> Iterator[NodeShown]:
        """The nodes of a cluster by name."""
        return self._all(NodeShown, f"/clusters/{quote(name, '')}/nodes", gone=gone)

    def units(
        self,
        name: str,
        *,
        node: str | None = None,
        task: str | None = None,
        unit_state: Literal["owned", "moving", "unowned", "stopped"] | None = None,
    ) -> Iterator[UnitShown]:
        """The units of work of a cluster by task and name."""
        return self._all(
            UnitShown, f"/clusters/{quote(name, '')}/units", node=node, task=task, state=unit_state
        )


class DocumentsRoutes(RouteGroup):
    """Routes of `documents`."""

    def documents(
        self, *, folder: str | None = None, place: DocumentPlace = DocumentPlace.PROJECT
    ) -> Iterator[DocumentShown]:
        """The documents of the project by path."""
        return self._all(DocumentShown, "/documents", folder=folder, place=place)

    def document(self, path: str, *, place: DocumentPlace = DocumentPlace.PROJECT) -> str:
        """The text of one document; its version is the header `ETag`."""
        return self._get(str, f"/documents/{quote(path, '/')}", place=place)

    def put_document(
        self,
        path: str,
        content: str,
        *,
        place: DocumentPlace = DocumentPlace.PROJECT,
        dry_run: bool = False,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> DocumentChanged:
        """Replace a document, with its version as `If-Match`; or make one, with `If-None-Match: *`."""
        return self._ask(
            DocumentChanged,
            "PUT",
            f"/documents/{quote(path, '/')}",
            content,
            {"if-match": if_match, "if-none-match": if_none_match},
            place=place,
            dry_run=dry_run,
        )

    def delete_document(
        self,
        path: str,
        *,
        place: DocumentPlace = DocumentPlace.PROJECT,
        dry_run: bool = False,
        if_match: str | None = None,
    ) -> DocumentChanged:
        """Remove a document, with its version as `If-Match`."""
        return self._ask(
            DocumentChanged,
            "DELETE",
            f"/documents/{quote(path, '/')}",
            None,
            {"if-match": if_match},
            place=place,
            dry_run=dry_run,
        )


class LineageRoutes(RouteGroup):
    """Routes of `lineage`."""

    def lineage(
        self, subject: str, *, impact: bool = False, steps: int | None = None
    ) -> LineageShown:
        """The lineage of a dataset (`schema.view`) or of a column of it."""
        return self._get(LineageShown, f"/lineage/{quote(subject, '')}", impact=impact, steps=steps)


class MetricsRoutes(RouteGroup):
    """Routes of `metrics`."""

    def metrics(self) -> str:
        """Figures of each table, open conditions, failing channels, and of the server's process."""
        return self._get(str, "/metrics")


class QueriesRoutes(RouteGroup):
    """Routes of `queries`."""

    def query(self, asked: QueryAsked, *, accept: str = "*/*") -> QueryAnswered:
        """Answer one statement over the newest commits; without Spark, so that it ends soon."""
        return self._ask(QueryAnswered, "POST", "/queries", asked, {"accept": accept})

    def explain(self, asked: StatementAsked) -> QueryPlanned:
        """Tell which engine answers a statement, why, and which columns of which views it reads."""
        return self._ask(QueryPlanned, "POST", "/queries/explain", asked)

    def queries(self) -> QueriesShown:
        """The running queries of the person who asks."""
        return self._get(QueriesShown, "/queries")

    def cancel_query(self, name: str) -> None:
        """Cancel a running query of the person who asks: its own request is answered with an error."""
        self._client.call("DELETE", f"/queries/{quote(name, '')}")


class ViewsRoutes(RouteGroup):
    """Routes of `views`."""

    def views(self, *, name: str = "*") -> Iterator[ViewShown]:
        """The views that you may query, by name, as of the newest look at the tables."""
        return self._all(ViewShown, "/views", name=name)


class TransformsRoutes(RouteGroup):
    """Routes of `transforms`."""

    def transforms(self) -> Iterator[TransformShown]:
        """The tables that queries keep, by task and name."""
        return self._all(TransformShown, "/transforms")

    def transform(self, task: str, dataset: str) -> TransformDetails:
        """One table that a query keeps: `dataset` is `schema.view`."""
        return self._get(TransformDetails, f"/transforms/{quote(task, '')}/{quote(dataset, '')}")

    def step_rows(
        self, task: str, dataset: str, step: int, *, limit: int = 20, seconds: float = 60.0
    ) -> FlowStepRows:
        """Some rows of a step as the viewer may read its tables, how many it has, and the seconds."""
        return self._get(
            FlowStepRows,
            f"/transforms/{quote(task, '')}/{quote(dataset, '')}/steps/{step}/rows",
            limit=limit,
            seconds=seconds,
        )

    def check_flow(self, asked: FlowDraft) -> FlowChecked:
        """The columns of each step of a draft, and what is wrong with it."""
        return self._ask(FlowChecked, "POST", "/flows/check", asked)

    def preview_flow(self, asked: FlowDraft, *, step: int, limit: int = 20) -> FlowStepRows:
        """Some rows of a step of a draft as the viewer may read its tables, and how many it has."""
        return self._ask(FlowStepRows, "POST", "/flows/preview", asked, step=step, limit=limit)


class ServerRoutes:
    """All groups of routes of a server."""

    def __init__(self, client: PolynyaClient) -> None:
        self.access = AccessRoutes(client)
        self.project = ProjectRoutes(client)
        self.datasets = DatasetsRoutes(client)
        self.plans = PlansRoutes(client)
        self.records = RecordsRoutes(client)
        self.runs = RunsRoutes(client)
        self.captures = CapturesRoutes(client)
        self.streams = StreamsRoutes(client)
        self.clusters = ClustersRoutes(client)
        self.documents = DocumentsRoutes(client)
        self.lineage = LineageRoutes(client)
        self.metrics = MetricsRoutes(client)
        self.queries = QueriesRoutes(client)
        self.views = ViewsRoutes(client)
        self.transforms = TransformsRoutes(client)
        self.actions = ActionsRoutes(client)
        self.automations = AutomationsRoutes(client)
        self.notifications = NotificationsRoutes(client)
        self.operations = OperationsRoutes(client)
