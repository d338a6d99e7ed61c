"""The project file `polynya.yml`: targets and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_core import CoreSchema

from polynya.model.config.aws import Aws
from polynya.model.config.engines.engine import EngineSetting
from polynya.model.config.fields import ClusterName, Frozen, Name
from polynya.model.config.settings import DatasetSettings

CatalogType: TypeAlias = Literal["jdbc", "glue"]


class Catalog(Frozen):
    """The Iceberg catalog of a target."""

    type: CatalogType = Field(
        default="jdbc",
        description="`jdbc`: an Iceberg JDBC catalog, on SQLite for one machine or on PostgreSQL. "
        "`glue`: the AWS Glue Data Catalog.",
    )
    uri: str | None = Field(
        default=None,
        min_length=1,
        description="JDBC address of an SQLite file, `jdbc:sqlite:FILE`, or of a PostgreSQL "
        "database, `jdbc:postgresql://HOST:PORT/DATABASE`, with `?sslmode=verify-full` over a "
        "network. Default: `catalog.db` inside the warehouse.",
    )
    user: str | None = Field(
        default=None, min_length=1, description="User for PostgreSQL, as `${env:NAME}`."
    )
    password: SecretStr | None = Field(
        default=None,
        description="Password for PostgreSQL, always as `${env:NAME}`, never in the file.",
    )
    allow_unverified: bool = Field(
        default=False,
        description="Log in to PostgreSQL on another machine with an `sslmode` below "
        "`verify-full`. Default: false.",
    )
    id: str | None = Field(
        default=None,
        pattern=r"^\d{12}$",
        description="Account of a Glue catalog. Default: the account of the credentials.",
    )
    properties: dict[str, str] = Field(
        default_factory=dict,
        description="More Iceberg catalog properties for caches, timeouts and the use of S3. "
        "Properties that name a class or a location are refused.",
    )


def _named(value: Any) -> Any:
    """`catalog: glue` is short for `catalog: {type: glue}`."""
    return {"type": value} if isinstance(value, str) else value


class _CatalogSchema:
    """The JSON Schema of a catalog with its short form."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(get_args(CatalogType))}, handler(core)]}


CatalogOrType: TypeAlias = Annotated[Catalog, BeforeValidator(_named), _CatalogSchema]


class Target(Frozen):
    """One place to run in: where files land and where tables live."""

    landing: str = Field(
        min_length=1,
        description="The landing zone: `s3://BUCKET/PREFIX`, or a folder, relative to the project"
        " folder or absolute.",
    )
    warehouse: str = Field(
        min_length=1,
        description="The warehouse: a folder, or with a catalog on Glue or PostgreSQL "
        "`s3://BUCKET/PREFIX`.",
    )
    catalog: CatalogOrType = Field(
        default_factory=Catalog,
        description="The Iceberg catalog; `catalog: glue` is short for `catalog: {type: glue}`.",
    )
    config: str | None = Field(
        default=None,
        min_length=1,
        description="The configuration bucket of running nodes: `s3://BUCKET/PREFIX`, or a folder.",
    )
    aws: Aws | None = Field(default=None, description="Access to AWS.")
    engine: EngineSetting | None = Field(
        default=None,
        description="Engine of tasks that name none: `local`, a standalone Spark cluster "
        "(`spark://HOST:PORT` is short for `{mode: spark, master: "
        "spark://HOST:PORT}`), EMR Serverless or Glue. Default: `local`.",
    )
    maven_repository: str | None = Field(
        default=None, description="Address of a Maven mirror from which jars are fetched."
    )


class Project(Frozen):
    """The project file: a name, targets and defaults for all tasks."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["project"] = Field(description="Always `project`.")
    name: Name = Field(description="Name of the project.")
    cluster: ClusterName | None = Field(
        default=None,
        description="Cluster whose agents run the tasks that name none. Required if a task names "
        "one. Default: the project's only cluster.",
    )
    targets: dict[Name, Target] = Field(
        min_length=1, description="Targets by name. The default target is `local`."
    )
    defaults: DatasetSettings = Field(
        default_factory=DatasetSettings,
        description="Settings of all datasets; a task's `defaults` win.",
    )
