"""The stream by which nodes tell each other their state and load."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from constructs import Construct

from polynya_constructs.removal import KEPT


class WorkloadStream(Construct):
    """A Kinesis data stream with a fixed number of shards, encrypted.

    `stream` is the stream. It is advisory: what is lost in it changes latency only, so it is no
    data to be kept for ever. Provisioned shards cost less than on-demand ones at its small load.

    Example:
        >>> stream = WorkloadStream(stack, "Workload", encryption_key=key).stream
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        encryption_key: kms.IKey,
        shards: int = 1,
        retention_hours: int = 24,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the stream.

        Args:
            scope: the parent.
            id_: unique below the parent. Renaming it replaces the stream.
            encryption_key: encrypts every record.
            shards: each carries 1 MB a second in and 5 reads a second; default 1.
            retention_hours: 24 to 8760; default 24.
            removal_policy: what becomes of it with its stack; default: it is kept.

        Raises:
            ValueError: when there is no shard or the retention is out of its range.
        """
        super().__init__(scope, id_)
        if shards < 1:
            raise ValueError(f"shards is {shards}; a stream has at least 1")
        if not 24 <= retention_hours <= 8760:
            raise ValueError(f"retention_hours is {retention_hours}; it has to be 24 to 8760")
        self.stream = kinesis.Stream(
            self,
            "Stream",
            stream_mode=kinesis.StreamMode.PROVISIONED,
            shard_count=shards,
            retention_period=cdk.Duration.hours(retention_hours),
            encryption=kinesis.StreamEncryption.KMS,
            encryption_key=encryption_key,
            removal_policy=removal_policy,
        )
        cdk.Validations.of(self.stream).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions-KDS3",
                reason="the key of the data, whose policy is ours, instead of the service's own",
            )
        )
