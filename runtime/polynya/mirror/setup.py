"""The objects that an administrator makes once for a mirror, as SQL or for Terraform.

The user of the mirror may read the tables and make views (in Snowflake tables, too) in one schema;
a second role may read its views and nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from polynya.mirror.snowflake import text
from polynya.model.config.mirror import (
    ConnectedMirror,
    DatabricksMirrorTarget,
    RedshiftMirrorTarget,
    SnowflakeTarget,
)
from polynya.model.config.server_connection import RedshiftConnection
from polynya.model.config.target import ResolvedTarget
from polynya.model.names import Dialect, literal

_quote = Dialect.SNOWFLAKE.quote


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A statement that is carried out once, why, and the one that takes it back."""

    why: str
    sql: str
    undo: str = ""


@dataclass(frozen=True, slots=True)
class SetupNames:
    """What only the administrator knows; a name in capitals stands for what was not given."""

    role_arn: str | None = None
    account: str = "ACCOUNT"
    user: str | None = None
    credential: str = "CREDENTIAL"
    writer: str = "POLYNYA_MIRROR"
    reader: str = "POLYNYA_READER"


def options_of(family: Literal["snowflake", "redshift", "databricks"]) -> tuple[str, ...]:
    """The names of `SetupNames` that mean something in a target, and `terraform`."""
    match family:
        case "snowflake":
            return ("role_arn", "account", "terraform")
        case "redshift":
            return ("role_arn", "user", "terraform")
        case "databricks":
            # Terraform's provider for Databricks has no resource that carries SQL out.
            return ("account", "user", "credential")


def setup_steps(
    task: ConnectedMirror, target: ResolvedTarget, names: SetupNames
) -> list[SetupStep]:
    """The statements, in their order."""
    match task.target.place:
        case SnowflakeTarget() as where:
            return _snowflake(task, where, target, names)
        case RedshiftMirrorTarget() as where:
            return _redshift(task, where, target, names)
        case DatabricksMirrorTarget() as where:
            return _databricks(task, where, target, names)


def _internal_schema(task: ConnectedMirror) -> str:
    return task.source.internal_schema or f"{task.source.schema_}_internal"


def _redshift(
    task: ConnectedMirror, where: RedshiftMirrorTarget, target: ResolvedTarget, names: SetupNames
) -> list[SetupStep]:
    quote = Dialect.REDSHIFT.quote
    internal = _internal_schema(task).lower()
    external = quote(where.external_schema or internal)
    schema, reader = quote(where.schema_), quote(names.reader.lower())
    account = task.account
    region = account.region if isinstance(account, RedshiftConnection) else None
    elsewhere = target.aws.region if region not in {None, target.aws.region} else None
    role = "default" if names.role_arn is None else text(names.role_arn)
    user = quote(names.user or "IAMR:ROLE")
    glue = f" REGION {text(elsewhere)}" if elsewhere else ""
    other = f" CATALOG_ID {text(target.catalog_id)}" if target.catalog_id else ""
    return [
        SetupStep(
            "the Glue database of the internal tables",
            f"CREATE EXTERNAL SCHEMA IF NOT EXISTS {external} FROM DATA CATALOG DATABASE "
            f"{text(internal)}{glue} IAM_ROLE {role}{other}",
        ),
        SetupStep("the user of the mirror", f"CREATE USER {user} PASSWORD DISABLE"),
        SetupStep("it reads the tables", f"GRANT USAGE ON SCHEMA {external} TO {user}"),
        SetupStep(
            "the schema of the views", f"CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {user}"
        ),
        SetupStep("the role of those who query", f"CREATE ROLE {reader}"),
        SetupStep("a right of the role", f"GRANT USAGE ON SCHEMA {schema} TO ROLE {reader}"),
        SetupStep(
            "views that the mirror will make",
            f"ALTER DEFAULT PRIVILEGES FOR USER {user} IN SCHEMA {schema} "
            f"GRANT SELECT ON TABLES TO ROLE {reader}",
        ),
    ]


def _databricks(
    task: ConnectedMirror, where: DatabricksMirrorTarget, target: ResolvedTarget, names: SetupNames
) -> list[SetupStep]:
    quote = Dialect.DATABRICKS.quote
    foreign, schema = quote(where.foreign_catalog), quote(where.catalog, where.schema_)
    internal = quote(where.foreign_catalog, _internal_schema(task).lower())
    connection = quote(f"{where.foreign_catalog}_glue")
    user, reader = quote(names.user or "APPLICATION_ID"), quote(names.reader.lower())
    place = str(target.warehouse).rstrip("/")
    options = {
        "aws_region": target.aws.region or "REGION",
        "aws_account_id": target.catalog_id or names.account,
        "credential": names.credential,
    }
    told = ", ".join(f"{name} {literal(value)}" for name, value in options.items())
    grants = [
        (f"USE CATALOG ON CATALOG {foreign}", user),
        (f"USE SCHEMA ON SCHEMA {internal}", user),
        (f"SELECT ON SCHEMA {internal}", user),
        (f"USE CATALOG ON CATALOG {quote(where.catalog)}", user),
        (f"USE SCHEMA ON SCHEMA {schema}", user),
        (f"CREATE TABLE ON SCHEMA {schema}", user),
        (f"USE CATALOG ON CATALOG {quote(where.catalog)}", reader),
        (f"USE SCHEMA ON SCHEMA {schema}", reader),
        (f"SELECT ON SCHEMA {schema}", reader),
    ]
    return [
        SetupStep(
            "the Glue catalog",
            f"CREATE CONNECTION IF NOT EXISTS {connection} TYPE glue OPTIONS ({told})",
        ),
        SetupStep(
            "its tables, whose files need an external location that may only read",
            f"CREATE FOREIGN CATALOG IF NOT EXISTS {foreign} USING CONNECTION {connection} "
            f"OPTIONS (authorized_paths {literal(place)})",
        ),
        SetupStep("the schema of the views", f"CREATE SCHEMA IF NOT EXISTS {schema}"),
        *(SetupStep("a right", f"GRANT {what} TO {whom}") for what, whom in grants),
    ]


def _snowflake(
    task: ConnectedMirror, where: SnowflakeTarget, target: ResolvedTarget, names: SetupNames
) -> list[SetupStep]:
    database, schema = _quote(where.database), _quote(where.database, where.schema_)
    warehouse = _quote(where.warehouse)
    writer, reader = _quote(names.writer), _quote(names.reader)
    steps = [
        SetupStep(
            "the role of the mirror", f"CREATE ROLE IF NOT EXISTS {writer}",
            f"DROP ROLE IF EXISTS {writer}",
        ),
        SetupStep(
            "the role of those who query", f"CREATE ROLE IF NOT EXISTS {reader}",
            f"DROP ROLE IF EXISTS {reader}",
        ),
    ]  # fmt: skip
    grants = [
        (f"USAGE ON WAREHOUSE {warehouse}", writer),
        (f"USAGE ON DATABASE {database}", writer),
        (f"USAGE, CREATE VIEW ON SCHEMA {schema}", writer),
        (f"USAGE ON WAREHOUSE {warehouse}", reader),
        (f"USAGE ON DATABASE {database}", reader),
        (f"USAGE ON SCHEMA {schema}", reader),
        (f"SELECT ON FUTURE VIEWS IN SCHEMA {schema}", reader),
    ]
    if where.linked_database is not None:
        linked = _quote(where.linked_database)
        grants += [
            (f"USAGE ON DATABASE {linked}", writer),
            (f"USAGE ON ALL SCHEMAS IN DATABASE {linked}", writer),
            (f"USAGE ON FUTURE SCHEMAS IN DATABASE {linked}", writer),
            (f"SELECT ON ALL ICEBERG TABLES IN DATABASE {linked}", writer),
            (f"SELECT ON FUTURE ICEBERG TABLES IN DATABASE {linked}", writer),
        ]
    else:
        steps += _access(task, where, target, names)
        volume, integration = where.external_volume or "", where.catalog_integration or ""
        grants += [
            (f"USAGE ON EXTERNAL VOLUME {_quote(volume)}", writer),
            (f"USAGE ON INTEGRATION {_quote(integration)}", writer),
            (f"CREATE ICEBERG TABLE ON SCHEMA {schema}", writer),
        ]
    for what, role in grants:
        steps.append(
            SetupStep(
                "a right of the role", f"GRANT {what} TO ROLE {role}",
                f"REVOKE {what} FROM ROLE {role}",
            )
        )  # fmt: skip
    return steps


def _access(
    task: ConnectedMirror, where: SnowflakeTarget, target: ResolvedTarget, names: SetupNames
) -> list[SetupStep]:
    """Volume and integration, both for reading only."""
    role = names.role_arn or "arn:aws:iam::ACCOUNT:role/ROLE"
    volume, integration = (
        _quote(where.external_volume or ""),
        _quote(where.catalog_integration or ""),
    )
    place = str(target.warehouse)
    base = place if isinstance(target.warehouse, Path) else f"{place.rstrip('/')}/"
    region = target.aws.region or "REGION"
    namespace = _internal_schema(task)
    location = (
        f"(NAME = 'lake', STORAGE_PROVIDER = 'S3', STORAGE_BASE_URL = {text(base)}, "
        f"STORAGE_AWS_ROLE_ARN = {text(role)})"
    )
    return [
        SetupStep(
            "the bucket of the warehouse, which Snowflake may only read",
            f"CREATE EXTERNAL VOLUME IF NOT EXISTS {volume} STORAGE_LOCATIONS = ({location}) "
            "ALLOW_WRITES = FALSE",
            f"DROP EXTERNAL VOLUME IF EXISTS {volume}",
        ),
        SetupStep(
            "the catalog that names the newest commit of each table",
            f"CREATE CATALOG INTEGRATION IF NOT EXISTS {integration} CATALOG_SOURCE = GLUE "
            f"CATALOG_NAMESPACE = {text(namespace)} TABLE_FORMAT = ICEBERG "
            f"GLUE_AWS_ROLE_ARN = {text(role)} "
            f"GLUE_CATALOG_ID = {text(target.catalog_id or names.account)} "
            f"GLUE_REGION = {text(region)} ENABLED = TRUE",
            f"DROP CATALOG INTEGRATION IF EXISTS {integration}",
        ),
    ]


def as_sql(steps: list[SetupStep]) -> str:
    """The statements as a script."""
    return "".join(f"-- {step.why}\n{step.sql};\n" for step in steps)


def as_terraform(task: ConnectedMirror, steps: list[SetupStep]) -> str:
    """The same for Terraform: a resource for each statement, in their order.

    It is `snowflake_execute`, or `aws_redshiftdata_statement`, which takes nothing back.
    """
    place = task.target.place
    kind = "snowflake_execute"
    more = ""
    if isinstance(place, RedshiftMirrorTarget):
        kind = "aws_redshiftdata_statement"
        more = _redshift_arguments(task, place)
    blocks = []
    for number, step in enumerate(steps):
        after = f"  depends_on = [{kind}.mirror_{number - 1}]\n" if number else ""
        body = (
            f"{more}  sql = {_hcl(step.sql)}\n"
            if more
            else f"  execute = {_hcl(step.sql)}\n  revert  = {_hcl(step.undo)}\n"
        )
        blocks.append(f'# {step.why}\nresource "{kind}" "mirror_{number}" {{\n{body}{after}}}\n')
    return "\n".join(blocks)


def _redshift_arguments(task: ConnectedMirror, place: RedshiftMirrorTarget) -> str:
    """Where the statements run; the administrator adds `db_user` or `secret_arn`."""
    account = task.account
    assert isinstance(account, RedshiftConnection), "checked by the loader"
    where = (
        f"  workgroup_name = {_hcl(account.workgroup)}\n"
        if account.workgroup is not None
        else f"  cluster_identifier = {_hcl(account.cluster or '')}\n"
    )
    return f"{where}  database = {_hcl(place.database)}\n"


def _hcl(value: str) -> str:
    """A string of HCL: that of JSON, without templates."""
    return json.dumps(value).replace("${", "$${").replace("%{", "%%{")
