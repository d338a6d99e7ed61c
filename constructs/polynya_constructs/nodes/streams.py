"""Rights of nodes that read streams: exactly what landings call, on what is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from polynya_constructs.grants import allow, allow_objects
from polynya_constructs.patterns import MANAGED_ENTRY, MSK_CLUSTER, SECURITY_GROUP, STREAM, TOPIC

_ANY: Final = "%"
_MADE_LATER: Final = "streams and topics come and go; the beginning of their names is given"


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisSource:
    """A Kinesis stream of this account; `%` in its name stands for any text.

    `region` is by default that of the stack, `key_arn` the KMS key that encrypts it, None for that
    of AWS. Raises ValueError for a name that cannot be.
    """

    name: str
    region: str | None = None
    key_arn: str | None = None

    def __post_init__(self) -> None:
        """Check the name."""
        _check(STREAM, self.name, "the name of a Kinesis stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class MskTopics:
    """Topics of an MSK cluster that asks IAM, and consumer groups; `%` stands for any text.

    Landings join no group. Raises ValueError for an ARN or a name that cannot be.
    """

    cluster_arn: str
    topics: Sequence[str]
    groups: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check them."""
        _check(MSK_CLUSTER, self.cluster_arn, "the ARN of an MSK cluster")
        for name in (*self.topics, *self.groups):
            _check(TOPIC, name, "the name of a topic or a group")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBucket:
    """A bucket of others; below `prefix` is read, and deleted only where `delete` says so."""

    name: str
    prefix: str = ""
    delete: bool = False
    key_arn: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSecret:
    """An entry of Secrets Manager, by name or ARN. Raises ValueError for what is neither."""

    name: str
    key_arn: str | None = None

    def __post_init__(self) -> None:
        """Check the name."""
        _check(MANAGED_ENTRY, self.name, "the name or the ARN of a secret")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """Brokers or a registry: their security group or their network, and the port.

    Raises ValueError unless exactly one of the two is given.
    """

    port: int
    security_group: str | None = None
    cidr: str | None = None

    def __post_init__(self) -> None:
        """Check that there is one place."""
        if (self.security_group is None) == (self.cidr is None):
            raise ValueError("brokers are in a security group or in a network")
        if self.security_group is not None:
            _check(SECURITY_GROUP, self.security_group, "a security group")


def grant_landing(role: iam.Role, landing: s3.IBucket, folders: Sequence[str]) -> None:
    """Let `role` put landed batches into folders of the landing bucket, and remove old ones."""
    if folders:
        keys = [f"{folder}/*" for folder in folders]
        allow_objects(role, "LandStreams", landing, keys, ["s3:DeleteObject", "s3:PutObject"])


def grant_kinesis(role: iam.Role, streams: Sequence[KinesisSource]) -> None:
    """Let `role` find and read Kinesis streams."""
    if not streams:
        return
    allow(
        role,
        "FindStreams",
        actions=["kinesis:ListStreams"],
        resources=["*"],
        wildcard="Kinesis lets nobody scope the list of names",
    )
    allow(
        role,
        "ReadStreams",
        actions=[
            "kinesis:DescribeStreamSummary",
            "kinesis:GetRecords",
            "kinesis:GetShardIterator",
            "kinesis:ListShards",
        ],
        resources=[
            _arn(role, "kinesis", f"stream/{_glob(one.name)}", one.region) for one in streams
        ],
        wildcard=_MADE_LATER,
    )
    stack = cdk.Stack.of(role)
    for number, region in enumerate(dict.fromkeys(one.region for one in streams)):
        keys = [one.key_arn for one in streams if one.region == region]
        _decrypt(role, f"DecryptStreams{number or ''}", "kinesis", region or stack.region, keys)


def grant_msk(role: iam.Role, clusters: Sequence[MskTopics]) -> None:
    """Let `role` connect to MSK clusters and read topics of them."""
    if not clusters:
        return
    allow(
        role,
        "ConnectToMsk",
        actions=["kafka-cluster:Connect"],
        resources=list(dict.fromkeys(one.cluster_arn for one in clusters)),
    )
    allow(
        role,
        "ReadTopics",
        actions=["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"],
        resources=[_below(one, "topic", name) for one in clusters for name in one.topics],
        wildcard=_MADE_LATER,
    )
    if groups := [_below(one, "group", name) for one in clusters for name in one.groups]:
        allow(
            role,
            "UseGroups",
            actions=["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"],
            resources=groups,
            wildcard="Spark gives each reading a group of its own; how its name begins is given",
        )


def grant_msk_ends(role: iam.Role, clusters: Sequence[MskTopics]) -> None:
    """Let `role` connect to MSK clusters and ask where topics of them end, and read no record."""
    if not clusters:
        return
    allow(
        role,
        "ConnectToMsk",
        actions=["kafka-cluster:Connect"],
        resources=list(dict.fromkeys(one.cluster_arn for one in clusters)),
    )
    allow(
        role,
        "DescribeTopics",
        actions=["kafka-cluster:DescribeTopic"],
        resources=[_below(one, "topic", name) for one in clusters for name in one.topics],
        wildcard=_MADE_LATER,
    )


def grant_source_buckets(role: iam.Role, buckets: Sequence[SourceBucket]) -> None:
    """Let `role` list and read what lies below the prefixes, and delete it where asked."""
    stack = cdk.Stack.of(role)
    for number, one in enumerate(buckets):
        suffix = str(number or "")
        arn = f"arn:{stack.partition}:s3:::{one.name}"
        allow(
            role,
            f"ListSource{suffix}",
            actions=["s3:ListBucket"],
            resources=[arn],
            conditions={"StringLike": {"s3:prefix": f"{one.prefix}/*"}} if one.prefix else None,
        )
        allow(
            role,
            f"ReadSource{suffix}",
            actions=["s3:GetObject", *(["s3:DeleteObject"] if one.delete else [])],
            resources=[f"{arn}/{one.prefix}/*" if one.prefix else f"{arn}/*"],
            wildcard="files come and go at run time; their bucket or prefix is named",
        )
    _decrypt(role, "DecryptSources", "s3", stack.region, [one.key_arn for one in buckets])


def grant_secrets(role: iam.Role, secrets: Sequence[StreamSecret]) -> None:
    """Let `role` read secrets."""
    if secrets:
        allow(
            role,
            "ReadSecrets",
            actions=["secretsmanager:GetSecretValue"],
            resources=[_secret_arn(role, one.name) for one in secrets],
            wildcard="Secrets Manager adds six characters to a name, which only it knows",
        )
        keys = [one.key_arn for one in secrets]
        stack = cdk.Stack.of(role)
        _decrypt(role, "DecryptSecrets", "secretsmanager", stack.region, keys)


def reach_brokers(group: ec2.SecurityGroup, brokers: Sequence[Brokers]) -> None:
    """Let members of a security group connect to brokers. Whether those let them in is theirs."""
    for one in brokers:
        peer = (
            ec2.Peer.security_group_id(one.security_group)
            if one.security_group
            else ec2.Peer.ipv4(one.cidr or "")
        )
        group.add_egress_rule(peer, ec2.Port.tcp(one.port), "brokers, registries and databases")


def _decrypt(
    role: iam.Role, purpose: str, service: str, region: str, keys: Sequence[str | None]
) -> None:
    """Let `role` decrypt with keys, but only what that service hands it in that region."""
    named = list(dict.fromkeys(key for key in keys if key))
    if named:
        suffix = cdk.Stack.of(role).url_suffix
        allow(
            role,
            purpose,
            actions=["kms:Decrypt"],
            resources=named,
            conditions={"StringEquals": {"kms:ViaService": f"{service}.{region}.{suffix}"}},
        )


def _secret_arn(role: iam.Role, name: str) -> str:
    if name.startswith("arn:"):
        return name
    stack = cdk.Stack.of(role)
    return stack.format_arn(
        service="secretsmanager",
        resource="secret",
        resource_name=f"{name}-??????",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )


def _below(msk: MskTopics, kind: str, name: str) -> str:
    """The ARN of a topic or group, which has the cluster's name and id in it."""
    head, _, cluster = msk.cluster_arn.partition(":cluster/")
    return f"{head}:{kind}/{cluster}/{_glob(name)}"


def _arn(role: iam.Role, service: str, resource: str, region: str | None) -> str:
    return cdk.Stack.of(role).format_arn(
        service=service,
        resource=resource,
        region=region,
        arn_format=cdk.ArnFormat.NO_RESOURCE_NAME,
    )


def _glob(name: str) -> str:
    return name.replace(_ANY, "*")


def _check(pattern: str, text: str, what: str) -> None:
    if not cdk.Token.is_unresolved(text) and not re.fullmatch(pattern, text):
        raise ValueError(f"{text!r} is not {what}")
