"""The events of objects that land, collected in a queue and handed to a function in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from polynya_constructs.coordination import COORDINATION_PREFIX
from polynya_constructs.grants import allow

_BATCH: Final = 10_000


def hand_over_events(
    scope: Construct,
    function: lambda_.Function,
    role: iam.Role,
    *,
    watched: Mapping[s3.IBucket, Sequence[str]],
    description: str,
    window: cdk.Duration,
    kept: cdk.Duration,
    taken: cdk.Duration,
    lost: str,
) -> sqs.Queue:
    """Hand a function the events of objects that are made in buckets which send them.

    A queue collects them, for a function that ran for each object would need a thousand processes
    where a thousand objects land in a second, and a new account runs ten at once.

    Args:
        scope: the parent of the queue, the rule and the mapping.
        function: gets batches of up to 10,000 events or 6 MB.
        role: of the function; it gets the rights that Lambda needs to read the queue.
        watched: buckets, each with the prefixes of the keys that count; none: all of them.
        description: of the rule.
        window: how long Lambda collects events, after the first one of a batch.
        kept: how long an event that was not taken stays in the queue.
        taken: how long an event that a failed function took is hidden.
        lost: why an event that was never handled needs no second queue.
    """
    queue = sqs.Queue(
        scope,
        "Events",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=kept,
        visibility_timeout=taken,
    )
    cdk.Validations.of(queue).acknowledge(
        cdk.Acknowledgment(id="AwsSolutions-SQS3", reason=lost),
    )
    allow(
        role,
        "TakeEvents",
        actions=["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
        resources=[queue.queue_arn],
    )
    source = lambda_.EventSourceMapping(
        scope,
        "Batches",
        target=function,
        event_source_arn=queue.queue_arn,
        batch_size=_BATCH,
        max_batching_window=window,
        max_concurrency=2,  # the least that there is
    )
    source.node.add_dependency(role)
    events.Rule(
        scope,
        "Landed",
        description=description,
        event_pattern=events.EventPattern(
            source=["aws.s3"],
            detail_type=["Object Created"],
            detail=_detail(watched),
        ),
        targets=[targets.SqsQueue(queue)],
    )
    return queue


def _detail(watched: Mapping[s3.IBucket, Sequence[str]]) -> dict[str, Any]:
    """What an event says of an object that counts.

    EventBridge takes `$or` with a single item for the name of a field, and matches nothing ("OR
    relationship", README of aws/event-ruler).
    """
    each_bucket: list[dict[str, Any]] = [
        {
            "bucket": {"name": [bucket.bucket_name]},
            **({"object": {"key": [{"prefix": each} for each in prefixes]}} if prefixes else {}),
        }
        for bucket, prefixes in watched.items()
    ]
    return each_bucket[0] if len(each_bucket) == 1 else {"$or": each_bucket}


def own_landing_key(cluster: str) -> str:
    """Key of the document in which the leader of a cluster names the prefixes of its tasks.

    `cluster` is the name of its group, under which its nodes agree.
    """
    return f"{COORDINATION_PREFIX}{cluster}/landing"


def let_read_own_landing(role: iam.Role, configuration: s3.IBucket, cluster: str) -> None:
    """Let a function read that document in the configuration bucket."""
    let_read_document(role, configuration, own_landing_key(cluster), "OwnLanding")


def let_read_document(role: iam.Role, configuration: s3.IBucket, key: str, what: str) -> None:
    """Let a function read one object of the configuration bucket; `what` names the rights."""
    document = configuration.arn_for_objects(key)
    allow(role, f"Read{what}", actions=["s3:GetObject"], resources=[document])
    if configuration.encryption_key:
        of = [configuration.encryption_key.key_arn]
        allow(role, f"Decrypt{what}", actions=["kms:Decrypt"], resources=of)
