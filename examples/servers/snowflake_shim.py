"""What the stand-in for Snowflake runs: fakesnow, and the statements that it does not know.

It runs in the environment of `requirements/snowflake.txt`, never in the project's:
`python snowflake_shim.py PORT CATALOG`, where CATALOG is the SQLite file of an Iceberg catalog.

External volumes, catalog integrations, roles and grants are only remembered. An external Iceberg
table is a view over `iceberg_scan` of the metadata file that its catalog named when the table was
made or refreshed: so it shows a new commit after `ALTER ICEBERG TABLE … REFRESH`, as in Snowflake.
"""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
import uvicorn
from fakesnow import arrow
from fakesnow.server import query_request, routes, sessions, to_token
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import override

_NAME: Final = r'(?:"(?:[^"]|"")+"|[\w$]+)'
_PATH: Final = rf"({_NAME}(?:\.{_NAME}){{0,2}})"
_STRING: Final = r"'((?:[^']|'')*)'"
_IF_NOT: Final = r"(?:\s+IF\s+NOT\s+EXISTS)?"
_SHOWN: Final = 10_000


class RefusedError(Exception):
    """The service would answer a statement with this text."""


@dataclass
class IcebergTable:
    """An external table: what its statement said, and the metadata file that it reads."""

    options: dict[str, str]
    metadata: str


@dataclass
class Account:
    """What the stand-in remembers; objects by `(database, schema, name)`."""

    catalog: Path
    volumes: set[str] = field(default_factory=set)
    integrations: set[str] = field(default_factory=set)
    tables: dict[tuple[str, str, str], IcebergTable] = field(default_factory=dict)
    comments: dict[tuple[str, str, str], str] = field(default_factory=dict)
    #: Statements as they came, for tests.
    statements: list[str] = field(default_factory=list)

    def current_metadata(self, options: dict[str, str], given: str | None) -> str:
        """The metadata file that a table reads after it was made or refreshed."""
        path = given or options.get("METADATA_FILE_PATH")
        if path is not None:
            return path
        names = (options.get("CATALOG_NAMESPACE", ""), options.get("CATALOG_TABLE_NAME", ""))
        with closing(sqlite3.connect(f"file:{self.catalog}?mode=ro", uri=True)) as catalog:
            found = catalog.execute(
                "SELECT metadata_location FROM iceberg_tables "
                "WHERE table_namespace = ? AND table_name = ?",
                names,
            ).fetchone()
        if found is None:
            raise RefusedError(f"Iceberg table {'.'.join(names)} does not exist in the catalog.")
        return str(found[0])


class Shim:
    """Carries out the statements that fakesnow does not know, each as one that it does."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: list[tuple[re.Pattern[str], Callable[..., str]]] = [
            (re.compile(text, re.IGNORECASE | re.DOTALL), act)
            for text, act in (
                (rf"CREATE(?:\s+OR\s+REPLACE)?\s+EXTERNAL\s+VOLUME{_IF_NOT}\s+({_NAME})(?:\s.*)?",
                 self._volume),
                (rf"CREATE(?:\s+OR\s+REPLACE)?\s+CATALOG\s+INTEGRATION{_IF_NOT}\s+({_NAME})(?:\s.*)?",
                 self._integration),
                (r"(?:GRANT|REVOKE|CREATE\s+ROLE|CREATE\s+USER|ALTER\s+USER)\b.*", self._nothing),
                (r"USE\s+(?:ROLE|WAREHOUSE)\b.*", self._nothing),
                ((rf"CREATE(\s+OR\s+REPLACE)?\s+ICEBERG\s+TABLE{_IF_NOT}\s+{_PATH}\s+"
                 r"(EXTERNAL_VOLUME\b.*)"), self._create_table),
                (rf"ALTER\s+ICEBERG\s+TABLE\s+{_PATH}\s+REFRESH(?:\s+{_STRING})?", self._refresh),
                (rf"DROP\s+ICEBERG\s+TABLE(\s+IF\s+EXISTS)?\s+{_PATH}", self._drop_table),
                ((rf"CREATE(?:\s+OR\s+REPLACE)?\s+(?:SECURE\s+)?VIEW\s+{_PATH}\s+"
                 rf"COMMENT\s*=\s*{_STRING}\s+AS\s+(.*)"), self._create_view),
                (rf"DROP\s+VIEW(\s+IF\s+EXISTS)?\s+{_PATH}", self._drop_view),
                (rf"SHOW\s+OBJECTS\s+IN\s+SCHEMA\s+{_PATH}", self._objects),
                (rf"SELECT\s+SYSTEM\$GET_ICEBERG_TABLE_INFORMATION\({_STRING}\)(?:\s+AS\s+\w+)?",
                 self._information),
            )
        ]  # fmt: skip

    def statement(self, session: Any, text: str) -> str:
        """What fakesnow is to carry out for a statement. Raises RefusedError."""
        self._account.statements.append(text)
        for pattern, act in self._known:
            match = pattern.fullmatch(text.strip().rstrip(";"))
            if match is not None:
                return act(session, *match.groups())
        return text

    def _nothing(self, _: Any) -> str:
        return _done("Statement executed successfully.")

    def _volume(self, _: Any, name: str) -> str:
        self._account.volumes.add(_plain(name))
        return _done(f"External volume {_plain(name)} successfully created.")

    def _integration(self, _: Any, name: str) -> str:
        self._account.integrations.add(_plain(name))
        return _done(f"Integration {_plain(name)} successfully created.")

    def _create_table(self, session: Any, replace: str | None, path: str, rest: str) -> str:
        options = {
            key.upper(): value.replace("''", "'") if quoted else bare
            for key, quoted, value, bare in re.findall(
                r"(\w+)\s*=\s*(?:(')((?:[^']|'')*)'|(\w+))", rest
            )
        }
        place = _place(session, path)
        for needed, known in (
            ("EXTERNAL_VOLUME", self._account.volumes), ("CATALOG", self._account.integrations),
        ):  # fmt: skip
            if options.get(needed) not in known:
                raise RefusedError(f"{needed} '{options.get(needed)}' does not exist.")
        if place in self._account.tables and not replace:
            return _done(f"{place[2]} already exists, statement succeeded.")
        self._show(session, place, self._account.current_metadata(options, None), options)
        self._account.comments[place] = options.get("COMMENT", "")
        return _done(f"Table {place[2]} successfully created.")

    def _refresh(self, session: Any, path: str, given: str | None) -> str:
        place, table = self._table(session, path)
        options = table.options
        self._show(session, place, self._account.current_metadata(options, given), options)
        return _done("Statement executed successfully.")

    def _show(
        self, session: Any, place: tuple[str, str, str], metadata: str, options: dict[str, str]
    ) -> None:
        if not Path(metadata.removeprefix("file:")).is_file():
            raise RefusedError(f"metadata file {metadata} does not exist")
        database = session._duck_conn
        for package in (duckdb_extension_avro, duckdb_extension_iceberg):
            folder = next((Path(package.__path__[0]) / "extensions").iterdir())
            database.execute(f"LOAD '{next(folder.glob('*.duckdb_extension'))}'")
        literal = "'" + metadata.replace("'", "''") + "'"
        name = ".".join(_quoted(part) for part in place)
        database.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM iceberg_scan({literal})")
        self._account.tables[place] = IcebergTable(options, metadata)

    def _drop_table(self, session: Any, lenient: str | None, path: str) -> str:
        place = _place(session, path)
        if place not in self._account.tables:
            if lenient:
                return _done("Drop statement executed successfully.")
            raise RefusedError(f"Table '{path}' does not exist or not authorized.")
        name = ".".join(_quoted(part) for part in place)
        session._duck_conn.execute(f"DROP VIEW {name}")
        del self._account.tables[place]
        self._account.comments.pop(place, None)
        return _done(f"{place[2]} successfully dropped.")

    def _create_view(self, session: Any, path: str, comment: str, query: str) -> str:
        place = _place(session, path)
        if place in self._account.tables:
            raise RefusedError(f"Object '{path}' already exists as TABLE")
        self._account.comments[place] = comment.replace("''", "'")
        return f"CREATE OR REPLACE VIEW {path} AS {query}"

    def _drop_view(self, session: Any, lenient: str | None, path: str) -> str:
        self._account.comments.pop(_place(session, path), None)
        return f"DROP VIEW{lenient or ''} {path}"

    def _objects(self, session: Any, path: str) -> str:
        database, schema = _parts(path) if "." in path else (session.database, *_parts(path))
        rows = session._duck_conn.execute(
            "SELECT table_name, table_type FROM system.information_schema.tables "
            "WHERE table_catalog = ? AND table_schema = ? ORDER BY 1",
            [database, schema],
        ).fetchall()
        shown = []
        for name, kind in rows:
            place = (database, schema, name)
            of = "TABLE" if place in self._account.tables or kind == "BASE TABLE" else "VIEW"
            comment = self._account.comments.get(place, "")
            shown.append((name, of, comment))
        names = ("name", "kind", "comment")
        if not shown:
            empty = ", ".join(f"'' AS \"{name}\"" for name in names)
            return f"SELECT {empty} FROM (SELECT 1 AS one) WHERE one = 0"
        return " UNION ALL ".join(
            "SELECT " + ", ".join(
                f'{_literal(value)} AS "{name}"' for value, name in zip(row, names, strict=True)
            )
            for row in shown[:_SHOWN]
        )  # fmt: skip

    def _information(self, session: Any, name: str) -> str:
        _, table = self._table(session, name.replace("''", "'"))
        answer = {"metadataLocation": table.metadata, "status": "success"}
        return f'SELECT {_literal(json.dumps(answer))} AS "information"'

    def _table(self, session: Any, path: str) -> tuple[tuple[str, str, str], IcebergTable]:
        place = _place(session, path)
        if place not in self._account.tables:
            raise RefusedError(f"Iceberg table '{path}' does not exist or not authorized.")
        return place, self._account.tables[place]


def _plain(name: str) -> str:
    """A name as the service stores it: quoted as it is, else in upper case."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.upper()


def _parts(path: str) -> tuple[str, ...]:
    return tuple(_plain(part) for part in re.findall(_NAME, path))


def _place(session: Any, path: str) -> tuple[str, str, str]:
    parts = _parts(path)
    database, schema, name = (session.database, session.schema, *parts)[-3:]
    return database, schema, name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _done(text: str) -> str:
    return f'SELECT {_literal(text)} AS "status"'


def _keeping_null(ts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Times as the connector takes them; fakesnow alone sends 1970 for NULL."""
    whole = ts.combine_chunks() if isinstance(ts, pa.ChunkedArray) else ts
    parts = _TIMES_OF_FAKESNOW(whole.fill_null(pa.scalar(0).cast(whole.type)))
    fields = [parts.type.field(at) for at in range(parts.type.num_fields)]
    return pa.StructArray.from_arrays(parts.flatten(), fields=fields, mask=whole.is_null())


_TIMES_OF_FAKESNOW: Final = arrow.timestamp_to_sf_struct


class _Rewritten(Request):
    """A request with another body."""

    def __init__(self, request: Request, document: dict[str, Any]) -> None:
        super().__init__(request.scope, request.receive)
        self._headers = request.headers.mutablecopy()
        del self._headers["Content-Encoding"]
        self._text = json.dumps(document).encode()

    @override
    async def body(self) -> bytes:
        return self._text


def application(account: Account) -> Starlette:
    """Fakesnow's server with the shim in front of it."""
    arrow.timestamp_to_sf_struct = _keeping_null
    shim = Shim(account)

    async def query(request: Request) -> Response:
        body = await request.body()
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        document = json.loads(body)
        session = sessions.get(to_token(request))
        if session is not None:
            try:
                document["sqlText"] = shim.statement(session, document["sqlText"])
            except RefusedError as error:
                return JSONResponse({
                    "data": {"errorCode": "002003", "sqlState": "02000"}, "code": "002003",
                    "message": f"SQL compilation error: {error}", "success": False,
                })  # fmt: skip
        answer: Response = await query_request(_Rewritten(request, document))
        return answer

    async def statements(_: Request) -> Response:
        return JSONResponse(account.statements)

    kept = [route for route in routes if route.path != "/queries/v1/query-request"]
    kept.append(Route("/queries/v1/query-request", query, methods=["POST"]))
    kept.append(Route("/statements", statements, methods=["GET"]))
    return Starlette(routes=kept)


def main(port: str, catalog: str) -> None:
    """Serve on loopback until the process is ended."""
    app = application(Account(Path(catalog)))
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:3])
