"""A schema of Redshift or Databricks in memory, and the two HTTP APIs over it, at loopback.

It knows the few statements that a mirror has, each parsed in the dialect of the warehouse, and
refuses what the documents of the warehouse say that it refuses.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import sqlglot
from sqlglot import exp

from polynya.mirror.statements import MirrorSession
from polynya.model.error_catalogue.mirrors import STATEMENT_FAILED


class RefusedStatement(Exception):
    """What a warehouse answers to a statement that it does not carry out."""


@cache
def _parsed(sql: str, dialect: str) -> exp.Expression:
    (tree,) = sqlglot.parse(sql, read=dialect)
    assert tree is not None
    return tree


@dataclass
class WarehouseSchema:
    """The views of a schema by name: their text and comment. `before` sees each statement."""

    dialect: str
    views: dict[str, list[str]] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    before: Callable[[str], None] = lambda _: None

    def run(self, sql: str) -> list[list[str | None]]:
        """Carry out a statement; the rows of a query."""
        self.before(sql)
        tree = _parsed(sql, self.dialect)
        if isinstance(tree, exp.Select):
            return self._listed()
        self.statements.append(sql)
        match tree:
            case exp.Create(kind="VIEW"):
                self._create(tree)
            case exp.Comment():
                self._one(tree.this.name)[1] = tree.expression.name
            case exp.Alter() if isinstance(tree.args["actions"][0], exp.AlterRename):
                new = tree.args["actions"][0].this.name
                self._free(new)
                self._one(tree.this.name)
                self.views[new] = self.views.pop(tree.this.name)
            case exp.Alter(kind="VIEW"):
                self._one(tree.this.name)[0] = tree.args["actions"][0].sql(self.dialect)
            case exp.Drop(kind="VIEW"):
                self.views.pop(tree.args["tables"][0].name, None)
            case exp.Command():
                assert sql.startswith("REFRESH FOREIGN TABLE `"), sql
            case _:
                raise AssertionError(sql)
        return []

    def _listed(self) -> list[list[str | None]]:
        view, table = ("v", "r") if self.dialect == "redshift" else ("VIEW", "MANAGED")
        views = [[name, view, comment or None] for name, (_, comment) in self.views.items()]
        return [*views, *([name, table, comment] for name, comment in self.tables.items())]

    def _create(self, tree: exp.Create) -> None:
        name, text = tree.this.name, tree.expression.sql(self.dialect)
        said = tree.find(exp.SchemaCommentProperty)
        if not tree.args["replace"]:
            self._free(name)
            self.views[name] = [text, "" if said is None else said.this.name]
            return
        assert self.dialect == "redshift", "in Databricks grants would be lost"
        there = self._one(name)
        if _columns(there[0]) != _columns(text):
            raise RefusedStatement("cannot change the columns of a view")
        there[0] = text

    def _one(self, name: str) -> list[str]:
        if name not in self.views:
            raise RefusedStatement(f'relation "{name}" does not exist')
        return self.views[name]

    def _free(self, name: str) -> None:
        if name in self.views or name in self.tables:
            raise RefusedStatement(f'relation "{name}" already exists')


def _columns(text: str) -> list[str]:
    tree = _parsed(text, "redshift")
    assert isinstance(tree, exp.Query)
    return tree.named_selects


class WarehouseSession(MirrorSession):
    """A session with a schema in memory, without HTTP."""

    def __init__(self, schema: WarehouseSchema) -> None:
        self._schema = schema

    def objects(self) -> list[tuple[str, str, str]]:
        return [
            (str(name), "VIEW" if kind in {"v", "VIEW"} else "TABLE", comment or "")
            for name, kind, comment in self._schema.run("SELECT 1")
        ]

    def execute(self, sql: str) -> None:
        try:
            self._schema.run(sql)
        except RefusedStatement as error:
            raise STATEMENT_FAILED(where="sales", statement=sql[:40], why=str(error)) from None

    def metadata_of(self, table: str) -> str | None:
        raise AssertionError(f"{table}: the mirror has no tables here")

    def close(self) -> None:
        """Nothing to end."""


@dataclass
class WarehouseApi:
    """An HTTP API over a schema. `answers` replace the next answers: status and body.

    Each statement is running when it is first asked for; results come in pages of one row.
    """

    schema: WarehouseSchema
    url: str = ""
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    answers: list[tuple[int, Any]] = field(default_factory=list)
    never_ends: bool = False
    _done: list[tuple[str | None, list[list[str | None]]]] = field(default_factory=list)

    def taken(self, sql: str) -> int:
        """Carry a statement out; its number."""
        try:
            self._done.append((None, self.schema.run(sql)))
        except RefusedStatement as error:
            self._done.append((str(error), []))
        return len(self._done) - 1

    def redshift(self, operation: str, asked: dict[str, Any]) -> Any:
        """An answer of the Redshift Data API."""
        if operation == "ExecuteStatement":
            return {"Id": f"{self.taken(asked['Sql'])}"}
        error, rows = self._done[int(asked["Id"])]
        if operation == "DescribeStatement":
            seen = sum("Describe" in name and body == asked for name, _, body in self.requests)
            state = "STARTED" if seen == 1 or self.never_ends else "FAILED" if error else "FINISHED"
            return {"Id": asked["Id"], "Status": state, "Error": error or ""}
        if operation == "GetStatementResult":
            number = int(asked.get("NextToken", 0))
            more = {"NextToken": f"{number + 1}"} if number + 1 < len(rows) else {}
            page = [
                [{"isNull": True} if one is None else {"stringValue": one} for one in row]
                for row in rows[number : number + 1]
            ]
            return {"Records": page, "ColumnMetadata": [], **more}
        assert operation == "CancelStatement"
        return {"Status": True}

    def databricks(self, path: str, asked: Any) -> Any:
        """An answer of the SQL Statement Execution API."""
        if path == "/oidc/v1/token":
            return {"access_token": "short-lived", "token_type": "Bearer", "expires_in": 3600}
        tail = path.removeprefix("/api/2.0/sql/statements").strip("/").split("/")
        if tail == [""]:
            number = self.taken(asked["statement"])
            return {"statement_id": f"01ef-{number}", "status": {"state": "PENDING"}}
        number = int(tail[0].removeprefix("01ef-"))
        error, rows = self._done[number]
        if tail[1:] == ["cancel"]:
            return {}
        if tail[1:]:
            return self._chunk(rows, int(tail[-1]))
        if self.never_ends:
            return {"statement_id": tail[0], "status": {"state": "RUNNING"}}
        if error:
            said = {"error_code": "BAD_REQUEST", "message": error}
            return {"statement_id": tail[0], "status": {"state": "FAILED", "error": said}}
        state = {"statement_id": tail[0], "status": {"state": "SUCCEEDED"}}
        return {**state, "result": self._chunk(rows, 0)}

    @staticmethod
    def _chunk(rows: list[list[str | None]], number: int) -> dict[str, Any]:
        more = {"next_chunk_index": number + 1} if number + 1 < len(rows) else {}
        return {"chunk_index": number, "data_array": rows[number : number + 1], **more}


@contextmanager
def warehouse_api(schema: WarehouseSchema) -> Iterator[WarehouseApi]:
    """The API of the warehouse at a port of this machine."""
    api = WarehouseApi(schema)

    class Handler(BaseHTTPRequestHandler):
        """One request."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            raw = self.rfile.read(length)
            form = self.headers.get("Content-Type", "").startswith("application/x-www-form")
            self._answer(raw.decode() if form else json.loads(raw or b"{}"))

        def do_GET(self) -> None:
            self._answer(None)

        def _answer(self, asked: Any) -> None:
            name = self.headers.get("X-Amz-Target", "").removeprefix("RedshiftData.") or self.path
            api.requests.append((name, dict(self.headers), asked))
            status, body = 200, None
            if api.answers:
                status, body = api.answers.pop(0)
            elif schema.dialect == "redshift":
                body = api.redshift(name, asked)
            else:
                body = api.databricks(self.path, asked)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            kind = "x-amz-json-1.1" if schema.dialect == "redshift" else "json"
            self.send_header("Content-Type", f"application/{kind}")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
