"""One cluster of a deployment; there may be many beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.cluster.arrival_hints import ArrivalHints
from polynya_constructs.cluster.cluster import Cluster
from polynya_constructs.cluster.figures import FiguresWithoutNodes
from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.cluster.observability import ClusterObservability
from polynya_constructs.cluster.scaling import ONE_MINUTE, Scaling
from polynya_constructs.cluster.source_watch import SourceWatch
from polynya_constructs.cluster.spot_fallback import SpotFallback
from polynya_constructs.cluster.strategies import STRATEGIES
from polynya_constructs.cluster.wake import Wake
from polynya_constructs.launches import LaunchedNodes
from polynya_constructs.nodes.access import (
    Lakehouse,
    grant_configuration,
    grant_hearing,
    grant_tables,
)
from polynya_constructs.nodes.job_services import EmrJobs, GlueJobs, JobServices
from polynya_constructs.nodes.machine_image import PinnedImage
from polynya_constructs.nodes.mirroring import RedshiftTarget, grant_mirroring
from polynya_constructs.nodes.notifying import NotificationTopic, grant_notifying
from polynya_constructs.nodes.streams import (
    Brokers,
    KinesisSource,
    MskTopics,
    SourceBucket,
    StreamSecret,
    grant_kinesis,
    grant_landing,
    grant_msk,
    grant_secrets,
    grant_source_buckets,
    reach_brokers,
)
from polynya_constructs.nodes.submitting import EmrApplication, grant_submitting
from polynya_constructs.notifications import Notifications
from stacks.boot import cluster_boot, job_package
from stacks.handover import publish_launches, read_lakehouse, read_vpc
from stacks.settings.cluster import ClusterSettings
from stacks.settings.cluster_checks import (
    idle_nodes,
    shared_streams,
    unreached_mirrors,
    unread_streams,
)
from stacks.settings.mirrors import MirrorTargetSettings
from stacks.settings.stage import StageConfig
from stacks.settings.streams.settings import StreamSourceSettings

T = TypeVar("T")


class ClusterStack(cdk.Stack):
    """Nodes with their rights, scaling policies, Spot fallback, dashboard and alarms.

    Nothing in it holds data: it can be deleted and made again.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        stage: StageConfig,
        settings: ClusterSettings,
        removal_policy: cdk.RemovalPolicy,
        **options: Any,
    ) -> None:
        """Create the stack; `name` is that of the group and of everything that is called after it.

        `options` are those of `cdk.Stack`.
        """
        super().__init__(scope, id_, **options)
        strategy = STRATEGIES[settings.strategy]
        vpc, lakehouse = read_vpc(self, stage), read_lakehouse(self, stage)
        log_group = logs.LogGroup(
            self,
            "AgentLog",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=removal_policy,
        )
        image = stage.machine_images.get(settings.architecture)
        if image is None:
            cdk.Annotations.of(self).add_warning_v2(
                "polynya:machineImage",
                "the machine image is not pinned: a deploy replaces nodes whenever there is a "
                f"newer one. fix: make images STAGE={stage.name}",
            )
        self._warn(stage, settings)
        own = replace(lakehouse, databases=stage.databases_of(settings))
        self.jobs = self._job_services(name, vpc, own, settings)
        boot = cluster_boot(
            self,
            settings=settings,
            lakehouse=lakehouse,
            log_group=log_group,
            only_named=stage.shares_project(settings),
            jobs=self.jobs,
        )
        self.cluster = Cluster(
            self,
            "Cluster",
            name=name,
            vpc=vpc,
            strategy=strategy,
            capacity=settings.capacity,
            user_data=boot.user_data,
            machine_image=PinnedImage(image) if image else None,
            root_volume_gib=settings.root_volume_gib,
            session_manager=stage.network.session_manager,
            detailed_monitoring=settings.predictive is not None,
            code=boot.package.code.sha256 if boot.package is not None else None,
        )
        # Nodes agree in a folder that is called as their group: its name is in their metadata.
        grant_configuration(
            self.cluster.role, lakehouse, project=settings.project, coordination=name
        )
        grant_hearing(self.cluster.role, lakehouse)
        grant_tables(self.cluster.role, own, state=True)
        grant_submitting(
            self.cluster.role,
            applications=[
                EmrApplication(application_id=one.application_id, execution_role=one.execution_role)
                for one in settings.emr_serverless
            ]
            + ([self.jobs.application] if self.jobs and self.jobs.application else []),
            glue_jobs=[
                *settings.glue_jobs,
                *([self.jobs.glue_job] if self.jobs and self.jobs.glue_job else []),
            ],
        )
        if settings.sources:
            self._reads_sources(settings.sources, lakehouse.landing)
        self._reads_secrets(settings)
        if settings.mirrors:
            self._mirrors(settings.mirrors)
        self._notifies(settings)
        log_group.grant_write(self.cluster.role)
        boot.grant(self.cluster.role)
        if stage.network_agent:
            template_id = self.cluster.launch_template.launch_template_id or ""
            nodes = LaunchedNodes(template_id, self.cluster.role.role_arn)
            publish_launches(self, stage.name, settings.name, nodes)
        landing_prefixes = [f"{prefix}/" for prefix in settings.landing]
        if settings.arrival_hints and lakehouse.stream:
            ArrivalHints(
                self,
                "ArrivalHints",
                cluster=self.cluster,
                landing=lakehouse.landing,
                prefixes=landing_prefixes,
                configuration=lakehouse.configuration,
                stream=lakehouse.stream,
                encryption_key=lakehouse.key,
                removal_policy=removal_policy,
            )
        wake = None
        if strategy.starts_from_zero:
            wake = Wake(
                self,
                "Wake",
                cluster=self.cluster,
                # An edit of its tasks is work for a cluster, too.
                watched={
                    lakehouse.landing: landing_prefixes,
                    lakehouse.configuration: [f"{settings.project}/"],
                },
                landing=lakehouse.landing,
                configuration=lakehouse.configuration,
                streams=_counts(stage, settings),
                removal_policy=removal_policy,
            )
        scaling = Scaling(
            self,
            "Scaling",
            group=self.cluster.group,
            cluster=name,
            strategy=strategy,
            arrivals=wake.arrivals if wake else None,
            unhandled=wake.unhandled if wake else None,
            schedules=settings.bounds,
            predictive=settings.predictive,
        )
        fallback = SpotFallback(
            self, "SpotFallback", cluster=self.cluster, removal_policy=removal_policy
        )
        figures = FiguresWithoutNodes(
            self, "Figures", cluster=self.cluster, removal_policy=removal_policy
        )
        topic = None
        if not settings.notify:
            cdk.Annotations.of(self).add_warning_v2(
                "polynya:notify",
                f"nobody is notified of the alarms of cluster {settings.name}: they change state, "
                "and are events. fix: name addresses in its `notify`",
            )
        if settings.notify:
            topic = Notifications(
                self,
                "Notifications",
                email_addresses=settings.notify,
            ).topic
        self.observability = ClusterObservability(
            self,
            "Observability",
            cluster=self.cluster,
            scaling=scaling,
            fallback=fallback,
            figures=figures,
            oldest_age_minutes=settings.oldest_age_minutes,
            source_age_minutes=settings.source_age_minutes,
            captures=settings.captures is not None,
            streams=settings.streams is not None,
            mirrors=settings.mirrors is not None,
            sources=self._watches_sources(vpc, lakehouse, settings, removal_policy),
            topic=topic,
        )
        cdk.CfnOutput(self, "GroupName", value=name)

    def _job_services(
        self, name: str, vpc: ec2.IVpc, lakehouse: Lakehouse, settings: ClusterSettings
    ) -> JobServices | None:
        """Make the services to which nodes submit the work of tasks, if the cluster has any."""
        emr, glue = settings.jobs.emr_serverless, settings.jobs.glue
        packages = {
            each: job_package(self, f"Jobs-{each}", each) for each in settings.jobs.architectures
        }
        if not packages:
            return None
        return JobServices(
            self,
            "Jobs",
            name=name,
            vpc=vpc,
            lakehouse=lakehouse,
            project=settings.project,
            emr=EmrJobs(**emr.model_dump()) if emr else None,
            emr_package=packages[emr.architecture] if emr else None,
            glue=GlueJobs(**glue.model_dump()) if glue else None,
            glue_package=packages[Architecture.X86_64] if glue else None,
        )

    def _watches_sources(
        self,
        vpc: ec2.IVpc,
        lakehouse: Lakehouse,
        settings: ClusterSettings,
        removal_policy: cdk.RemovalPolicy,
    ) -> SourceWatch | None:
        """Look at what waits for an empty group outside of its buckets."""
        if not settings.looks_at_sources:
            return None
        sources = settings.sources
        msk = [MskTopics(**one.model_dump()) for one in _all(s.msk for s in sources)]
        secrets = [StreamSecret(**one.model_dump()) for one in _all(s.secrets for s in sources)]
        return SourceWatch(
            self,
            "Sources",
            cluster=self.cluster,
            vpc=vpc,
            configuration=lakehouse.configuration,
            in_network=any(one.brokers for one in sources),
            msk=msk,
            secrets=secrets,
            kinesis=any(one.kinesis for one in sources),
            minutes=settings.source_look_minutes,
            removal_policy=removal_policy,
        )

    def _reads_sources(self, sources: Sequence[StreamSourceSettings], landing: s3.IBucket) -> None:
        """Let the nodes read streams and databases, land them, and connect to their hosts."""
        role, group = self.cluster.role, self.cluster.security_group
        grant_landing(role, landing, _all(one.folders for one in sources))
        streams = [KinesisSource(**one.model_dump()) for one in _all(s.kinesis for s in sources)]
        grant_kinesis(role, streams)
        grant_msk(role, [MskTopics(**one.model_dump()) for one in _all(s.msk for s in sources)])
        buckets = [SourceBucket(**one.model_dump()) for one in _all(s.buckets for s in sources)]
        grant_source_buckets(role, buckets)
        hosts = [Brokers(**one.model_dump()) for one in _all(s.brokers for s in sources)]
        reach_brokers(group, hosts)
        if hosts:
            # Who runs them lets this group in; what exists is not changed from here.
            cdk.CfnOutput(self, "NodeSecurityGroupId", value=group.security_group_id)

    def _warn(self, stage: StageConfig, settings: ClusterSettings) -> None:
        """Tell what the cluster will not do as its settings may suggest."""
        for kind, said in (
            ("idleNodes", idle_nodes(settings)),
            ("unreadStreams", unread_streams(settings)),
            ("unreachedMirrors", unreached_mirrors(stage, settings)),
            ("sharedStreams", shared_streams(stage, settings)),
        ):
            if said:
                cdk.Annotations.of(self).add_warning_v2(f"polynya:{kind}", said)

    def _reads_secrets(self, settings: ClusterSettings) -> None:
        """Let the nodes read the secrets that sources, mirrors and channels name."""
        others = (settings.mirrors, settings.notifications)
        named = [
            *(one.secrets for one in settings.sources),
            *(one.secrets for one in others if one is not None),
        ]
        secrets = [StreamSecret(**one.model_dump()) for one in _all(named)]
        grant_secrets(self.cluster.role, secrets)

    def _notifies(self, settings: ClusterSettings) -> None:
        """Let the nodes publish to the topics that channels name."""
        if settings.notifications:
            topics = [one.model_dump() for one in settings.notifications.topics]
            grant_notifying(self.cluster.role, [NotificationTopic(**one) for one in topics])

    def _mirrors(self, mirrors: MirrorTargetSettings) -> None:
        """Let the nodes keep views in Redshift, as a user that is called as their role."""
        targets = [RedshiftTarget(**one.model_dump()) for one in mirrors.redshift]
        grant_mirroring(self.cluster.role, targets)
        if targets:
            cdk.CfnOutput(self, "NodeRoleName", value=self.cluster.role.role_name)


def _all(each: Iterable[Iterable[T]]) -> list[T]:
    return list(dict.fromkeys(chain.from_iterable(each)))


def _counts(stage: StageConfig, settings: ClusterSettings) -> list[cloudwatch.Metric]:
    """Counts of the records that delivery streams hold back for longer than an alarm is late."""
    return [
        cloudwatch.Metric(
            namespace="AWS/Kinesis" if each.source_arn else "AWS/Firehose",
            metric_name="IncomingRecords",
            dimensions_map={"StreamName": each.source_arn.rpartition("/")[2]}
            if each.source_arn
            else {"DeliveryStreamName": f"polynya-{stage.name}-{each.name}"},
            statistic="Sum",
            period=ONE_MINUTE,
        )
        for each in stage.streams_that_wake(settings)
    ]
