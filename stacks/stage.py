"""One stage: every stack of one copy of the lakehouse."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from polynya_constructs.removal import data_removal_policy
from stacks.network import NetworkStack
from stacks.settings.stage import StageConfig
from stacks.storage import StorageStack


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
            settings=settings.network,
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
        cdk.Tags.of(self).add("polynya:stage", settings.name)
