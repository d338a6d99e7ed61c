"""Snowflake's statements about a mirror, and sessions in which they are carried out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from polynya.model.config.dataset import Relations
from polynya.model.config.mirror import ConnectedMirror, MirrorRefresh, SnowflakeTarget
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


@dataclass(frozen=True, slots=True)
class CreateText:
    """The text of a `CREATE`: before the comment and after it. `copies`: grants survive it."""

    before: str
    after: str
    copies: bool = False

    def statement(self, comment: str, *, replace: bool) -> str:
        """The whole statement. Without `replace` it fails where the name is taken."""
        verb = "CREATE OR REPLACE" if replace else "CREATE"
        grants = " COPY GRANTS" if replace and self.copies else ""
        return f"{verb} {self.before}{grants} COMMENT = {text(comment)}{self.after}"


def text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _named(name: str) -> str:
    """The name of a volume or an integration, which stands in a string."""
    return text(name if _PLAIN.fullmatch(name) else _quote(name))


def table_path(target: SnowflakeTarget, name: str | None, relations: Relations) -> str:
    """Where the views find the table: the mirror's own, or that of the linked database."""
    if target.linked_database is not None:
        linked = (target.linked_database, relations.internal_schema, relations.internal_table)
        return _quote(*linked)
    assert name is not None, "without a linked database each dataset has a table"
    return _quote(target.database, target.schema_, name)


def external_table(
    target: SnowflakeTarget, name: str, relations: Relations, refresh: MirrorRefresh
) -> CreateText:
    """An external Iceberg table; it shows what the catalog names when it is made."""
    assert target.external_volume is not None, "checked by the model"
    assert target.catalog_integration is not None, "checked by the model"
    options = [
        f"EXTERNAL_VOLUME = {_named(target.external_volume)}",
        f"CATALOG = {_named(target.catalog_integration)}",
        f"CATALOG_NAMESPACE = {text(relations.internal_schema)}",
        f"CATALOG_TABLE_NAME = {text(relations.internal_table)}",
        *(["AUTO_REFRESH = TRUE"] if refresh.automatic else []),
    ]
    place = _quote(target.database, target.schema_, name)
    return CreateText(f"ICEBERG TABLE {place} {' '.join(options)}", "")


def view(target: SnowflakeTarget, name: str, sql: str, *, secure: bool) -> CreateText:
    """A view with the text `sql`."""
    place = _quote(target.database, target.schema_, name)
    return CreateText(f"{'SECURE ' if secure else ''}VIEW {place}", f" AS {sql}", copies=True)


def refresh(target: SnowflakeTarget, name: str) -> str:
    """Let a table show what the catalog names now."""
    return f"ALTER ICEBERG TABLE {_quote(target.database, target.schema_, name)} REFRESH"


def drop(target: SnowflakeTarget, kind: str, name: str) -> str:
    """Drop a table, whose files stay, or a view."""
    what = "ICEBERG TABLE" if kind == "TABLE" else "VIEW"
    return f"DROP {what} IF EXISTS {_quote(target.database, target.schema_, name)}"


class MirrorSession(Protocol):
    """A session with the target of a mirror. All raise STATEMENT_FAILED or TARGET_UNREACHABLE."""

    def objects(self) -> list[tuple[str, str, str]]:
        """All tables and views of the schema: name, `TABLE` or `VIEW`, comment."""
        ...

    def execute(self, sql: str) -> None:
        """Carry a statement out."""
        ...

    def metadata_of(self, table: str) -> str | None:
        """The metadata file that a table shows; None where the target does not tell."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


#: Opens a text of the settings: its secrets.
Opened = Callable[[str], str]
#: Seconds for a login, and for one answer.
_LOGIN_SECONDS: Final = 30
_ANSWER_SECONDS: Final = 300
#: `SHOW` gives at most so many objects.
_MOST_OBJECTS: Final = 10_000
#: Snowflake's numbers of errors about a session that has ended (`errorcode.py` of its connector).
_SESSION_OVER: Final = frozenset({390111, 390112, 390114, 390195, 250001, 250002, 250003})


class SnowflakeSession(MirrorSession):
    """A session through Snowflake's own connector, which the extra `snowflake` installs."""

    def __init__(self, task: ConnectedMirror, opened: Opened) -> None:
        """Log in. Raises CONNECTOR_MISSING, TARGET_UNREACHABLE, or what `opened` raises."""
        self._task, self._target = task.name, task.target.snowflake
        try:
            # Start-up time, and an extra: only mirrors need it.
            from snowflake import connector
        except ImportError as error:
            raise CONNECTOR_MISSING(where=task.name) from error
        self._errors: Any = connector.errors
        given = _login(task.account, opened)
        try:
            self._session: Any = connector.connect(
                **given,
                database=self._target.database,
                schema=self._target.schema_,
                warehouse=self._target.warehouse,
                application="Polynya",
                login_timeout=_LOGIN_SECONDS,
                network_timeout=_ANSWER_SECONDS,
                session_parameters={"QUERY_TAG": f"polynya mirror {task.name}"},
            )
        except (connector.errors.Error, ValueError, TypeError, OSError) as error:
            raise self._unreachable(error) from None

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

    def execute(self, sql: str) -> None:
        """Carry a statement out."""
        self._rows(sql)

    def metadata_of(self, table: str) -> str | None:
        """The metadata file that a table shows."""
        place = text(_quote(self._target.database, self._target.schema_, table))
        rows = self._rows(f"SELECT SYSTEM$GET_ICEBERG_TABLE_INFORMATION({place}) AS information")
        answer = json.loads(next(iter(rows[0].values()))) if rows else {}
        found = answer.get("metadataLocation") if isinstance(answer, dict) else None
        return found if isinstance(found, str) else None

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
                where=self._task, statement=_shortened(sql), why=_said(error)
            ) from None
        except (ValueError, KeyError, OSError) as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> PolynyaError:
        return TARGET_UNREACHABLE(where=self._task, why=_said(error))


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


def _shortened(sql: str) -> str:
    line = " ".join(sql.split())
    return line if len(line) <= 120 else f"{line[:117]}..."


def _said(error: Exception) -> str:
    """What an error says, in one line. The connector's messages hold no login."""
    return " ".join(str(error).split())[:500] or type(error).__name__
