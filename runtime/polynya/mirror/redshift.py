"""Redshift as the target of mirrors: views over an external schema of Glue, through its Data API.

Redshift reads the newest commit of a table from Glue at each query, so nothing is refreshed. A
comment is a statement of its own there, and a view without one is not the mirror's: so a view gets
its comment under a name that only this mirror uses, and then its own name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from polynya.lake.fold.shape import Shape
from polynya.mirror.snowflake import text
from polynya.mirror.statements import (
    ANSWER_SECONDS,
    MirrorSession,
    ObjectKind,
    ObjectText,
    TargetStatements,
    said,
    shortened,
)
from polynya.model.config.aws import AwsAccess
from polynya.model.config.dataset import Relations
from polynya.model.config.mirror import RedshiftMirrorTarget
from polynya.model.config.server_connection import RedshiftConnection
from polynya.model.error_catalogue.mirrors import STATEMENT_FAILED, TARGET_UNREACHABLE
from polynya.model.errors import PolynyaError
from polynya.model.names import Dialect, shown
from polynya.query.warehouses import is_nested
from polynya.store.clock import Clock

_quote: Final = Dialect.REDSHIFT.quote


class RedshiftStatements(TargetStatements):
    """Statements about late-binding views, which views over an external schema have to be."""

    dialect = Dialect.REDSHIFT
    finds_commits = True
    kinds = frozenset({"VIEW"})
    longest_name = 127

    def __init__(self, target: RedshiftMirrorTarget) -> None:
        self._target = target

    @override
    def stored(self, name: str) -> str:
        """A name in small letters."""
        return name.lower()

    @override
    def table(self, relations: Relations) -> tuple[str, str] | None:
        """None: the external schema has the tables."""
        return None

    @override
    def table_path(self, relations: Relations) -> str:
        """The table in the external schema."""
        schema = self._target.external_schema or relations.internal_schema.lower()
        return _quote(schema, relations.internal_table.lower())

    @override
    def why_not(self, shape: Shape, format_version: int) -> str | None:
        """Redshift reads no nested columns in tables of format 3."""
        nested = [shown(name) for name, kind in shape.columns.items() if is_nested(kind)]
        if format_version < 3 or not nested:
            return None
        columns = ", ".join(nested)
        return f"Redshift reads no structs, lists or maps in Iceberg's format 3: {columns}"

    @override
    def note(self, format_version: int) -> str | None:
        """Nothing."""
        return None

    @override
    def create(self, thing: ObjectText) -> tuple[str, ...]:
        """Make a view under a name of the mirror's own, mark it, and give it its name."""
        return (*self._marked(thing), self._renamed(thing))

    @override
    def replace(self, thing: ObjectText, *, same_columns: bool) -> tuple[str, ...]:
        """With the same columns in place, so that grants stay; otherwise by another view.

        Redshift replaces a view only by one with the same columns (Database Developer Guide,
        "CREATE VIEW").
        """
        if same_columns:
            return (
                self._made("CREATE OR REPLACE", thing.name, thing),
                self._comment(thing.name, thing),
            )
        return (*self._marked(thing), self.drop("VIEW", thing.name), self._renamed(thing))

    @override
    def refresh(self, relations: Relations) -> str | None:
        """None: Redshift asks Glue at each query."""
        return None

    @override
    def drop(self, kind: ObjectKind, name: str) -> str:
        """Drop a view; one that others depend on stays."""
        assert kind == "VIEW", "the mirror makes no tables in Redshift"
        return f"DROP VIEW IF EXISTS {self._place(name)}"

    @override
    def is_unfinished(self, owner: str, name: str) -> bool:
        """Whether a view was not yet given its name."""
        return name.startswith(f"polynya_{owner}_")

    def _marked(self, thing: ObjectText) -> tuple[str, str]:
        name = _unfinished(thing)
        return self._made("CREATE", name, thing), self._comment(name, thing)

    def _made(self, verb: str, name: str, thing: ObjectText) -> str:
        return f"{verb} VIEW {self._place(name)} AS {thing.text} WITH NO SCHEMA BINDING"

    def _comment(self, name: str, thing: ObjectText) -> str:
        return f"COMMENT ON VIEW {self._place(name)} IS {text(thing.comment)}"

    def _renamed(self, thing: ObjectText) -> str:
        return f"ALTER TABLE {self._place(_unfinished(thing))} RENAME TO {_quote(thing.name)}"

    def _place(self, name: str) -> str:
        return _quote(self._target.schema_, name)


def _unfinished(thing: ObjectText) -> str:
    """The name of a view until it has its comment."""
    return f"polynya_{thing.owner}_{hashlib.sha256(thing.name.encode()).hexdigest()[:16]}"


#: The Data API takes no longer statement, in bytes.
_LONGEST_STATEMENT: Final = 100_000
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 2.0


class RedshiftSession(MirrorSession):
    """Statements by the Data API, each in a session of its own.

    Of the API it calls ExecuteStatement, DescribeStatement, GetStatementResult and CancelStatement.
    """

    def __init__(
        self,
        name: str,
        target: RedshiftMirrorTarget,
        account: RedshiftConnection,
        region: str | None,
        clock: Clock,
    ) -> None:
        """Nothing is asked yet. Raises POLYNYA-AWS-001 where the SDK finds no region."""
        # Start-up time: the AWS SDK.
        from polynya.store.aws.clients import AWS_ERRORS, client

        self._task, self._target, self._clock = name, target, clock
        self._errors = AWS_ERRORS
        access = AwsAccess(region=account.region or region, endpoint=account.endpoint)
        self._client = client("redshift-data", access)
        self._at = _login(account)

    @override
    def objects(self) -> list[tuple[str, str, str]]:
        """All relations of the schema."""
        # `obj_description` is not supported there.
        rows = self._rows(
            3,
            "SELECT c.relname, c.relkind, d.description FROM pg_catalog.pg_class AS c "
            "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
            "LEFT JOIN (SELECT e.objoid, e.description FROM pg_catalog.pg_description AS e "
            "JOIN pg_catalog.pg_class AS k ON k.oid = e.classoid AND k.relname = 'pg_class' "
            "WHERE e.objsubid = 0) AS d ON d.objoid = c.oid "
            f"WHERE n.nspname = {text(self._target.schema_)}",
        )
        return [(name, "VIEW" if kind == "v" else "TABLE", comment) for name, kind, comment in rows]

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

    def _rows(self, width: int, sql: str) -> list[tuple[str, ...]]:
        statement = self._done(sql)
        rows = [tuple(map(_value, record)) for record in self._records(statement)]
        if not all(len(row) == width for row in rows):
            raise self._unreachable("an answer has other columns than were asked for")
        return rows

    def _records(self, statement: str) -> Iterator[Sequence[Mapping[str, Any]]]:
        token: dict[str, str] = {}
        while True:
            page = self._call("get_statement_result", Id=statement, **token)
            yield from page.get("Records", ())
            if not page.get("NextToken"):
                return
            token = {"NextToken": str(page["NextToken"])}

    def _done(self, sql: str) -> str:
        """Wait until a statement has ended well; its id."""
        if len(sql.encode()) > _LONGEST_STATEMENT:
            why = f"the Data API takes statements of {_LONGEST_STATEMENT:,} bytes"
            fix = "leave the dataset out with `exclude`: it has too many columns"
            raise STATEMENT_FAILED(where=self._task, statement=shortened(sql), why=why, fix=fix)
        given = self._call(
            "execute_statement",
            Sql=sql,
            Database=self._target.database,
            StatementName=f"polynya mirror {self._task}",
            **self._at,
        )
        if not given.get("Id"):
            raise self._unreachable("an answer has no id of a statement")
        statement, pause = str(given["Id"]), _FIRST_PAUSE_SECONDS
        ends = self._clock.monotonic() + ANSWER_SECONDS
        while True:
            found = self._call("describe_statement", Id=statement)
            status = str(found.get("Status"))
            if status == "FINISHED":
                return statement
            if status in {"FAILED", "ABORTED"}:
                raise STATEMENT_FAILED(
                    where=self._task,
                    statement=shortened(sql),
                    why=said(found.get("Error") or status.lower()),
                )
            if self._clock.monotonic() >= ends:
                self._call("cancel_statement", Id=statement)
                raise self._unreachable(f"no end of a statement after {ANSWER_SECONDS} s")
            self._clock.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)

    def _call(self, operation: str, **given: Any) -> Mapping[str, Any]:
        try:
            answer: Mapping[str, Any] = getattr(self._client, operation)(**given)
        except self._errors as error:
            raise self._unreachable(said(error)) from None
        return answer

    def _unreachable(self, why: str) -> PolynyaError:
        return TARGET_UNREACHABLE(where=self._task, why=why)


def _login(account: RedshiftConnection) -> dict[str, str]:
    """The arguments that say where a statement runs, and as whom."""
    given = {
        "WorkgroupName": account.workgroup,
        "ClusterIdentifier": account.cluster,
        "DbUser": account.user,
        "SecretArn": account.secret_arn,
    }
    return {name: value for name, value in given.items() if value is not None}


def _value(field: Mapping[str, Any]) -> str:
    """The text of a field; an empty one for NULL."""
    return str(field.get("stringValue", ""))
