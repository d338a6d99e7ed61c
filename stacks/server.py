"""The server of a deployment: `polynya serve` on an instance of its own, or the network agent's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct, IConstruct

from polynya_constructs.cluster.instance_types import architecture_of
from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.nodes.boot import ServedProject
from polynya_constructs.nodes.machine_image import PinnedImage
from polynya_constructs.nodes.serving import grant_serving
from polynya_constructs.nodes.streams import StreamSecret, grant_secrets
from polynya_constructs.notifications import Notifications
from polynya_constructs.server import ServerBalancer, ServerNode, server_alarm, tag_server
from stacks.boot import server_boot
from stacks.handover import read_lakehouse, read_vpc
from stacks.settings.server import ServerSettings
from stacks.settings.server_checks import served_cluster, unreached_login
from stacks.settings.stage import StageConfig


def server_name(stage: StageConfig) -> str:
    """The name of the server of a stage, in its metric and its alarm."""
    return f"polynya-{stage.name}-server"


def served_project(
    stage: StageConfig, settings: ServerSettings, configuration: s3.IBucket
) -> ServedProject:
    """What the server of a stage serves."""
    cluster = served_cluster(stage, settings)
    return ServedProject(
        configuration=configuration,
        project=settings.project,
        target=settings.target,
        cluster=f"polynya-{stage.name}-{cluster.name}" if cluster else None,
        port=settings.port,
        balanced=settings.load_balancer is not None,
        tables=settings.tables,
    )


@dataclass(frozen=True, slots=True)
class ServerInstanceParts:
    """The instance on which a server runs, and what has been made of it."""

    role: iam.Role
    group: autoscaling.AutoScalingGroup
    template: IConstruct
    vpc: ec2.IVpc


def serve_on(
    scope: Construct,
    parts: ServerInstanceParts,
    *,
    stage: StageConfig,
    settings: ServerSettings,
    lakehouse: Lakehouse,
    topics: Sequence[sns.ITopic] = (),
) -> None:
    """Give an instance the rights, the tags, the load balancer and the alarm of a server.

    `topics`: who is told, where the instance has a topic already.
    """
    served = served_project(stage, settings, lakehouse.configuration)
    cluster = served_cluster(stage, settings)
    of_cluster = stage.databases_of(cluster) if cluster else stage.catalog.all_databases
    grant_serving(
        parts.role,
        replace(lakehouse, databases=of_cluster),
        project=settings.project,
        cluster=served.cluster,
        captures=cluster.captures.folders if cluster and cluster.captures else (),
        tables=settings.tables,
    )
    grant_secrets(parts.role, [StreamSecret(**one.model_dump()) for one in settings.secrets])
    tag_server(parts.template, served)
    if balanced := settings.load_balancer:
        made = ServerBalancer(
            scope,
            "ServerBalancer",
            vpc=parts.vpc,
            group=parts.group,
            port=settings.port,
            certificate_arn=balanced.certificate_arn,
            networks=balanced.networks,
        )
        cdk.CfnOutput(scope, "ServerAddress", value=made.balancer.load_balancer_dns_name)
        if said := unreached_login(stage):
            cdk.Annotations.of(scope).add_warning_v2("polynya:unreachedLogin", said)
    topic = topics[0] if topics else None
    if settings.notify:
        topic = Notifications(scope, "ServerNotifications", email_addresses=settings.notify).topic
    server_alarm(scope, "ServerAnswers", name=server_name(stage), topic=topic)


class ServerStack(cdk.Stack):
    """One small instance that serves the API and the console of a project."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        stage: StageConfig,
        settings: ServerSettings,
        removal_policy: cdk.RemovalPolicy,
        **options: Any,
    ) -> None:
        """Create the stack; `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        lakehouse, vpc = read_lakehouse(self, stage), read_vpc(self, stage)
        log_group = logs.LogGroup(
            self,
            "ServerLog",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=removal_policy,
        )
        name = server_name(stage)
        architecture = architecture_of(settings.instance_type)
        boot = server_boot(
            self,
            architecture=architecture,
            served=served_project(stage, settings, lakehouse.configuration),
            name=name,
            log_group=log_group,
        )
        image = stage.machine_images.get(architecture)
        node = ServerNode(
            self,
            "Server",
            name=name,
            vpc=vpc,
            user_data=boot.user_data,
            instance_type=settings.instance_type,
            spot=settings.spot,
            root_volume_gib=settings.root_volume_gib,
            machine_image=PinnedImage(image) if image else None,
        )
        log_group.grant_write(node.role)
        boot.grant(node.role)
        parts = ServerInstanceParts(node.role, node.group, node.template, vpc)
        serve_on(self, parts, stage=stage, settings=settings, lakehouse=lakehouse)
        cdk.CfnOutput(self, "GroupName", value=name)
