"""A stage file `config/NAME.yml`: one copy of the lakehouse in one account and region."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from polynya.model.config.fields import Frozen
from polynya_constructs.cluster.instance_types import Architecture, architecture_of
from stacks.settings.cluster import ClusterSettings, NetworkAgentSettings
from stacks.settings.consumption import (
    AthenaSettings,
    ConsumptionSettings,
    FirehoseSettings,
)
from stacks.settings.fields import (
    Account,
    BucketName,
    DatabaseName,
    KeyArn,
    MachineImageId,
    Region,
    StageName,
    StreamArn,
)
from stacks.settings.network import Calls, NetworkSettings
from stacks.settings.server import ServerSettings

_INTERNAL: Final = "_internal"
"""What a task adds to its `schema` for its internal tables, unless it says otherwise."""

Days = Annotated[int, Field(ge=1, le=3650)]


class ExistingBucket(Frozen):
    """A bucket that someone else runs; its policy, lifecycle and versions are theirs."""

    name: BucketName = Field(description="Its name.")
    key_arn: KeyArn | None = Field(
        default=None, description="The KMS key that encrypts it; none for SSE-S3."
    )


class BucketSettings(Frozen):
    """One bucket of data."""

    existing: ExistingBucket | None = Field(default=None, description="Use this bucket.")
    old_versions_days: Days | None = Field(
        default=None,
        description="How long an overwritten or deleted object can be brought back. Default: 30 "
        "days in landing, 365 in configuration, 7 in the warehouse.",
    )


class StorageSettings(Frozen):
    """Where data and configuration lie."""

    key_arn: KeyArn | None = Field(
        default=None, description="Encrypt with this KMS key; default: one is made."
    )
    landing: BucketSettings = Field(
        default_factory=BucketSettings, description="Where changes land."
    )
    configuration: BucketSettings = Field(
        default_factory=BucketSettings, description="Tasks, and the files by which nodes agree."
    )
    warehouse: BucketSettings = Field(
        default_factory=BucketSettings, description="The Iceberg tables."
    )
    access_log_days: Days = Field(
        default=90, description="How long the access logs of the buckets are kept."
    )


class StreamSettings(Frozen):
    """The workload stream: how nodes learn of each other."""

    enabled: bool = Field(
        default=True,
        description="Whether there is one. It is advisory, and nodes that are alone have nobody to "
        "tell; without it there is neither the stream to pay nor its endpoint.",
    )
    existing_arn: StreamArn | None = Field(default=None, description="Use this stream.")
    shards: int = Field(
        default=1, ge=1, le=200, description="One carries about 1 MB and 5 readers a second."
    )
    retention_hours: int = Field(default=24, ge=24, le=8760, description="How long it remembers.")


class CatalogSettings(Frozen):
    """The Glue Data Catalog."""

    databases: tuple[DatabaseName, ...] = Field(
        default=(),
        description="Databases to make, one for each `schema` of the tasks; beside each comes "
        "`NAME_internal`, where its tables lie. Names are unique in an account and region.",
    )

    existing_databases: tuple[DatabaseName, ...] = Field(
        default=(),
        description="Databases that are there already, such as those of a stage that was "
        "destroyed: their tables are kept and written, and no stack makes or removes them.",
    )

    readers_see_all: bool = Field(
        default=False,
        description="Whether who queries may list all databases and tables of the account and "
        "region, in place of those of the stage by name, which fill policies; the data that they "
        "read is that of the stage either way.",
    )

    @property
    def made_databases(self) -> tuple[str, ...]:
        """The databases to make and, beside each, the one of its internal tables."""
        return _with_internal(self.databases)

    @property
    def all_databases(self) -> tuple[str, ...]:
        """Every database whose tables nodes keep."""
        return _with_internal((*self.databases, *self.existing_databases))


def _with_internal(databases: tuple[str, ...]) -> tuple[str, ...]:
    pairs = ((n, n if n.endswith(_INTERNAL) else f"{n}{_INTERNAL}") for n in databases)
    return tuple(dict.fromkeys(name for pair in pairs for name in pair))


class QuotaSettings(Frozen):
    """What the account may run at once, in virtual processors of standard instance types."""

    spot_vcpus: int = Field(
        default=5, ge=0, description="All Standard Spot Instance Requests; new accounts have 5."
    )
    on_demand_vcpus: int = Field(
        default=5, ge=0, description="Running On-Demand Standard instances; new accounts have 5."
    )


class StageConfig(Frozen):
    """A whole stage file."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["stage"] = Field(description="Always `stage`.")
    name: StageName = Field(description="The name of the file without its ending.")
    account: Account | None = Field(
        default=None, description="12 digits in quotes. Default: that of your credentials."
    )
    region: Region | None = Field(default=None, description="Default: that of your credentials.")
    remove_data: bool = Field(
        default=False,
        description="First of the two keys without which nothing that holds data is ever deleted.",
    )
    network: NetworkSettings = Field(default_factory=NetworkSettings, description="The network.")
    storage: StorageSettings = Field(default_factory=StorageSettings, description="The buckets.")
    stream: StreamSettings = Field(default_factory=StreamSettings, description="The stream.")
    catalog: CatalogSettings = Field(default_factory=CatalogSettings, description="The catalog.")
    quotas: QuotaSettings = Field(
        default_factory=QuotaSettings, description="Service quotas of the account and region."
    )
    machine_images: dict[Architecture, MachineImageId] = Field(
        default_factory=dict,
        description="Image of the nodes for each of `arm64` and `x86_64`; default: the newest "
        "Amazon Linux 2023 at each deploy.",
    )
    clusters: tuple[ClusterSettings, ...] = Field(default=(), description="The groups of nodes.")
    network_agent: NetworkAgentSettings | None = Field(
        default=None, description="The network integration agent; default: none."
    )
    server: ServerSettings | None = Field(
        default=None, description="The API and the console of a project; default: none."
    )
    athena: AthenaSettings = Field(
        default_factory=AthenaSettings, description="The Athena workgroup."
    )
    consumption: ConsumptionSettings = Field(
        default_factory=ConsumptionSettings, description="Other engines; default: none."
    )

    def databases_of(self, cluster: ClusterSettings) -> tuple[str, ...]:
        """The databases whose tables the nodes of a cluster keep, internal ones too."""
        if cluster.databases is None:
            return self.catalog.all_databases
        return _with_internal(cluster.databases)

    def databases_read(self, named: tuple[str, ...] | None) -> tuple[str, ...]:
        """The databases whose tables an engine reads that names these; None names all."""
        return self.catalog.all_databases if named is None else _with_internal(named)

    def streams_that_wake(self, cluster: ClusterSettings) -> tuple[FirehoseSettings, ...]:
        """The delivery streams whose records wake a cluster before they land.

        Those that hold records back, into its `landing` if it names any.
        """
        held = self.consumption.held_back
        if not cluster.landing:
            return held
        return tuple(
            each for each in held if any(_overlap(each.prefix, one) for one in cluster.landing)
        )

    def shares_project(self, cluster: ClusterSettings) -> bool:
        """Whether another cluster has tasks of the same project."""
        return sum(one.project == cluster.project for one in self.clusters) > 1

    @property
    def image_architectures(self) -> tuple[Architecture, ...]:
        """The processors of everything that it starts: each needs an image."""
        used = {architecture for architecture, _ in self._groups}
        return tuple(each for each in Architecture if each in used)

    @property
    def package_architectures(self) -> tuple[Architecture, ...]:
        """The processors of everything that boots from Polynya's package."""
        used = {architecture for architecture, boot in self._groups if boot is None}
        return tuple(each for each in Architecture if each in used)

    @property
    def job_architectures(self) -> tuple[Architecture, ...]:
        """The processors of workers for which archives of jobs are built."""
        used = {one for cluster in self.clusters for one in cluster.jobs.architectures}
        return tuple(each for each in Architecture if each in used)

    @property
    def _groups(self) -> list[tuple[Architecture, str | None]]:
        """Processor and own boot script of each group that starts instances."""
        groups = [(cluster.architecture, cluster.boot) for cluster in self.clusters]
        if agent := self.network_agent:
            groups.append((architecture_of(agent.instance_type), agent.boot))
        if self.server and self.server.node == "own":
            groups.append((architecture_of(self.server.instance_type), None))
        return groups

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The interface endpoints to make."""
        return self.network.endpoints(self.calls)

    @property
    def calls(self) -> Calls:
        """Which services nodes call, of those that only some stages need."""
        streams = [one for each in self.clusters for one in each.sources]
        mirrors = [each.mirrors for each in self.clusters if each.mirrors]
        told = [each.notifications for each in self.clusters if each.notifications]
        return Calls(
            kinesis=self.stream.enabled or any(each.kinesis for each in streams),
            emr=any(each.emr_serverless or each.jobs.emr_serverless for each in self.clusters),
            secrets=any(one.secrets for one in streams)
            or bool(self.server and self.server.secrets)
            or any(one.secrets for one in mirrors)
            or any(one.secrets for one in told),
            redshift=any(each.redshift for each in mirrors),
            topics=any(each.topics for each in told),
            sessions=self.server is not None,
            identities=bool(self.server and self.server.iam_identities),
        )


def _overlap(one: str, other: str) -> bool:
    """Whether one of two folders is the other, or in it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
