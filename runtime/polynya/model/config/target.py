"""The project file `polynya.yml`, its targets, and the target to run in.

Properties of an Iceberg catalog are an allow list. A property with the name of a class would load
it on the node, and a property with an endpoint or a path would send data there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, get_args

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from polynya.model.config.ask import AskSettings
from polynya.model.config.aws import Aws, AwsAccess
from polynya.model.config.catalog import (
    Catalog,
    CatalogType,
    RestAccess,
    rest_access,
    rest_contradictions,
)
from polynya.model.config.engines import (
    LOCAL,
    UNREACHABLE,
    Engine,
    EngineSetting,
    SparkCluster,
    SparkEngine,
    Submitted,
)
from polynya.model.config.fields import ClusterName, Duration, Frozen, Name
from polynya.model.config.rules import TransformationRule
from polynya.model.config.schedule import TimeZone
from polynya.model.config.settings import DatasetSettings
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import CONTRADICTING_SETTINGS, NO_SUCH_TARGET
from polynya.model.names import (
    POSTGRESQL,
    Location,
    PostgresAddress,
    S3Location,
    overlap,
    parse_location,
    postgres_address,
    shown,
)

#: Of each family: the end of the name.
_FAMILIES: Final = (
    r"cache-enabled|cache\.(case-sensitive|expiration-interval-ms)",
    r"clients|jdbc\.(connectTimeout|loginTimeout|socketTimeout|tcpKeepAlive)",
    r"jdbc\.(schema-version|strict-mode)",
    r"io\.manifest\.cache-enabled",
    r"io\.manifest\.cache\.(expiration-interval-ms|max-content-length|max-total-bytes)",
    r"glue\.(lakeformation-enabled|skip-archive|skip-name-validation)",
    r"http-client\.(apache|urlconnection)\.[a-z-]+(-ms|-enabled|-connections)",
    r"s3\.(acl|checksum-enabled|chunked-encoding-enabled|storage-class|acceleration-enabled)",
    r"s3\.(dualstack-enabled|preload-client-enabled|use-arn-region-enabled)",
    r"s3\.(delete-enabled|delete\.(batch-size|num-threads))",
    r"s3\.(multipart|retry|crt)\.[a-z0-9.-]+",
    r"s3\.connection\.[a-z-]+",
    r"rest-page-size|rest\.client\.(connection-timeout-ms|socket-timeout-ms|max-retries)",
)
_ALLOWED: Final = re.compile("|".join(_FAMILIES))


def catalog_property_problem(name: str) -> tuple[str, str] | None:
    """What is wrong with a property of a catalog, and what to do; None when it may be set."""
    if _ALLOWED.fullmatch(name) is not None:
        return None
    return (
        f"the catalog property {shown(name)} is not one that a project may set",
        "leave it out; a project sets caches, timeouts and how S3 is used, no classes or places",
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


def _idle_poll(value: timedelta) -> timedelta:
    if value < timedelta(seconds=2):
        message = "`idle_poll` is at least two seconds"
        raise PydanticCustomError("polynya_value", "{message}", {"message": message})
    return value


IdlePoll: TypeAlias = Annotated[Duration, AfterValidator(_idle_poll)]


class Target(Frozen):
    """One place to run in: where files land and where tables live."""

    landing: str = Field(
        min_length=1,
        description="The landing zone: `s3://BUCKET/PREFIX`, or a folder, relative to the project"
        " folder or absolute.",
    )
    warehouse: str = Field(
        min_length=1,
        description="The warehouse: a folder, or with a catalog on Glue, on PostgreSQL or behind "
        "REST `s3://BUCKET/PREFIX`.",
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
    idle_poll: IdlePoll | None = Field(
        default=None,
        description="Longest time between two looks at a landing folder on S3 in which nothing "
        "lands, at least `2s`. Each look of a task is at least one list request. Default: `30s`, "
        "or longer for a node that would make more than 15 requests in that time.",
    )
    maven_repository: str | None = Field(
        default=None, description="Address of a Maven mirror from which jars are fetched."
    )


class LatencySettings(Frozen):
    """The latency of datasets over time, in a small table of each internal schema."""

    keep: Duration = Field(
        default=timedelta(days=30),
        description="How long it is kept, in whole days. Default: `30d`.",
    )
    every: Duration = Field(
        default=timedelta(minutes=15),
        description="How often a process writes what it measured: each time is one commit. "
        "Default: `15m`.",
    )

    @model_validator(mode="after")
    def _is_in_bounds(self) -> Self:
        if self.keep < timedelta(days=1) or self.every < timedelta(minutes=5):
            message = "`keep` is at least a day, and `every` at least five minutes"
            raise PydanticCustomError("polynya_value", "{message}", {"message": message})
        return self


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
    time_zone: TimeZone | None = Field(
        default=None,
        description="Clock of schedules of automations that name none, such as `Europe/Berlin`.",
    )
    rules: tuple[TransformationRule, ...] = Field(
        default=(),
        description="Changes of rows and columns by patterns, in this order, for the datasets of "
        "all tasks but transforms; they come before those of the task.",
    )
    ask: AskSettings | None = Field(
        default=None,
        description="The language model of `polynya ask`. Default: none, and nothing is sent.",
    )
    latency: LatencySettings | None = Field(
        default=None,
        description="Keep the latency of each dataset over time. Default: it is not kept.",
    )


DEFAULT_TARGET: Final = "local"
CATALOG_FILE: Final = "catalog.db"
_SQLITE: Final = "jdbc:sqlite:"


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A target with absolute places and a complete catalog; `catalog_uri` is "" on Glue.

    `rest` is how a REST catalog is reached, None for another one.

    `catalog_user` and `catalog_password` log in to a catalog on a server. `engine` is that of
    tasks that name none; `cluster` is where the session of this process works, None for here.
    `idle_poll_seconds` is the longest time between two looks at an idle folder on S3, None: the
    usual one.
    """

    name: str
    landing: Location
    warehouse: Location
    catalog_type: CatalogType
    catalog_uri: str
    catalog_id: str | None = None
    catalog_user: str | None = None
    catalog_password: SecretStr | None = field(default=None, repr=False)
    catalog_properties: Mapping[str, str] = field(default_factory=dict)
    config: Location | None = None
    maven_repository: str | None = None
    aws: AwsAccess = field(default_factory=AwsAccess)
    cluster: SparkCluster | None = None
    engine: Engine = LOCAL
    idle_poll_seconds: float | None = None
    rest: RestAccess | None = None

    @property
    def on_aws(self) -> bool:
        """Whether anything of the target is on AWS."""
        places = (self.landing, self.warehouse, self.config)
        return any(isinstance(place, S3Location) for place in places)

    @property
    def on_glue(self) -> bool:
        """Whether tables are on S3, with the Glue Data Catalog."""
        return self.catalog_type == "glue"

    @property
    def database(self) -> PostgresAddress | None:
        """Where the catalog is, if that is a PostgreSQL server."""
        is_there = self.catalog_uri.startswith(POSTGRESQL)
        return postgres_address(self.catalog_uri) if is_there else None


def choose_target(
    project: Project, name: str | None, directory: Path, project_file: str
) -> ResolvedTarget:
    """Return the named target, else `local`, else the only one; raises ConfigError."""
    chosen = target_name(project.targets, name, project_file)
    return _resolve(chosen, project.targets[chosen], directory.resolve(), project_file)


def target_name(targets: Collection[str], name: str | None, project_file: str) -> str:
    """Return the name of the target that is meant, as `choose_target` does."""
    if name is None and DEFAULT_TARGET not in targets and len(targets) > 1:
        raise NO_SUCH_TARGET(
            "the project has several targets, and none is called `local`",
            where=project_file,
            fix=f"choose one with `--target`: {', '.join(sorted(targets))}",
        )
    chosen = name or (DEFAULT_TARGET if DEFAULT_TARGET in targets else next(iter(targets)))
    if chosen not in targets:
        raise NO_SUCH_TARGET(
            where=project_file, fix=suggest(chosen, list(targets)), target=shown(chosen)
        )
    return chosen


def _resolve(name: str, target: Target, directory: Path, project_file: str) -> ResolvedTarget:
    where = f"{project_file}: targets.{name}"
    landing = parse_location(target.landing, directory, f"{where}.landing")
    warehouse = parse_location(target.warehouse, directory, f"{where}.warehouse")
    config = target.config and parse_location(target.config, directory, f"{where}.config")
    catalog = target.catalog
    for problem, fix in _contradictions(target, landing, warehouse, config or None):
        raise CONTRADICTING_SETTINGS(problem, where=where, fix=fix)
    uri = ""
    if catalog.type == "jdbc":
        uri = catalog.uri or f"{_SQLITE}{Path(str(warehouse)) / CATALOG_FILE}"
    elif catalog.type == "rest":
        uri = catalog.uri or ""
    return ResolvedTarget(
        name=name,
        landing=landing,
        warehouse=warehouse,
        config=config or None,
        catalog_type=catalog.type,
        catalog_uri=uri,
        catalog_id=catalog.id,
        catalog_user=catalog.user,
        catalog_password=catalog.password,
        catalog_properties=dict(catalog.properties),
        maven_repository=target.maven_repository,
        aws=target.aws.access() if target.aws is not None else AwsAccess(),
        cluster=target.engine.cluster() if isinstance(target.engine, SparkEngine) else None,
        engine=target.engine or LOCAL,
        idle_poll_seconds=(
            target.idle_poll.total_seconds() if target.idle_poll is not None else None
        ),
        rest=rest_access(catalog),
    )


def _contradictions(
    target: Target, landing: Location, warehouse: Location, config: Location | None
) -> Iterator[tuple[str, str]]:
    """What does not go together, each with its fix."""
    if overlap(landing, warehouse):
        yield "landing and warehouse are the same folder", "give each a folder of its own"
    for name, other in (("landing", landing), ("warehouse", warehouse)):
        if config is not None and overlap(config, other):
            yield f"config and {name} are the same folder", "give each a folder of its own"
    yield from _of_catalog(target.catalog, warehouse)
    yield from _of_engine(target, landing, warehouse)
    if target.idle_poll is not None and not isinstance(landing, S3Location):
        yield "a folder is looked at every two seconds", "remove `idle_poll`: it is for S3"
    on_aws = any(isinstance(one, S3Location) for one in (landing, warehouse, config))
    if target.aws is not None and not on_aws:
        yield "nothing of this target is on AWS", "remove `aws`, or name a location on S3"


def _of_engine(target: Target, landing: Location, warehouse: Location) -> Iterator[tuple[str, str]]:
    """What does not go together with an engine."""
    if isinstance(target.engine, SparkEngine) and target.engine.is_unreachable:
        yield UNREACHABLE
    local = not (isinstance(landing, S3Location) and isinstance(warehouse, S3Location))
    if isinstance(target.engine, Submitted) and local:
        yield (
            f"`{target.engine.mode}` cannot reach folders of this machine",
            "put landing and warehouse on S3, or choose another `engine`",
        )


def _of_catalog(catalog: Catalog, warehouse: Location) -> Iterator[tuple[str, str]]:
    """What does not go together with a catalog."""
    glue, jdbc, uri = catalog.type == "glue", catalog.type == "jdbc", catalog.uri or _SQLITE
    on_server, on_s3 = jdbc and uri.startswith(POSTGRESQL), isinstance(warehouse, S3Location)
    if on_s3 and jdbc and not on_server:
        yield (
            "a catalog on one machine cannot keep tables on S3: its loss would lose them",
            "use `catalog: glue`, or a database: `uri: jdbc:postgresql://HOST:PORT/DATABASE`",
        )
    if glue and not on_s3:
        yield "the Glue catalog needs a warehouse on S3", "write `warehouse: s3://BUCKET/PREFIX`"
    if glue and catalog.uri is not None:
        yield "`uri` belongs to a JDBC catalog", "remove it; `aws.region` says where Glue is"
    if jdbc and not uri.startswith((_SQLITE, POSTGRESQL)):
        yield (
            f"there is no driver for the catalog {shown(uri.partition('//')[0])}",
            "use `jdbc:sqlite:FILE`, `jdbc:postgresql://HOST:PORT/DATABASE`, or another `type`",
        )
    if on_server:
        try:
            postgres_address(uri)
        except ValueError as error:
            fix = "write `jdbc:postgresql://HOST:PORT/DATABASE`, with `user` and `password`"
            yield str(error), fix
    if not on_server and (catalog.user is not None or catalog.password is not None):
        yield "`user` and `password` belong to a catalog on PostgreSQL", "remove them"
    if not glue and catalog.id is not None:
        yield "`id` belongs to a Glue catalog", "remove it, or write `type: glue`"
    yield from rest_contradictions(catalog, on_s3=on_s3)
    yield from _of_properties(catalog.properties)


def _of_properties(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Catalog properties that a project may not set."""
    if any(name.endswith("endpoint") for name in properties):
        # A property would bypass the rule that an endpoint is on this machine.
        yield "a catalog property sets an endpoint", "use `aws.endpoint`"
    elif {"jdbc.user", "jdbc.password"} & properties.keys():
        yield "a catalog property sets a login", "use `catalog.user` and `catalog.password`"
    for name in properties:
        if wrong := catalog_property_problem(name):
            yield wrong
