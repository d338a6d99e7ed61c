"""A target of mirrors in memory, and mirrors over datasets that exist in name only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from polynya.lake.fold.shape import Shape
from polynya.lake.warehouse.readers import Readers
from polynya.mirror.plan import MirroredDataset, MirrorOrigin
from polynya.mirror.rounds import MirrorRounds, MirrorSource
from polynya.mirror.state import SourceCommit
from polynya.mirror.statements import MirrorSession
from polynya.model.config.aws import AwsAccess
from polynya.model.config.mirror import ConnectedMirror, MirrorTask, mirror_of
from polynya.model.config.server_connection import (
    DatabricksConnection,
    RedshiftConnection,
    SnowflakeConnection,
)
from polynya.model.config.target import ResolvedTarget
from polynya.model.config.task import StorageTask, resolved
from polynya.model.error_catalogue.mirrors import STATEMENT_FAILED, TARGET_UNREACHABLE
from polynya.model.names import S3Location
from polynya.model.types import parse_type
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock

STARTED = datetime.fromisoformat("2026-06-01T00:00:00+00:00")
ORIGIN = MirrorOrigin("shop", "prod", "sales_snowflake")
SNOWFLAKE: dict[str, Any] = {
    "connection": "analytics_sf", "database": "LAKE", "schema": "SHOP", "warehouse": "LOAD_XS",
    "external_volume": "LAKE_VOL", "catalog_integration": "GLUE_INT",
}  # fmt: skip
TARGET = ResolvedTarget(
    name="prod", landing=Path("/landing"), warehouse=S3Location("acme-lake", "tables"),
    catalog_type="glue", catalog_uri="", aws=AwsAccess(region="eu-central-1"),
)  # fmt: skip
ACCOUNT = SnowflakeConnection.model_validate(
    {"type": "snowflake", "account": "acme-one", "user": "polynya", "password": "${env:PW}"}
)
REDSHIFT: dict[str, Any] = {"connection": "lake_rs", "database": "dev", "schema": "shop"}
DATABRICKS: dict[str, Any] = {
    "connection": "lake_dbx", "warehouse_id": "1a2b", "catalog": "main", "schema": "shop",
    "foreign_catalog": "glue",
}  # fmt: skip
ACCOUNTS = {
    "snowflake": ACCOUNT,
    "redshift": RedshiftConnection.model_validate({"type": "redshift", "workgroup": "lake"}),
    "databricks": DatabricksConnection.model_validate(
        {"type": "databricks", "url": "https://dbc.example.com", "token": "${env:TOKEN}"}
    ),
}


def storage(*names: str, **more: Any) -> StorageTask:
    """A task with datasets of these names."""
    return StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1", "kind": "storage", "name": "shop", "schema": "shop",
            "landing": {"path": "shop", "format": "json"},
            "datasets": [{"name": name, "keys": ["id"], "history": True} for name in names],
            **more,
        }
    )  # fmt: skip


def mirror(source: StorageTask | None = None, **more: Any) -> ConnectedMirror:
    """The mirror of the page; `more` are its settings."""
    said = {
        "apiVersion": "polynya/v1", "kind": "mirror", "name": "sales_snowflake", "from": "shop",
        "target": {"snowflake": SNOWFLAKE}, **more,
    }  # fmt: skip
    task = MirrorTask.model_validate(said)
    account = ACCOUNTS[task.target.family]
    return mirror_of(task, account, source or storage("users"), "shop")


def shown(
    source: StorageTask, name: str, /, format_version: int = 2, **columns: str
) -> MirroredDataset:
    """A dataset of a task with these columns, and `id`."""
    (dataset,) = [resolved(source, one) for one in source.datasets if one.name == name]
    types = {"id": "bigint", **(columns or {"name": "string"})}
    kinds = {column: parse_type(text) for column, text in types.items()}
    shape = Shape(keys=("id",), columns=kinds, history=True)
    return MirroredDataset(dataset, shape, format_version)


def commit(number: int, at: datetime = STARTED, *, applied: int | None = None) -> SourceCommit:
    """The commit of this number; each is an apply unless `applied` names an earlier one."""
    last = number if applied is None else applied
    return SourceCommit(f"s3://lake/{number}.metadata.json", number, at, f"apply {last}")


_STATEMENT = re.compile(
    r"(CREATE|CREATE OR REPLACE|ALTER|DROP) (?:SECURE )?(ICEBERG TABLE|VIEW)(?: IF EXISTS)? "
    r'"LAKE"\."SHOP"\."((?:[^"]|"")+)"(.*)',
    re.DOTALL,
)
_COMMENT = re.compile(r" COMMENT = '((?:[^']|'')*)'")


@dataclass
class FakeTarget:
    """The schema of a target. `broken` says whether a statement is refused; `down`: no session."""

    objects: dict[str, tuple[str, str]] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    shows: dict[str, str] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    broken: Callable[[str], bool] = lambda _: False
    down: bool = False
    sessions: int = 0

    def connect(self) -> MirrorSession:
        """A session."""
        if self.down:
            raise TARGET_UNREACHABLE(where="sales_snowflake", why="no route to host")
        self.sessions += 1
        return FakeSession(self)


class FakeSession(MirrorSession):
    """A session with a `FakeTarget`."""

    def __init__(self, target: FakeTarget) -> None:
        self._target = target

    def objects(self) -> list[tuple[str, str, str]]:
        return [(name, kind, comment) for name, (kind, comment) in self._target.objects.items()]

    def execute(self, sql: str) -> None:
        target = self._target
        if target.broken(sql):
            raise STATEMENT_FAILED(where="sales_snowflake", statement=sql[:40], why="not allowed")
        target.statements.append(sql)
        match = _STATEMENT.fullmatch(sql)
        assert match is not None, sql
        verb, what, quoted, rest = match.groups()
        name, kind = quoted.replace('""', '"'), "TABLE" if "TABLE" in what else "VIEW"
        if verb == "DROP":
            target.objects.pop(name, None)
            return
        if verb == "CREATE":
            assert name not in target.objects, f"{name} exists"
        if verb != "ALTER":
            comment = _COMMENT.search(rest)
            assert comment is not None
            said = comment[1].replace("''", "'").replace("\\\\", "\\")
            target.objects[name] = (kind, said)
        if kind == "TABLE":
            target.shows[name] = target.newest.get(name, "")

    def metadata_of(self, table: str) -> str | None:
        return self._target.shows.get(table) or None

    def close(self) -> None:
        """Nothing to end."""


class Rounds:
    """A mirror with a fake target, whose process may be started again with `again`."""

    def __init__(
        self,
        folder: Path,
        task: ConnectedMirror,
        connect: Callable[[], MirrorSession] | None = None,
    ) -> None:
        self.folder, self.task = folder, task
        self.target, self.clock = FakeTarget(), FakeClock(STARTED)
        self.connect = connect or self.target.connect
        self.events: list[Event] = []
        self.store = LocalObjectStore(folder)
        self.readers = Readers(lambda: self.store, self.clock)
        self.commits: dict[str, SourceCommit] = {}
        self.again()

    def again(self) -> None:
        """Start the mirror anew, as after a kill."""
        self.rounds = MirrorRounds(
            self.task, ORIGIN, connect=self.connect, store=self.store,
            readers=self.readers, clock=self.clock, random=lambda: 0.5,
            snapshot_of=self.commits.get, sink=self.events.append,
        )  # fmt: skip

    def step(self, *sources: tuple[MirroredDataset, SourceCommit], complete: bool = True):
        """A round over these datasets and commits."""
        for one, newest in sources:
            name = one.dataset.relations.internal_table.upper()
            self.target.newest[name] = newest.metadata
            self.commits[newest.metadata] = newest
        found: Sequence[MirrorSource] = [MirrorSource(one, newest) for one, newest in sources]
        return self.rounds.step(found, complete=complete)

    def later(self, **time: float) -> None:
        """Let time pass."""
        self.clock.advance(timedelta(**time))
