"""One stage: every stack of one copy of the lakehouse."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from polynya_constructs.removal import data_removal_policy
from stacks.cluster import ClusterStack
from stacks.consumption import ConsumptionStack
from stacks.gateway import GatewayStack
from stacks.network import NetworkStack
from stacks.server import ServerStack
from stacks.settings.stage import StageConfig
from stacks.storage import StorageStack
from stacks.tags import tag_application


class PolynyaStage(cdk.Stage):
    """What a stage file describes. It is the same, deployed from a workstation or a pipeline.

    Stacks are called `polynya-STAGE-PART` whoever deploys them, so that one can take over from the
    other.
    """

    def __init__(self, scope: Construct, *, settings: StageConfig) -> None:
        """Create the stage below `scope`; its id is its name."""
        environment = cdk.Environment(account=settings.account, region=settings.region)
        super().__init__(scope, settings.name, env=environment)
        removal_policy = data_removal_policy(self, asked=settings.remove_data, stage=settings.name)
        prefix = f"polynya-{settings.name}"
        self.network = NetworkStack(
            self,
            "Network",
            stage=settings,
            removal_policy=removal_policy,
            stack_name=f"{prefix}-network",
            description=f"Polynya {settings.name}: private network",
        )
        self.storage = StorageStack(
            self,
            "Storage",
            settings=settings,
            removal_policy=removal_policy,
            stack_name=f"{prefix}-storage",
            description=f"Polynya {settings.name}: key, buckets, stream and databases",
        )
        self._nodes(settings, prefix, removal_policy)
        if settings.athena.enabled or settings.consumption.any:
            ConsumptionStack(
                self,
                "Consumption",
                name=prefix,
                stage=settings,
                removal_policy=removal_policy,
                stack_name=f"{prefix}-consumption",
                description=f"Polynya {settings.name}: engines that query and feed the lakehouse",
            )
        for stack in self.node.children:
            if isinstance(stack, ClusterStack | ConsumptionStack | GatewayStack | ServerStack):
                # What it reads of the two is there before it.
                stack.add_dependency(self.network)
                stack.add_dependency(self.storage)
            if isinstance(stack, GatewayStack):
                # It may launch what the groups launch that it changes.
                for other in self.node.children:
                    if isinstance(other, ClusterStack):
                        stack.add_dependency(other)
        tag_application(self)
        cdk.Tags.of(self).add("polynya:stage", settings.name)

    def _nodes(
        self,
        settings: StageConfig,
        prefix: str,
        removal_policy: cdk.RemovalPolicy,
    ) -> None:
        """Add clusters, network agent and server; they hold nothing that could be lost."""
        for cluster in settings.clusters:
            ClusterStack(
                self,
                f"Cluster-{cluster.name}",
                name=f"{prefix}-{cluster.name}",
                stage=settings,
                settings=cluster,
                removal_policy=removal_policy,
                stack_name=f"{prefix}-cluster-{cluster.name}",
                description=f"Polynya {settings.name}: cluster {cluster.name}",
            )
        if settings.network_agent:
            GatewayStack(
                self,
                "Gateway",
                name=f"{prefix}-gateway",
                stage=settings,
                settings=settings.network_agent,
                clusters=[f"{prefix}-{cluster.name}" for cluster in settings.clusters],
                removal_policy=removal_policy,
                stack_name=f"{prefix}-gateway",
                description=f"Polynya {settings.name}: network integration agent",
            )
        if settings.server and settings.server.node == "own":
            ServerStack(
                self,
                "Server",
                stage=settings,
                settings=settings.server,
                removal_policy=removal_policy,
                stack_name=f"{prefix}-server",
                description=f"Polynya {settings.name}: API and console",
            )
