"""A REST catalog on this machine: Iceberg's own handlers of its protocol, in the JVM of the tests.

Iceberg has the server's part of the protocol as a class (`CatalogHandlers`) and no server. This one
keeps tables and views in the JDBC catalog of the project, as the session had it.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote_plus, urlparse

from polynya.lake.spark.api import Py4JJavaError, SparkSession
from polynya.lake.spark.session import CATALOG

_FOLDER = "/v1/{prefix}/namespaces"
_ENDPOINTS = [
    f"GET {_FOLDER}", f"POST {_FOLDER}",
    f"GET {_FOLDER}/{{namespace}}", f"DELETE {_FOLDER}/{{namespace}}",
    *(f"{method} {_FOLDER}/{{namespace}}/{kind}s" for kind in ("table", "view")
      for method in ("GET", "POST")),
    *(f"{method} {_FOLDER}/{{namespace}}/{kind}s/{{{kind}}}" for kind in ("table", "view")
      for method in ("GET", "POST", "DELETE")),
]  # fmt: skip
#: What a client makes an exception of its own from; everything else is an error of the server.
_STATUS = {
    "NoSuchNamespaceException": 404, "NoSuchTableException": 404, "NoSuchViewException": 404,
    "AlreadyExistsException": 409, "CommitFailedException": 409, "NamespaceNotEmptyException": 409,
    "ValidationException": 400, "BadRequestException": 400, "IllegalArgumentException": 400,
    "CommitStateUnknownException": 500,
}  # fmt: skip


def behind_rest(spark: SparkSession) -> None:
    """Let a session that has not asked for its catalog yet reach it through a REST server."""
    prefix = f"spark.sql.catalog.{CATALOG}."
    jvm: Any = spark._jvm
    of_jdbc = jvm.java.util.HashMap()
    for name in ("uri", "warehouse", "jdbc.schema-version"):
        of_jdbc.put(name, spark.conf.get(prefix + name))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Requests)
    server.daemon_threads = True
    server.catalog = _Catalog(spark, of_jdbc)  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    spark.conf.set(f"{prefix}type", "rest")
    spark.conf.set(f"{prefix}uri", f"http://127.0.0.1:{server.server_port}")


class _Catalog:
    """Answers requests by the handlers of Iceberg, in JSON."""

    def __init__(self, spark: SparkSession, properties: Any) -> None:
        jvm: Any = spark._jvm
        context: Any = spark.sparkContext
        self._jvm = jvm
        iceberg, configuration = jvm.org.apache.iceberg, context._jsc.hadoopConfiguration()
        backend = "org.apache.iceberg.jdbc.JdbcCatalog"
        self._tables = iceberg.CatalogUtil.loadCatalog(
            backend, "rest_backend", properties, configuration
        )
        self._handlers = iceberg.rest.CatalogHandlers
        # It is not public, and knows how the protocol writes everything.
        loaded = jvm.java.lang.Class.forName("org.apache.iceberg.rest.RESTObjectMapper")
        no_types = context._gateway.new_array(jvm.java.lang.Class, 0)
        nothing = context._gateway.new_array(jvm.java.lang.Object, 0)
        mapper = loaded.getDeclaredMethod("mapper", no_types)
        mapper.setAccessible(True)
        self._json = mapper.invoke(None, nothing)

    def answer(self, method: str, path: list[str], body: str) -> str | None:
        """The answer to a request, None where there is nothing to say. Raises Py4JJavaError."""
        found = self._answer(method, path, body)
        return None if found is None else str(self._json.writeValueAsString(found))

    def _answer(self, method: str, path: list[str], body: str) -> Any:
        catalog, of = self._tables, self._handlers
        if not path:
            if method == "POST":
                return of.createNamespace(catalog, self._asked("CreateNamespaceRequest", body))
            return of.listNamespaces(catalog, self._namespace([]))
        namespace, kind, *name = self._namespace(path[:1]), *(path[1:] or [""])
        if not kind:
            drop = method == "DELETE"
            return (of.dropNamespace if drop else of.loadNamespace)(catalog, namespace)
        what = kind.removesuffix("s").capitalize()
        if not name:
            if method == "POST":
                asked = self._asked(f"Create{what}Request", body)
                return getattr(of, f"create{what}")(catalog, namespace, asked)
            return getattr(of, f"list{what}s")(catalog, namespace)
        named = self._jvm.org.apache.iceberg.catalog.TableIdentifier.of(namespace, name[0])
        if method == "POST":
            asked = self._asked("UpdateTableRequest", body)
            return getattr(of, f"update{what}")(catalog, named, asked)
        if method == "DELETE":
            return getattr(of, f"drop{what}")(catalog, named)
        return of.loadView(catalog, named) if what == "View" else self._loaded(named)

    def _loaded(self, named: Any) -> Any:
        rest = self._jvm.org.apache.iceberg.rest
        all_snapshots = getattr(rest, "RESTCatalogProperties$SnapshotMode").ALL
        return self._handlers.loadTable(self._tables, named, all_snapshots)

    def _namespace(self, levels: list[str]) -> Any:
        of = self._jvm.org.apache.iceberg.rest.RESTUtil.namespaceFromQueryParam
        return of(levels[0]) if levels else self._jvm.org.apache.iceberg.catalog.Namespace.empty()

    def _asked(self, kind: str, body: str) -> Any:
        name = f"org.apache.iceberg.rest.requests.{kind}"
        return self._json.readValue(body, self._jvm.java.lang.Class.forName(name))


class _Requests(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """See `_Catalog`."""
        self._serve()

    do_POST = do_DELETE = do_GET

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        parts = [unquote_plus(part) for part in urlparse(self.path).path.split("/") if part]
        if parts == ["v1", "config"]:
            self._say(200, json.dumps({"defaults": {}, "overrides": {}, "endpoints": _ENDPOINTS}))
            return
        try:
            found = self.server.catalog.answer(self.command, parts[2:], body)  # type: ignore[attr-defined]
        except Py4JJavaError as error:
            kind = str(error.java_exception.getClass().getSimpleName())
            status = _STATUS.get(kind, 500)
            said = str(error.java_exception.getMessage())
            told = {"error": {"message": said, "type": kind, "code": status}}
            self._say(status, json.dumps(told))
            return
        self._say(200 if found is not None else 204, found or "")

    def _say(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
