"""The objects that an administrator makes once for a mirror, as SQL or for Terraform.

The role of the mirror may read the volume and make tables and views in one schema; a second role
may read its views and nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from polynya.mirror.snowflake import text
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.config.target import ResolvedTarget
from polynya.model.names import Dialect

_quote = Dialect.SNOWFLAKE.quote


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A statement that is carried out once, why, and the one that takes it back."""

    why: str
    sql: str
    undo: str


@dataclass(frozen=True, slots=True)
class SetupNames:
    """What only the administrator knows: the ARN of the AWS role, the account, and the roles."""

    role_arn: str = "arn:aws:iam::ACCOUNT:role/ROLE"
    account: str = "ACCOUNT"
    writer: str = "POLYNYA_MIRROR"
    reader: str = "POLYNYA_READER"


def setup_steps(
    task: ConnectedMirror, target: ResolvedTarget, names: SetupNames
) -> list[SetupStep]:
    """The statements, in their order."""
    where = task.target.snowflake
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
        steps += _access(task, target, names)
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


def _access(task: ConnectedMirror, target: ResolvedTarget, names: SetupNames) -> list[SetupStep]:
    """Volume and integration, both for reading only."""
    where = task.target.snowflake
    volume, integration = (
        _quote(where.external_volume or ""),
        _quote(where.catalog_integration or ""),
    )
    place = str(target.warehouse)
    base = place if isinstance(target.warehouse, Path) else f"{place.rstrip('/')}/"
    region = target.aws.region or "REGION"
    namespace = task.source.internal_schema or f"{task.source.schema_}_internal"
    location = (
        f"(NAME = 'lake', STORAGE_PROVIDER = 'S3', STORAGE_BASE_URL = {text(base)}, "
        f"STORAGE_AWS_ROLE_ARN = {text(names.role_arn)})"
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
            f"GLUE_AWS_ROLE_ARN = {text(names.role_arn)} "
            f"GLUE_CATALOG_ID = {text(target.catalog_id or names.account)} "
            f"GLUE_REGION = {text(region)} ENABLED = TRUE",
            f"DROP CATALOG INTEGRATION IF EXISTS {integration}",
        ),
    ]


def as_sql(steps: list[SetupStep]) -> str:
    """The statements as a script."""
    return "".join(f"-- {step.why}\n{step.sql};\n" for step in steps)


def as_terraform(steps: list[SetupStep]) -> str:
    """The same for Terraform: a resource `snowflake_execute` for each statement, in their order."""
    blocks = []
    for number, step in enumerate(steps):
        after = f"  depends_on = [snowflake_execute.mirror_{number - 1}]\n" if number else ""
        blocks.append(
            f"# {step.why}\n"
            f'resource "snowflake_execute" "mirror_{number}" {{\n'
            f"  execute = {_hcl(step.sql)}\n  revert  = {_hcl(step.undo)}\n{after}}}\n"
        )
    return "\n".join(blocks)


def _hcl(value: str) -> str:
    """A string of HCL: that of JSON, without templates."""
    return json.dumps(value).replace("${", "$${").replace("%{", "%%{")
