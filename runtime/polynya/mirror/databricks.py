"""Databricks as the target of mirrors: views over a foreign catalog of Glue, through its SQL API.

Unity Catalog keeps metadata of foreign tables; `REFRESH FOREIGN TABLE` renews them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote as encoded

from typing_extensions import override

from polynya.lake.fold.shape import Shape
from polynya.mirror.statements import (
    ANSWER_SECONDS,
    MirrorSession,
    ObjectKind,
    ObjectText,
    Opened,
    TargetStatements,
    said,
    shortened,
)
from polynya.model.config.dataset import Relations
from polynya.model.config.mirror import ConnectedMirror, DatabricksMirrorTarget
from polynya.model.config.server_connection import DatabricksConnection
from polynya.model.error_catalogue.mirrors import STATEMENT_FAILED, TARGET_UNREACHABLE
from polynya.model.errors import PolynyaError
from polynya.model.names import Dialect, literal
from polynya.store.clock import Clock
from polynya.store.http_client import (
    AnswerTooLargeError,
    ForbiddenAddressError,
    HttpAnswer,
    HttpClient,
    NoAnswerError,
)

_quote: Final = Dialect.DATABRICKS.quote


class DatabricksStatements(TargetStatements):
    """Statements about views over the tables of a foreign catalog."""

    dialect = Dialect.DATABRICKS
    kinds = frozenset({"VIEW"})
    longest_name = None

    def __init__(self, task: ConnectedMirror, target: DatabricksMirrorTarget) -> None:
        self._target = target
        self.finds_commits = task.refresh.automatic

    @override
    def stored(self, name: str) -> str:
        """A name in small letters, as Unity Catalog has it."""
        return name.lower()

    @override
    def table(self, relations: Relations) -> tuple[str, str] | None:
        """None: the foreign catalog has the tables."""
        return None

    @override
    def table_path(self, relations: Relations) -> str:
        """The table in the foreign catalog."""
        place = (relations.internal_schema.lower(), relations.internal_table.lower())
        return _quote(self._target.foreign_catalog, *place)

    @override
    def why_not(self, shape: Shape, format_version: int) -> str | None:
        """Nothing that Polynya writes is refused by name."""
        return None

    @override
    def note(self, format_version: int) -> str | None:
        """Format 3 is not for every runtime."""
        return None if format_version < 3 else "Databricks reads format 3 as a beta"

    @override
    def create(self, thing: ObjectText) -> tuple[str, ...]:
        """Make a view, with its comment in the same statement."""
        comment = literal(thing.comment)
        return (f"CREATE VIEW {self._place(thing.name)} COMMENT {comment} AS {thing.text}",)

    @override
    def replace(self, thing: ObjectText, *, same_columns: bool) -> tuple[str, ...]:
        """Change a view in place: `ALTER VIEW` keeps grants, `CREATE OR REPLACE` does not."""
        place = self._place(thing.name)
        return (
            f"ALTER VIEW {place} AS {thing.text}",
            f"COMMENT ON TABLE {place} IS {literal(thing.comment)}",
        )

    @override
    def refresh(self, relations: Relations) -> str | None:
        """Renew the metadata of the foreign table."""
        return f"REFRESH FOREIGN TABLE {self.table_path(relations)}"

    @override
    def drop(self, kind: ObjectKind, name: str) -> str:
        """Drop a view."""
        assert kind == "VIEW", "the mirror makes no tables in Databricks"
        return f"DROP VIEW IF EXISTS {self._place(name)}"

    @override
    def is_unfinished(self, owner: str, name: str) -> bool:
        """A creation is one statement."""
        return False

    def _place(self, name: str) -> str:
        return _quote(self._target.catalog, self._target.schema_, name)


_PATH: Final = "/api/2.0/sql/statements"
#: Seconds that the API holds an answer back while a statement runs; it takes 5 to 50.
_WAIT_SECONDS: Final = 30
_TIMEOUT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 1.0
#: The API sends at most 25 MiB of rows in an answer.
_MAX_BYTES: Final = 32 * 2**20
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,100}")


class DatabricksSession(MirrorSession):
    """Statements by the SQL Statement Execution API, in a SQL warehouse."""

    def __init__(
        self,
        name: str,
        target: DatabricksMirrorTarget,
        account: DatabricksConnection,
        opened: Opened,
        clock: Clock,
    ) -> None:
        """Log in. Raises TARGET_UNREACHABLE, or what `opened` raises."""
        self._task, self._target, self._clock = name, target, clock
        self._url = account.url
        self._client = HttpClient(timeout=_TIMEOUT_SECONDS, max_bytes=_MAX_BYTES, clock=clock)
        self._secrets: tuple[str, ...] = ()
        self._token = self._login(account, opened)

    @override
    def objects(self) -> list[tuple[str, str, str]]:
        """All tables and views of the schema that the login may see."""
        rows = self._rows(
            "SELECT table_name, table_type, comment "
            f"FROM {_quote(self._target.catalog, 'information_schema', 'tables')} "
            f"WHERE table_schema = {literal(self._target.schema_)}"
        )
        if not all(isinstance(row, list) and len(row) == 3 for row in rows):
            raise self._unreachable("an answer has other columns than were asked for")
        return [
            (str(name), "VIEW" if kind == "VIEW" else "TABLE", str(comment or ""))
            for name, kind, comment in rows
        ]

    @override
    def execute(self, sql: str) -> None:
        """Carry a statement out."""
        self._done(sql)

    @override
    def metadata_of(self, table: str) -> str | None:
        """None: the mirror has no tables there."""
        return None

    @override
    def close(self) -> None:
        """Nothing is open."""

    def _login(self, account: DatabricksConnection, opened: Opened) -> str:
        """The access token: that of the connection, or one for its service principal."""
        if account.token is not None:
            token = opened(account.token.get_secret_value()).strip()
            self._secrets = (token,)
            return token
        assert account.client_id is not None, "checked by the model"
        assert account.client_secret is not None, "checked by the model"
        client = opened(account.client_id.get_secret_value()).strip()
        secret = opened(account.client_secret.get_secret_value()).strip()
        # RFC 6749 section 2.3.1: both are encoded as in a form first.
        pair = f"{encoded(client, safe='')}:{encoded(secret, safe='')}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        fields = {"grant_type": "client_credentials", "scope": "all-apis"}
        try:
            answer = self._client.post_form(f"{self._url}/oidc/v1/token", headers, fields)
        except (NoAnswerError, AnswerTooLargeError, ForbiddenAddressError) as error:
            raise self._unreachable(f"no token: {error}") from None
        given = _object(answer).get("access_token")
        if answer.status != 200 or not isinstance(given, str):
            # What the endpoint says besides may repeat what it was sent.
            raise self._unreachable(f"no token: the token endpoint answers {answer.status}")
        self._secrets = (secret, given)
        return given

    def _rows(self, sql: str) -> list[Any]:
        done = self._done(sql)
        rows: list[Any] = []
        result, chunk = _part(done, "result"), 0
        while True:
            found = result.get("data_array")
            rows += found if isinstance(found, list) else []
            following = result.get("next_chunk_index")
            if not isinstance(following, int) or following <= chunk:
                return rows
            chunk = following
            result = self._asked(
                "GET", f"{_PATH}/{self._id(done)}/result/chunks/{chunk}", None, sql
            )

    def _done(self, sql: str) -> Mapping[str, Any]:
        """The answer about a statement that has ended well."""
        ends = self._clock.monotonic() + ANSWER_SECONDS
        question = {
            "statement": sql,
            "warehouse_id": self._target.warehouse_id,
            "wait_timeout": f"{_WAIT_SECONDS}s",
            "on_wait_timeout": "CONTINUE",
            "disposition": "INLINE",
            "format": "JSON_ARRAY",
        }
        found = self._asked("POST", _PATH, question, sql)
        while True:
            status = _part(found, "status")
            state = status.get("state")
            if state == "SUCCEEDED":
                return found
            if state not in {"PENDING", "RUNNING"}:
                error = _part(status, "error")
                why = f"{error.get('error_code') or state}: {error.get('message') or 'no reason'}"
                raise self._refused(sql, why)
            place = f"{_PATH}/{self._id(found)}"
            if self._clock.monotonic() >= ends:
                self._asked("POST", f"{place}/cancel", {}, sql)
                raise self._unreachable(f"no end of a statement after {ANSWER_SECONDS} s")
            self._clock.sleep(_PAUSE_SECONDS)
            found = self._asked("GET", place, None, sql)

    def _id(self, answer: Mapping[str, Any]) -> str:
        given = str(answer.get("statement_id"))
        if not _ID.fullmatch(given):
            raise self._unreachable("an answer has no id of a statement")
        return given

    def _asked(
        self, method: str, path: str, question: Mapping[str, Any] | None, sql: str
    ) -> Mapping[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        try:
            answer = self._client.send_json(method, f"{self._url}{path}", headers, question)
        except (NoAnswerError, AnswerTooLargeError, ForbiddenAddressError) as error:
            raise self._unreachable(str(error)) from None
        body = _object(answer)
        if answer.status == 200:
            return body
        why = f"{answer.status} {body.get('error_code') or ''} {body.get('message') or ''}"
        raise self._refused(sql, why) if answer.status == 400 else self._unreachable(why)

    def _refused(self, sql: str, why: str) -> PolynyaError:
        return STATEMENT_FAILED(
            where=self._task, statement=shortened(sql), why=said(why, self._secrets)
        )

    def _unreachable(self, why: str) -> PolynyaError:
        return TARGET_UNREACHABLE(where=self._task, why=said(why, self._secrets))


def _object(answer: HttpAnswer) -> Mapping[str, Any]:
    """The object in an answer; an empty one for anything else."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _part(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object inside of an answer; an empty one where it has none."""
    found = answer.get(name)
    return found if isinstance(found, dict) else {}
