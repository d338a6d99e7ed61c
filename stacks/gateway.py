"""The network integration agent of a deployment."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from polynya_constructs.network_agent import NetworkAgent
from polynya_constructs.node_access import Lakehouse, grant_configuration
from stacks.boot import boot_script
from stacks.settings.cluster import NetworkAgentSettings


class GatewayStack(cdk.Stack):
    """One small instance that reads the configuration and follows the workload stream."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        lakehouse: Lakehouse,
        settings: NetworkAgentSettings,
        **options: Any,
    ) -> None:
        """Create the stack; `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        agent = NetworkAgent(
            self,
            "Agent",
            name=name,
            vpc=vpc,
            user_data=boot_script(settings.boot),
            instance_type=settings.instance_type,
        )
        grant_configuration(agent.role, lakehouse)
        cdk.CfnOutput(self, "GroupName", value=name)
