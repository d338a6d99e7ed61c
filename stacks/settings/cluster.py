"""`clusters` and `network_agent` of a stage file: which nodes there are."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from polynya.model.config.fields import Frozen, Name, RelativePath
from polynya_constructs.cluster.capacity import Capacity, SpotAllocation
from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.cluster.schedule import (
    Predictive,
    ScheduledBounds,
    check_predictive,
    check_schedules,
)
from polynya_constructs.cluster.strategies import STRATEGIES, StrategyName
from stacks.settings.fields import (
    ClusterName,
    ConfigurationPrefix,
    DatabaseName,
    EmailAddress,
    EmrApplicationId,
    EmrRelease,
    GlueJobName,
    GlueWorker,
    JobCode,
    JobRoleArn,
    LandingFolder,
)
from stacks.settings.mirrors import MirrorTargetSettings
from stacks.settings.notifications import NotificationTargetSettings
from stacks.settings.streams.settings import CaptureSourceSettings, StreamSourceSettings

# YAML reads `true` and `yes` as a truth value, which Python counts as 1.
Count = Annotated[int, Field(ge=0, strict=True)]


class ScheduleSettings(Frozen):
    """Bounds of a cluster that change by the clock."""

    name: str = Field(description="Its name, unique in the cluster.")
    cron: str = Field(description="When, five fields as cron reads them, such as `0 6 * * 1-5`.")
    time_zone: str = Field(default="Etc/UTC", description="Of `cron`, such as `Europe/Berlin`.")
    minimum: Count | None = Field(default=None, description="Nodes at least from then on.")
    maximum: Count | None = Field(default=None, description="Nodes at most from then on.")


class EmrApplicationSettings(Frozen):
    """An EMR Serverless application to which the nodes of a cluster submit jobs."""

    application_id: EmrApplicationId = Field(description="Its id, as tasks name it.")
    execution_role: JobRoleArn = Field(description="ARN of the role of the jobs, as tasks name it.")
    code: tuple[JobCode, ...] = Field(
        min_length=1,
        description="Objects in S3, or prefixes that end with a slash, of which tasks may name "
        "`entry_point` and `environment`. Whoever writes there has the rights of the role.",
    )


class EmrJobsSettings(Frozen):
    """The EMR Serverless application that the stage makes for a cluster."""

    release: EmrRelease = Field(
        default="emr-7.10.0",
        description="Release of EMR, 7.10.0 or newer: its image has Python 3.11 and Java 17.",
    )
    architecture: Architecture = Field(
        default=Architecture.ARM64, description="Processors of its workers."
    )
    max_vcpu: int = Field(
        default=64, ge=4, le=4000, description="Of all workers together, 8 GB of memory for each."
    )
    idle_minutes: int = Field(
        default=10, ge=1, le=10_080, description="Until an application without a job stops."
    )


class GlueJobsSettings(Frozen):
    """The Glue job that the stage makes for a cluster."""

    worker_type: GlueWorker = Field(
        default="G.1X", description="Type of the workers of tasks that name none."
    )
    concurrent_runs: int = Field(
        default=50, ge=1, le=1000, description="Runs at the same time, each of one dataset."
    )


class JobsSettings(Frozen):
    """Services that the stage makes for the work of tasks, with script, archive and role."""

    emr_serverless: EmrJobsSettings | None = Field(
        default=None,
        description="An EMR Serverless application, for `engine: emr_serverless`. Default: none.",
    )
    glue: GlueJobsSettings | None = Field(
        default=None, description="A Glue job, for `engine: glue`. Default: none."
    )

    @property
    def architectures(self) -> tuple[Architecture, ...]:
        """Processors that archives are built for: Glue has x86_64 only."""
        of_emr = () if self.emr_serverless is None else (self.emr_serverless.architecture,)
        of_glue = () if self.glue is None else (Architecture.X86_64,)
        return tuple(dict.fromkeys((*of_emr, *of_glue)))


class ClusterSettings(Frozen):
    """One cluster; what is left out comes from its strategy."""

    name: ClusterName = Field(description="Its name, unique in the stage.")
    project: ConfigurationPrefix = Field(
        default="project",
        description="Where its tasks lie in the configuration bucket: a prefix.",
    )
    target: Name | None = Field(
        default=None, description="Target of that project; default: its only one."
    )
    landing: tuple[LandingFolder, ...] = Field(
        default=(),
        description="Folders of the landing bucket in which its tasks look: the cluster gets no "
        "events of others, and no delivery stream into others wakes it. Only what lands for its "
        "tasks wakes an empty group and keeps its last node. Default: events of the whole bucket.",
    )
    databases: tuple[DatabaseName, ...] | None = Field(
        default=None,
        description="Databases of the stage whose tables its nodes keep, one for each `schema` of "
        "its tasks; they may write no others. Default: all, where it is the only cluster.",
    )
    boot: RelativePath | None = Field(
        default=None,
        description="A shell script of yours that each node runs at its first start, below the "
        "project's folder; it has to complete the lifecycle hook `ready`. Default: Polynya's.",
    )
    strategy: StrategyName = Field(
        default=StrategyName.LOW_LATENCY, description="How cost is weighed against delay."
    )
    maximum: Count = Field(default=1, description="Nodes at most; they share the tasks.")
    minimum: Count | None = Field(default=None, description="Nodes at least.")
    datasets: Annotated[int, Field(ge=1, strict=True)] | None = Field(
        default=None,
        description="How many datasets its tasks keep, about: more nodes than that are of no use, "
        "and synthesis warns of them.",
    )
    on_demand_base: Count | None = Field(
        default=None, description="Nodes that are always On-Demand."
    )
    on_demand_percentage: Count | None = Field(
        default=None, description="Part of the other nodes that is On-Demand."
    )
    architecture: Architecture = Field(
        default=Architecture.ARM64, description="Processors of all nodes."
    )
    instance_types: tuple[str, ...] | None = Field(
        default=None, description="Default: six with 4 vCPU and 16 or 32 GiB."
    )
    spot_allocation: SpotAllocation = Field(
        default=SpotAllocation.PRICE_CAPACITY_OPTIMIZED, description="How Spot pools are chosen."
    )
    root_volume_gib: int = Field(
        default=50, ge=8, le=16_384, description="Size of each node's encrypted root volume."
    )
    schedules: tuple[ScheduleSettings, ...] = Field(
        default=(), description="Other bounds from a time of the week on."
    )
    predictive: Predictive | None = Field(
        default=None, description="Forecast the load from the days before; default: off."
    )
    jobs: JobsSettings = Field(
        default_factory=JobsSettings,
        description="Services that the stage makes for the work of its tasks. Default: none.",
    )
    emr_serverless: tuple[EmrApplicationSettings, ...] = Field(
        default=(), description="Applications to which its nodes may submit the work of tasks."
    )
    glue_jobs: tuple[GlueJobName, ...] = Field(
        default=(), description="Glue jobs of which its nodes may start runs."
    )
    streams: StreamSourceSettings | None = Field(
        default=None, description="What its nodes read streams from; default: they read none."
    )
    captures: CaptureSourceSettings | None = Field(
        default=None, description="Databases that its nodes capture; default: they capture none."
    )
    mirrors: MirrorTargetSettings | None = Field(
        default=None,
        description="What its nodes use to keep mirrors in Snowflake, Redshift and Databricks; "
        "default: nothing.",
    )
    notifications: NotificationTargetSettings | None = Field(
        default=None,
        description="What its nodes use to notify: topics of SNS, and secrets of channels; "
        "default: nothing.",
    )
    source_look_minutes: Annotated[int, Field(ge=0, le=60, strict=True)] = Field(
        default=1,
        description="While the group has no node, a function looks this often, in minutes, at what "
        "waits at the sources of its tasks and at due schedules, and starts the first node. Only "
        "for a strategy that ends the last node. `0`: never.",
    )
    arrival_hints: bool = Field(
        default=False,
        description="Let S3 tell its nodes of objects that land: an idle task finds a file within "
        "seconds instead of half a minute. Costs about $1.50 for a million objects.",
    )
    oldest_age_minutes: int = Field(
        default=60, ge=1, description="An alarm tells when landed data waits longer."
    )
    source_age_minutes: int = Field(
        default=15,
        ge=1,
        description="An alarm tells when a change of a database, or a record of a stream, waits "
        "longer before it lands.",
    )

    notify: tuple[EmailAddress, ...] = Field(
        default=(), description="Who gets its alarms by email."
    )

    @property
    def sources(self) -> tuple[StreamSourceSettings, ...]:
        """What its nodes read and land by themselves: streams, and databases as if they were."""
        captured = None if self.captures is None else self.captures.as_streams
        return tuple(one for one in (self.streams, captured) if one is not None)

    @property
    def looks_at_sources(self) -> bool:
        """Whether what waits at a source starts its first node."""
        return STRATEGIES[self.strategy].starts_from_zero and self.source_look_minutes > 0

    @property
    def capacity(self) -> Capacity:
        """The settings with what the strategy adds; CapacityError when they cannot be."""
        return Capacity.of(
            STRATEGIES[self.strategy],
            maximum=self.maximum,
            minimum=self.minimum,
            on_demand_base=self.on_demand_base,
            on_demand_percentage=self.on_demand_percentage,
            architecture=self.architecture,
            instance_types=self.instance_types,
            spot_allocation=self.spot_allocation,
        )

    @property
    def bounds(self) -> tuple[ScheduledBounds, ...]:
        """The schedules; CapacityError when they, or a forecast, cannot be."""
        bounds = tuple(ScheduledBounds(**schedule.model_dump()) for schedule in self.schedules)
        check_schedules(bounds, self.capacity, STRATEGIES[self.strategy])
        if self.predictive:
            check_predictive(self.capacity, STRATEGIES[self.strategy])
        return bounds


class NetworkAgentSettings(Frozen):
    """The network integration agent."""

    boot: RelativePath | None = Field(
        default=None,
        description="Shell script of yours that it runs at its first start. Default: Polynya's.",
    )
    notify: tuple[EmailAddress, ...] = Field(
        default=(), description="Who gets its alarms by email."
    )
    instance_type: str = Field(default="t4g.small", description="Its instance type.")
