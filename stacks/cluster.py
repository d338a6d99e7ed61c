"""One cluster of a deployment; there may be many beside each other."""

from __future__ import annotations

from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns
from constructs import Construct

from polynya_constructs.capacity import Capacity
from polynya_constructs.cluster import Cluster
from polynya_constructs.node_access import Lakehouse, grant_configuration, grant_tables
from polynya_constructs.observability import ClusterObservability
from polynya_constructs.scaling import Scaling
from polynya_constructs.spot_fallback import SpotFallback
from polynya_constructs.strategies import Strategy

REQUEST_METRICS_FILTER: Final = "EntireBucket"
"""Id of the landing bucket's request metrics."""


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
        vpc: ec2.IVpc,
        lakehouse: Lakehouse,
        strategy: Strategy,
        capacity: Capacity,
        user_data: ec2.UserData,
        machine_image: ec2.IMachineImage | None = None,
        root_volume_gib: int = 50,
        oldest_age_minutes: int = 60,
        topic: sns.ITopic | None = None,
        **options: Any,
    ) -> None:
        """Create the stack; `name` is that of the group and of everything that is called after it.

        `options` are those of `cdk.Stack`, all others those of the constructs.
        """
        super().__init__(scope, id_, **options)
        self.cluster = Cluster(
            self,
            "Cluster",
            name=name,
            vpc=vpc,
            strategy=strategy,
            capacity=capacity,
            user_data=user_data,
            machine_image=machine_image,
            root_volume_gib=root_volume_gib,
        )
        grant_configuration(self.cluster.role, lakehouse)
        grant_tables(self.cluster.role, lakehouse)
        scaling = Scaling(
            self,
            "Scaling",
            group=self.cluster.group,
            cluster=name,
            strategy=strategy,
            arrivals=landed_objects(lakehouse),
        )
        fallback = SpotFallback(self, "SpotFallback", cluster=self.cluster)
        self.observability = ClusterObservability(
            self,
            "Observability",
            cluster=self.cluster,
            scaling=scaling,
            fallback=fallback,
            oldest_age_minutes=oldest_age_minutes,
            topic=topic,
        )
        self.observability.log_group.grant_write(self.cluster.role)
        cdk.CfnOutput(self, "GroupName", value=name)


def landed_objects(lakehouse: Lakehouse) -> cloudwatch.Metric:
    """Objects a minute that land; S3 counts them once the bucket's request metrics are on."""
    return cloudwatch.Metric(
        namespace="AWS/S3",
        metric_name="PutRequests",
        dimensions_map={
            "BucketName": lakehouse.landing.bucket_name,
            "FilterId": REQUEST_METRICS_FILTER,
        },
        statistic="Sum",
        period=cdk.Duration.minutes(1),
    )
