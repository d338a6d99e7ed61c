"""The network integration agent of a deployment."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from constructs import Construct

from polynya_constructs.network_agent import NetworkAgent
from polynya_constructs.nodes.access import grant_configuration
from stacks.boot import boot_script
from stacks.handover import read_lakehouse, read_vpc
from stacks.settings.cluster import NetworkAgentSettings
from stacks.settings.stage import StageConfig


class GatewayStack(cdk.Stack):
    """One small instance that reads the configuration and follows the workload stream."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        stage: StageConfig,
        settings: NetworkAgentSettings,
        **options: Any,
    ) -> None:
        """Create the stack; `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        agent = NetworkAgent(
            self,
            "Agent",
            name=name,
            vpc=read_vpc(self, stage),
            user_data=boot_script(settings.boot),
            instance_type=settings.instance_type,
            session_manager=stage.network.session_manager,
        )
        grant_configuration(agent.role, read_lakehouse(self, stage), coordination="gateway")
        cdk.CfnOutput(self, "GroupName", value=name)
