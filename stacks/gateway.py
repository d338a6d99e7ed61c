"""The network integration agent of a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from polynya_constructs.cluster.instance_types import architecture_of
from polynya_constructs.network_agent import NetworkAgent
from polynya_constructs.nodes.machine_image import PinnedImage
from polynya_constructs.notifications import Notifications
from stacks.boot import network_agent_boot
from stacks.handover import read_lakehouse, read_launches, read_vpc
from stacks.server import ServerInstanceParts, serve_on, served_project, server_name
from stacks.settings.cluster import NetworkAgentSettings
from stacks.settings.stage import StageConfig


class GatewayStack(cdk.Stack):
    """One small instance that carries out commands for clusters; it may read no data.

    Unless the server of the stage runs on it.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        stage: StageConfig,
        settings: NetworkAgentSettings,
        clusters: Sequence[str],
        removal_policy: cdk.RemovalPolicy,
        **options: Any,
    ) -> None:
        """Create the stack; `clusters` are the names of their groups.

        `options` are those of `cdk.Stack`.
        """
        super().__init__(scope, id_, **options)
        lakehouse = read_lakehouse(self, stage)
        configuration = lakehouse.configuration
        log_group = logs.LogGroup(
            self,
            "AgentLog",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=removal_policy,
        )
        server = stage.server if stage.server and stage.server.node == "network_agent" else None
        boot = network_agent_boot(
            self,
            settings=settings,
            configuration=configuration,
            clusters=clusters,
            log_group=log_group,
            served=served_project(stage, server, configuration) if server else None,
            name=server_name(stage),
        )
        image = stage.machine_images.get(architecture_of(settings.instance_type))
        vpc = read_vpc(self, stage)
        agent = NetworkAgent(
            self,
            "Agent",
            name=name,
            vpc=vpc,
            user_data=boot.user_data,
            instance_type=settings.instance_type,
            machine_image=PinnedImage(image) if image else None,
            session_manager=stage.network.session_manager or server is not None,
        )
        agent.grant_commands(
            configuration,
            configuration.encryption_key or lakehouse.key,
            clusters,
            [read_launches(self, stage.name, each.name) for each in stage.clusters],
        )
        log_group.grant_write(agent.role)
        boot.grant(agent.role)
        topic = None
        if settings.notify:
            topic = Notifications(
                self,
                "Notifications",
                email_addresses=settings.notify,
            ).topic
        # A script of the user's may run something else, which says nothing of clusters.
        for cluster in clusters if settings.boot is None else ():
            agent.alarm(cluster, topic)
        if server:
            parts = ServerInstanceParts(agent.role, agent.group, agent.template, vpc)
            serve_on(
                self,
                parts,
                stage=stage,
                settings=server,
                lakehouse=lakehouse,
                topics=[topic] if topic else [],
            )
        cdk.CfnOutput(self, "GroupName", value=name)
