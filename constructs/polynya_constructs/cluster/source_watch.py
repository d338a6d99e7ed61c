"""What starts the first node of an empty group: what waits at its sources, and due schedules."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackagePath, distribution
from pathlib import Path
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.cluster.cluster import GROUP_ARN_WILDCARD, Cluster
from polynya_constructs.cluster.group_function import FUNCTIONS, group_function, group_role
from polynya_constructs.cluster.object_events import let_read_document
from polynya_constructs.coordination import COORDINATION_PREFIX
from polynya_constructs.grants import allow
from polynya_constructs.network import node_subnets
from polynya_constructs.nodes.streams import MskTopics, StreamSecret, grant_msk_ends, grant_secrets
from polynya_constructs.removal import KEPT

# A look is over before the next one begins, and the inner function before the outer one.
_LOOK: Final = cdk.Duration.seconds(50)
_PROBE: Final = cdk.Duration.seconds(40)

CLIENTS: Final = (
    "asn1crypto", "kafka-python", "pg8000", "PyMySQL", "python-dateutil", "scramp", "six",
)  # fmt: skip
"""Distributions that the function in the network needs: pure Python, with what they need."""

_LEFT_OUT: Final = ("kafka/benchmarks/", "kafka/cli/", "kafka/admin/__main__")


def sources_key(cluster: str) -> str:
    """Key of the document in which the leader of a cluster writes what may wait for it.

    `cluster` is the name of its group, under which its nodes agree.
    """
    return f"{COORDINATION_PREFIX}{cluster}/sources"


class SourceWatch(Construct):
    """Functions that ask for one node when something waits at a source and the group asks for none.

    One runs by the clock, and ends at once while the group has nodes. It reads what the leader of
    the cluster wrote: schedules, Kinesis streams, brokers and databases, each with the place up to
    which it is read. With brokers or databases there is a second one in the subnets and with the
    security group of the nodes, so that whoever lets nodes in lets it in. It has no way to AWS and
    needs none: the first one asks it.

    `function` is the first one.

    Example:
        >>> SourceWatch(
        ...     stack,
        ...     "Sources",
        ...     cluster=cluster,
        ...     vpc=vpc,
        ...     configuration=lakehouse.configuration,
        ...     in_network=False,
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        cluster: Cluster,
        vpc: ec2.IVpc,
        configuration: s3.IBucket,
        in_network: bool,
        msk: Sequence[MskTopics] = (),
        secrets: Sequence[StreamSecret] = (),
        kinesis: bool = False,
        minutes: int = 1,
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the functions and their clock.

        Args:
            scope: the parent.
            id_: unique below the parent.
            cluster: whose group they wake.
            vpc: that of its nodes.
            configuration: the bucket in whose coordination folder its leader writes.
            in_network: whether it has sources to which nodes connect: brokers and databases.
            msk: topics of MSK that IAM lets nodes read; only their ends are asked for.
            secrets: entries of Secrets Manager with which its tasks log in.
            kinesis: whether it reads Kinesis streams.
            minutes: from one look to the next; default 1.
            log_retention: how long their logs are kept; default one month.
            removal_policy: what becomes of their logs with their stack; default: they are kept.

        Raises:
            ValueError: when `minutes` is not at least 1.
        """
        super().__init__(scope, id_)
        if minutes < 1:
            raise ValueError(f"minutes is {minutes}; it has to be 1 or more")
        self.minutes = minutes
        does = f"looks at the sources of {cluster.name}"
        role = self._role(cluster, does)
        let_read_document(role, configuration, sources_key(cluster.name), "OwnSources")
        grant_secrets(role, secrets)
        if kinesis:
            _let_count(role)
        environment = {
            "CONFIGURATION_BUCKET": configuration.bucket_name,
            "SOURCES_KEY": sources_key(cluster.name),
        }
        if in_network:
            probe = self._probe(cluster, vpc, msk, log_retention, removal_policy)
            environment["PROBE_FUNCTION"] = probe.function_name
            allow(
                role,
                "AskInNetwork",
                actions=["lambda:InvokeFunction"],
                resources=[probe.function_arn],
            )
        self.function = group_function(
            self,
            "wake.sources.handle",
            does,
            cluster=cluster,
            role=role,
            log_retention=log_retention,
            removal_policy=removal_policy,
            environment=environment,
            retry_attempts=0,  # the next look comes by itself
            timeout=_LOOK,
        )
        events.Rule(
            self,
            "Clock",
            description=f"Polynya: {does}",
            schedule=events.Schedule.rate(cdk.Duration.minutes(minutes)),
            targets=[targets.LambdaFunction(self.function, retry_attempts=0)],
        )

    def _role(self, cluster: Cluster, does: str) -> iam.Role:
        role = group_role(self, does)
        allow(
            role,
            "OwnGroup",
            actions=["autoscaling:CreateOrUpdateTags", "autoscaling:SetDesiredCapacity"],
            resources=[cluster.group_arn],
            wildcard=GROUP_ARN_WILDCARD,
        )
        allow(
            role,
            "ReadWhatCannotBeScoped",
            actions=["autoscaling:DescribeAutoScalingGroups"],
            resources=["*"],
            wildcard="Auto Scaling lets nobody scope its Describe actions",
        )
        return role

    def _probe(
        self,
        cluster: Cluster,
        vpc: ec2.IVpc,
        msk: Sequence[MskTopics],
        log_retention: logs.RetentionDays,
        removal_policy: cdk.RemovalPolicy,
    ) -> lambda_.Function:
        does = f"looks at brokers and databases of {cluster.name}"
        role = group_role(self, does, "ProbeRole")
        allow(
            role,
            "JoinNetwork",
            actions=[
                "ec2:AssignPrivateIpAddresses",
                "ec2:CreateNetworkInterface",
                "ec2:DeleteNetworkInterface",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSubnets",
                "ec2:UnassignPrivateIpAddresses",
            ],
            resources=["*"],
            wildcard="Lambda itself wants these to put a function into a network, unscoped",
        )
        grant_msk_ends(role, msk)
        log_group = logs.LogGroup(
            self, "ProbeLog", retention=log_retention, removal_policy=removal_policy
        )
        log_group.grant_write(role)
        return lambda_.Function(
            self,
            "Probe",
            description=f"Polynya: {does}",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            handler="wake.probe.handle",
            code=lambda_.Code.from_asset(str(_with_clients())),
            role=role,
            log_group=log_group,
            memory_size=256,
            timeout=_PROBE,
            retry_attempts=0,
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=node_subnets(vpc)),
            security_groups=[cluster.security_group],
            # Subnets with a route to the internet are public ones for the CDK. The function needs
            # no way there.
            allow_public_subnet=True,
        )


def _let_count(role: iam.Role) -> None:
    allow(
        role,
        "CountRecords",
        actions=["cloudwatch:GetMetricStatistics", "kinesis:ListStreams"],
        resources=["*"],
        wildcard="CloudWatch and Kinesis let nobody scope what reads metrics and lists names",
    )


@cache
def _with_clients() -> Path:
    """A folder with the code of `wake` and the clients, as they are installed here.

    They are what the lock file pins, and have no machine code, so they serve every processor.
    """
    # It lasts as long as this process, which is until the CDK has copied it.
    folder = Path(_scratch().name)
    shutil.copytree(
        FUNCTIONS / "wake", folder / "wake", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in CLIENTS:
        for file in distribution(name).files or ():
            if _is_code(file):
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(str(file.locate())), target)
    return folder


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="polynya-wake-")


def _is_code(file: PackagePath) -> bool:
    """Whether a file of a distribution is needed to run it, or has to go with it."""
    path = str(file)
    if ".dist-info/" in path:
        # Some ask for their own version.
        return file.name == "METADATA" or "LICENSE" in path
    return not path.startswith(("..", *_LEFT_OUT)) and file.suffix not in {".pyc", ".pyi"}
