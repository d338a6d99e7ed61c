"""What tells the nodes of a cluster that something landed, before they look by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.cluster.cluster import Cluster
from polynya_constructs.cluster.group_function import group_function, group_role
from polynya_constructs.cluster.object_events import (
    hand_over_events,
    let_read_own_landing,
    own_landing_key,
)
from polynya_constructs.grants import allow
from polynya_constructs.removal import KEPT

_WINDOW: Final = cdk.Duration.seconds(1)
"""How long Lambda collects events: while objects land all the time, the function runs about once a
second, for a dollar a month."""

_OLD: Final = cdk.Duration.minutes(1)
"""The least that a queue keeps a message. By then nodes have looked by themselves."""


class ArrivalHints(Construct):
    """A function that puts hints on the workload stream: something landed at these prefixes.

    A node looks for new files every 30 s while nothing lands. With hints it looks some seconds
    after S3 tells of an object. They change nothing else: a hint that is lost, late or wrong costs
    seconds or a request. The landing bucket has to send its events to EventBridge.

    Of the objects that land only those of the cluster's own tasks count, as its leader wrote them
    in the coordination folder; all do until it has written, and when that cannot be read.

    `function` is the function.

    Example:
        >>> stream = WorkloadStream(stack, "HintedStream", encryption_key=key).stream
        >>> ArrivalHints(
        ...     stack,
        ...     "ArrivalHints",
        ...     cluster=cluster,
        ...     landing=landing,
        ...     prefixes=["shop/"],
        ...     configuration=lakehouse.configuration,
        ...     stream=stream,
        ...     encryption_key=key,
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        cluster: Cluster,
        landing: s3.IBucket,
        configuration: s3.IBucket,
        stream: kinesis.IStream,
        encryption_key: kms.IKey,
        prefixes: Sequence[str] = (),
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the function and what starts it.

        Args:
            scope: the parent.
            id_: unique below the parent.
            cluster: whose nodes are told.
            landing: the bucket in which changes land.
            configuration: the bucket in whose coordination folder the cluster's leader writes which
                objects are its own.
            stream: the workload stream, which the nodes read.
            encryption_key: that of the stream.
            prefixes: of the keys whose events count; default: all of them.
            log_retention: how long its log is kept; default one month.
            removal_policy: what becomes of its log with its stack; default: it is kept.
        """
        super().__init__(scope, id_)
        does = f"tells the nodes of {cluster.name} what landed"
        role = group_role(self, does)
        let_read_own_landing(role, configuration, cluster.name)
        allow(role, "TellNodes", actions=["kinesis:PutRecord"], resources=[stream.stream_arn])
        allow(
            role,
            "EncryptHints",
            actions=["kms:GenerateDataKey"],
            resources=[encryption_key.key_arn],
        )
        self.function = group_function(
            self,
            "wake.hints.handle",
            does,
            cluster=cluster,
            role=role,
            log_retention=log_retention,
            removal_policy=removal_policy,
            environment={
                "LANDING_BUCKET": landing.bucket_name,
                "CONFIGURATION_BUCKET": configuration.bucket_name,
                "OWN_LANDING_KEY": own_landing_key(cluster.name),
                "STREAM_ARN": stream.stream_arn,
            },
        )
        hand_over_events(
            self,
            self.function,
            role,
            watched={landing: prefixes},
            description=f"Polynya: something landed that nodes of {cluster.name} may read",
            window=_WINDOW,
            kept=_OLD,
            taken=_OLD,
            lost="a hint that comes later than a minute is of no use to anybody",
        )
