"""Snowflake as the target of mirrors: its statements, and sessions through its connector."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

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
from polynya.model.config.mirror import ConnectedMirror, SnowflakeTarget
from polynya.model.config.server_connection import SnowflakeConnection
from polynya.model.error_catalogue.mirrors import (
    CONNECTOR_MISSING,
    STATEMENT_FAILED,
    TARGET_UNREACHABLE,
)
from polynya.model.errors import PolynyaError
from polynya.model.names import Dialect

_quote: Final = Dialect.SNOWFLAKE.quote
_PLAIN: Final = re.compile(r"[A-Z_][A-Z0-9_$]*")


def text(value: str) -> str:
    """A string literal of Snowflake, and of Redshift."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _named(name: str) -> str:
    """The name of a volume or an integration, which stands in a string."""
    return text(name if _PLAIN.fullmatch(name) else _quote(name))


class SnowflakeStatements(TargetStatements):
    """Statements about external Iceberg tables, and views over these or over a linked database."""

    dialect = Dialect.SNOWFLAKE
    kinds = frozenset({"TABLE", "VIEW"})
    longest_name = None

    def __init__(self, task: ConnectedMirror, target: SnowflakeTarget) -> None:
        self._target, self._views = target, task.views
        self._is_automatic = task.refresh.automatic
        self.finds_commits = target.linked_database is not None

    @override
    def stored(self, name: str) -> str:
        """A name in capitals."""
        return name.upper()

    @override
    def table(self, relations: Relations) -> tuple[str, str] | None:
        """An external Iceberg table; it shows what the catalog names when it is made."""
        target = self._target
        if target.external_volume is None or target.catalog_integration is None:
            return None
        options = [
            f"EXTERNAL_VOLUME = {_named(target.external_volume)}",
            f"CATALOG = {_named(target.catalog_integration)}",
            f"CATALOG_NAMESPACE = {text(relations.internal_schema)}",
            f"CATALOG_TABLE_NAME = {text(relations.internal_table)}",
            *(["AUTO_REFRESH = TRUE"] if self._is_automatic else []),
        ]
        return self.stored(f"{self._views.prefix}{relations.internal_table}"), " ".join(options)

    @override
    def table_path(self, relations: Relations) -> str:
        """The mirror's own table, or that of the linked database."""
        table, linked = self.table(relations), self._target.linked_database
        if table is None:
            assert linked is not None, "checked by the model"
            return _quote(linked, relations.internal_schema, relations.internal_table)
        return self._place(table[0])

    @override
    def why_not(self, shape: Shape, format_version: int) -> str | None:
        """Snowflake reads all that Polynya writes."""
        return None

    @override
    def note(self, format_version: int) -> str | None:
        """An upgrade to format 3 stops refreshes."""
        if format_version < 3:
            return None
        return "after an upgrade from format 2 Snowflake refuses refreshes until the next commit"

    @override
    def create(self, thing: ObjectText) -> tuple[str, ...]:
        """Make a table or a view, with its comment in the same statement."""
        return (self._made("CREATE", thing),)

    @override
    def replace(self, thing: ObjectText, *, same_columns: bool) -> tuple[str, ...]:
        """Grants on a view stay."""
        return (self._made("CREATE OR REPLACE", thing),)

    @override
    def refresh(self, relations: Relations) -> str | None:
        """Let the table show what the catalog names now."""
        table = self.table(relations)
        return None if table is None else f"ALTER ICEBERG TABLE {self._place(table[0])} REFRESH"

    @override
    def drop(self, kind: ObjectKind, name: str) -> str:
        """Drop a table or a view."""
        what = "ICEBERG TABLE" if kind == "TABLE" else "VIEW"
        return f"DROP {what} IF EXISTS {self._place(name)}"

    @override
    def is_unfinished(self, owner: str, name: str) -> bool:
        """A creation is one statement."""
        return False

    def _made(self, verb: str, thing: ObjectText) -> str:
        place, comment = self._place(thing.name), f"COMMENT = {text(thing.comment)}"
        if thing.kind == "TABLE":
            return f"{verb} ICEBERG TABLE {place} {thing.text} {comment}"
        secure = "SECURE " if self._views.secure else ""
        grants = " COPY GRANTS" if verb != "CREATE" else ""
        return f"{verb} {secure}VIEW {place}{grants} {comment} AS {thing.text}"

    def _place(self, name: str) -> str:
        return _quote(self._target.database, self._target.schema_, name)


_LOGIN_SECONDS: Final = 30
#: `SHOW` gives at most so many objects.
_MOST_OBJECTS: Final = 10_000
#: Snowflake's numbers of errors about a session that has ended (`errorcode.py` of its connector).
_SESSION_OVER: Final = frozenset({390111, 390112, 390114, 390195, 250001, 250002, 250003})


class SnowflakeSession(MirrorSession):
    """A session through Snowflake's own connector, which the extra `snowflake` installs."""

    def __init__(
        self,
        name: str,
        target: SnowflakeTarget,
        account: SnowflakeConnection,
        opened: Opened,
    ) -> None:
        """Log in. Raises CONNECTOR_MISSING, TARGET_UNREACHABLE, or what `opened` raises."""
        self._task, self._target = name, target
        try:
            # Start-up time, and an extra: only mirrors need it.
            from snowflake import connector
        except ImportError as error:
            raise CONNECTOR_MISSING(where=name) from error
        self._errors: Any = connector.errors
        given = _login(account, opened)
        try:
            self._session: Any = connector.connect(
                **given,
                database=self._target.database,
                schema=self._target.schema_,
                warehouse=self._target.warehouse,
                application="Polynya",
                login_timeout=_LOGIN_SECONDS,
                network_timeout=ANSWER_SECONDS,
                session_parameters={"QUERY_TAG": f"polynya mirror {name}"},
            )
        except (connector.errors.Error, ValueError, TypeError, OSError) as error:
            raise self._unreachable(error) from None

    @override
    def objects(self) -> list[tuple[str, str, str]]:
        """All tables and views of the schema."""
        place = _quote(self._target.database, self._target.schema_)
        rows = self._rows(f"SHOW OBJECTS IN SCHEMA {place}")
        if len(rows) >= _MOST_OBJECTS:
            raise STATEMENT_FAILED(
                where=self._task,
                statement="SHOW OBJECTS",
                why=f"the schema has {_MOST_OBJECTS:,} objects or more",
                fix="give the mirror a schema of its own",
            )
        return [
            (str(row["name"]), "VIEW" if "VIEW" in str(row["kind"]) else "TABLE",
             str(row["comment"] or ""))
            for row in rows
        ]  # fmt: skip

    @override
    def execute(self, sql: str) -> None:
        """Carry a statement out."""
        self._rows(sql)

    @override
    def metadata_of(self, table: str) -> str | None:
        """The metadata file that a table shows."""
        place = text(_quote(self._target.database, self._target.schema_, table))
        rows = self._rows(f"SELECT SYSTEM$GET_ICEBERG_TABLE_INFORMATION({place}) AS information")
        answer = json.loads(next(iter(rows[0].values()))) if rows else {}
        found = answer.get("metadataLocation") if isinstance(answer, dict) else None
        return found if isinstance(found, str) else None

    @override
    def close(self) -> None:
        """End the session; one that cannot be ended ends by itself."""
        try:
            self._session.close()
        except (self._errors.Error, OSError):
            return

    def _rows(self, sql: str) -> Sequence[dict[str, Any]]:
        try:
            with self._session.cursor() as cursor:
                cursor.execute(sql)
                names = [column.name.lower() for column in cursor.description or ()]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except self._errors.Error as error:
            if isinstance(error, self._errors.OperationalError) or error.errno in _SESSION_OVER:
                raise self._unreachable(error) from None
            raise STATEMENT_FAILED(
                where=self._task, statement=shortened(sql), why=said(error)
            ) from None
        except (ValueError, KeyError, OSError) as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> PolynyaError:
        return TARGET_UNREACHABLE(where=self._task, why=said(error))


def _login(account: SnowflakeConnection, opened: Opened) -> dict[str, Any]:
    """The arguments of the connector that say where to log in, and as whom."""
    place = urlsplit(account.address)
    given: dict[str, Any] = {
        "account": account.account,
        "host": place.hostname,
        "protocol": place.scheme,
        "port": place.port or (443 if place.scheme == "https" else 80),
        "user": opened(account.user.get_secret_value()),
    }
    if account.role is not None:
        given["role"] = account.role
    if account.private_key is not None:
        # The connector takes the key as PEM without its frame, in Base64.
        key = opened(account.private_key.get_secret_value())
        lines = [line for line in key.splitlines() if not line.startswith("-----")]
        given |= {"authenticator": "SNOWFLAKE_JWT", "private_key": "".join(lines)}
    elif account.token is not None:
        token = opened(account.token.get_secret_value())
        given |= {"authenticator": "PROGRAMMATIC_ACCESS_TOKEN", "token": token}
    elif account.password is not None:
        given["password"] = opened(account.password.get_secret_value())
    return given
