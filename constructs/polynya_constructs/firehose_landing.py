"""Firehose into the landing bucket: records become files of JSON that a task reads."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_logs as logs
from constructs import Construct

from polynya_constructs.grants import allow, allow_objects, for_this_account
from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.patterns import ERRORS_FOLDER, LANDING_FOLDER
from polynya_constructs.removal import KEPT

_Delivery: TypeAlias = firehose.CfnDeliveryStream


class FirehoseLanding(Construct):
    """A delivery stream whose records land as lines of gzipped JSON below one prefix.

    Producers put records (`firehose:PutRecordBatch`), or Firehose reads a Kinesis data stream; the
    key of an encrypted one has to let the role decrypt. A file is written when it is full or old
    enough, below `PREFIX/YYYY/MM/DD/HH/`; names sort by time. Firehose may deliver a record twice,
    so the task needs keys. `stream` and `role` are what was made.

    Example:
        >>> FirehoseLanding(stack, "Web", name="web", prefix="web", lakehouse=lakehouse)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        prefix: str,
        lakehouse: Lakehouse,
        source: kinesis.IStream | None = None,
        buffer_seconds: int = 60,
        buffer_mb: int = 64,
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create them.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: of the delivery stream, unique in the account and region.
            prefix: folder of the landing bucket, without a slash at either end.
            lakehouse: whose landing bucket it is.
            source: read from this stream; default: producers put records.
            buffer_seconds: how old the first record of a file may become, 0 to 900; default 60.
            buffer_mb: how large a file may become before it is packed, 1 to 128; default 64.
            log_retention: of its errors; default one month.
            removal_policy: what becomes of that log with its stack; default: it is kept.

        Raises:
            ValueError: for a prefix that is not a folder of its own, or a buffer out of its range.
        """
        super().__init__(scope, id_)
        if not re.fullmatch(LANDING_FOLDER, prefix):
            raise ValueError(f"prefix is {prefix!r}; write folders of A-Z a-z 0-9 _ - such as a/b")
        if not 0 <= buffer_seconds <= 900:
            raise ValueError(f"buffer_seconds is {buffer_seconds}; it has to be 0 to 900")
        if not 1 <= buffer_mb <= 128:
            raise ValueError(f"buffer_mb is {buffer_mb}; it has to be 1 to 128")
        log_group = logs.LogGroup(
            self, "Errors", retention=log_retention, removal_policy=removal_policy
        )
        log_stream = logs.LogStream(self, "Delivery", log_group=log_group)
        self.role = self._role(name, prefix, lakehouse, log_group)
        landed = _Delivery.ExtendedS3DestinationConfigurationProperty(
            bucket_arn=lakehouse.landing.bucket_arn,
            role_arn=self.role.role_arn,
            prefix=f"{prefix}/",
            error_output_prefix=f"{ERRORS_FOLDER}/{prefix}/!{{firehose:error-output-type}}/",
            buffering_hints=_Delivery.BufferingHintsProperty(
                interval_in_seconds=buffer_seconds, size_in_m_bs=buffer_mb
            ),
            compression_format="GZIP",
            file_extension=".json.gz",
            processing_configuration=_a_line_for_each_record(),
            cloud_watch_logging_options=_Delivery.CloudWatchLoggingOptionsProperty(
                enabled=True,
                log_group_name=log_group.log_group_name,
                log_stream_name=log_stream.log_stream_name,
            ),
        )
        self.stream = firehose.CfnDeliveryStream(
            self,
            "Stream",
            delivery_stream_name=name,
            extended_s3_destination_configuration=landed,
            **(self._read(source) if source else _accept(lakehouse)),
        )
        self.stream.node.add_dependency(self.role)
        if source:
            cdk.Validations.of(self.stream).acknowledge(
                cdk.Acknowledgment(
                    id="AwsSolutions-KDF1",
                    reason="records wait in the stream that is read, encrypted as its owner chose",
                )
            )

    def _read(self, source: kinesis.IStream) -> dict[str, Any]:
        """Let the role read a stream (Firehose Developer Guide, "Kinesis Data Streams source")."""
        allow(
            self.role,
            "ReadStream",
            actions=[
                "kinesis:DescribeStream",
                "kinesis:GetRecords",
                "kinesis:GetShardIterator",
                "kinesis:ListShards",
            ],
            resources=[source.stream_arn],
        )
        read = _Delivery.KinesisStreamSourceConfigurationProperty(
            kinesis_stream_arn=source.stream_arn, role_arn=self.role.role_arn
        )
        return {
            "delivery_stream_type": "KinesisStreamAsSource",
            "kinesis_stream_source_configuration": read,
        }

    def _role(
        self, name: str, prefix: str, lakehouse: Lakehouse, log_group: logs.LogGroup
    ) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=for_this_account(self, "firehose.amazonaws.com"),
            description=f"Polynya: delivery stream {name}",
        )
        landing = lakehouse.landing
        write = ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"]
        allow_objects(role, "Land", landing, f"{prefix}/*", write)
        allow_objects(role, "Errors", landing, f"{ERRORS_FOLDER}/{prefix}/*", write)
        allow(
            role,
            "Bucket",
            actions=["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
            resources=[landing.bucket_arn],
        )
        keys = {(landing.encryption_key or lakehouse.key).key_arn, lakehouse.key.key_arn}
        allow(
            role,
            "UseKeys",
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=sorted(keys),
        )
        allow(
            role,
            "Log",
            actions=["logs:PutLogEvents"],
            resources=[log_group.log_group_arn],
            wildcard="the streams of one log group",
        )
        return role


def _accept(lakehouse: Lakehouse) -> dict[str, Any]:
    """Producers put records, which wait encrypted with the key of the lakehouse."""
    return {
        "delivery_stream_type": "DirectPut",
        "delivery_stream_encryption_configuration_input": (
            _Delivery.DeliveryStreamEncryptionConfigurationInputProperty(
                key_type="CUSTOMER_MANAGED_CMK", key_arn=lakehouse.key.key_arn
            )
        ),
    }


def _a_line_for_each_record() -> _Delivery.ProcessingConfigurationProperty:
    """Firehose would write records one after the other."""
    newline = _Delivery.ProcessorParameterProperty(
        parameter_name="Delimiter", parameter_value="\\n"
    )
    return _Delivery.ProcessingConfigurationProperty(
        enabled=True,
        processors=[
            _Delivery.ProcessorProperty(type="AppendDelimiterToRecord", parameters=[newline])
        ],
    )
