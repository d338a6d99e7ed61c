"""The network of a stage: a VPC of its own, or one that exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, cast, get_args

from pydantic import BeforeValidator, Discriminator, Field, Tag

from polynya.model.config.fields import Frozen
from stacks.settings.fields import Account, Network, RouteTableId, SubnetId, VpcId, Zone, refuse

Endpoint: TypeAlias = Literal[
    "autoscaling",
    "athena",
    "cloudformation",
    "ec2",
    "emr-serverless",
    "events",
    "glue",
    "kinesis-streams",
    "kms",
    "lakeformation",
    "logs",
    "monitoring",
    "redshift-data",
    "secretsmanager",
    "sns",
    "ssm",
    "ssmmessages",
    "sts",
]
ENDPOINTS: Final[tuple[str, ...]] = get_args(Endpoint)
# What a node calls: the catalog, the group of which it is a part, and the log. Metrics are lines of
# the log, and its identity the machine brings along, so no node calls `monitoring` or `sts`.
NEEDED_ENDPOINTS: Final[tuple[Endpoint, ...]] = ("autoscaling", "glue", "logs")
EMR_ENDPOINT: Final[Endpoint] = "emr-serverless"
STREAM_ENDPOINT: Final[Endpoint] = "kinesis-streams"
REDSHIFT_ENDPOINT: Final[Endpoint] = "redshift-data"
SECRETS_ENDPOINT: Final[Endpoint] = "secretsmanager"
TOPIC_ENDPOINT: Final[Endpoint] = "sns"
IDENTITY_ENDPOINT: Final[Endpoint] = "sts"
SESSION_ENDPOINTS: Final[tuple[Endpoint, ...]] = ("ssm", "ssmmessages")


def _zones(value: object) -> object:
    """Say in one sentence what it may be; the validator would say it for each of the two kinds."""
    number = isinstance(value, int) and not isinstance(value, bool)
    if number and not 1 <= cast("int", value) <= _MOST_ZONES:
        raise refuse(f"{value} zones; a region has at most {_MOST_ZONES}")
    if not number and not isinstance(value, list | tuple):
        raise refuse("write how many zones, such as 2, or their names as a list")
    return value


def _kind_of_zones(value: object) -> str:
    return "count" if isinstance(value, int) else "names"


_MOST_ZONES: Final = 6
Zones: TypeAlias = Annotated[
    Annotated[int, Tag("count")] | Annotated[tuple[Zone, ...], Tag("names")],
    Discriminator(_kind_of_zones),
    BeforeValidator(_zones),
]
LogDays: TypeAlias = Literal[1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731, 1827]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Services that nodes of some stages call.

    `kinesis`: a workload stream or streams that they read; `emr`: EMR Serverless, to which they
    submit jobs; `secrets`: Secrets Manager; `redshift`: the Redshift Data API; `topics`: SNS;
    `sessions`: Session Manager, by which people reach the server; `identities`: STS, which checks
    identities of IAM for it.
    """

    kinesis: bool
    emr: bool = False
    secrets: bool = False
    redshift: bool = False
    topics: bool = False
    sessions: bool = False
    identities: bool = False


class ExistingVpc(Frozen):
    """A VPC that someone else runs. Polynya adds only what is asked for."""

    vpc_id: VpcId = Field(description="Its id.")
    cidr: Network = Field(description="Its IPv4 network; endpoints let in only this.")
    availability_zones: tuple[Zone, ...] = Field(
        min_length=1, description="Zone of each subnet, in the order of `private_subnet_ids`."
    )
    private_subnet_ids: tuple[SubnetId, ...] = Field(
        min_length=1, description="Subnets without a route from the internet, one per zone."
    )
    route_table_ids: tuple[RouteTableId, ...] = Field(
        default=(),
        description="Route table of each subnet. When given, an S3 gateway endpoint is added to "
        "them; leave out when the VPC has one.",
    )


class NetworkSettings(Frozen):
    """Where the nodes live. There is no NAT gateway and no way in."""

    existing: ExistingVpc | None = Field(
        default=None, description="Use this VPC; then `cidr` and zones may not be set here."
    )
    cidr: Network = Field(
        default="10.40.0.0/16", description="IPv4 network of the VPC, /16 to /24."
    )
    availability_zones: Zones = Field(
        default=2, description="How many zones, or which. At least 2."
    )
    subnet_prefix: int = Field(
        default=20,
        ge=16,
        le=28,
        description="Size of the subnet in each zone: /20 has 4091 addresses.",
    )
    interface_endpoints: tuple[Endpoint, ...] | None = Field(
        default=None,
        description="AWS services that are reached inside the VPC, paid by hour and zone. Default: "
        f"{', '.join(NEEDED_ENDPOINTS)}, {STREAM_ENDPOINT} where there is a workload stream, "
        f"{', '.join(SESSION_ENDPOINTS)} with `session_manager` or `server`, {EMR_ENDPOINT} where "
        f"nodes submit jobs, {STREAM_ENDPOINT} and {SECRETS_ENDPOINT} where `streams` of a cluster "
        f"name Kinesis streams and secrets, {SECRETS_ENDPOINT} and {REDSHIFT_ENDPOINT} where its "
        f"`mirrors` name secrets and Redshift, {TOPIC_ENDPOINT} and {SECRETS_ENDPOINT} where its "
        f"`notifications` name topics and secrets, {SECRETS_ENDPOINT} and {IDENTITY_ENDPOINT} "
        "where `server` names secrets and identities of IAM; none in an existing VPC.",
    )
    outbound: Literal["endpoints", "internet"] = Field(
        default="endpoints",
        description="How nodes reach AWS: by endpoints, without any way to the internet; or by the "
        "internet, from public addresses that accept nothing, without a fixed price.",
    )
    session_manager: bool = Field(
        default=False,
        description="Whether people may come to a node by Session Manager; two more endpoints "
        "in a network without other ways out.",
    )
    endpoint_zones: int | None = Field(
        default=None,
        ge=1,
        le=6,
        description="In how many zones the endpoints are. Default: all. 1 is cheaper, and the "
        "loss of that zone stops the cluster.",
    )
    trusted_accounts: tuple[Account, ...] = Field(
        default=(),
        description="Accounts whose buckets and keys nodes use beside those of their own; what "
        "belongs to any other one no endpoint lets through.",
    )
    connected_networks: tuple[Network, ...] = Field(
        default=(), description="Networks that are or will be reached: peers, VPN, on premises."
    )
    flow_log_days: LogDays = Field(default=30, description="How long the flow log is kept.")

    @property
    def network(self) -> str:
        """The IPv4 network of the VPC, whoever made it."""
        return self.existing.cidr if self.existing else self.cidr

    @property
    def zone_count(self) -> int:
        """In how many zones there is a subnet."""
        if self.existing:
            return len(self.existing.private_subnet_ids)
        zones = self.availability_zones
        return zones if isinstance(zones, int) else len(zones)

    def endpoints(self, calls: Calls) -> tuple[Endpoint, ...]:
        """The interface endpoints to make; see `needed`."""
        if self.interface_endpoints is not None:
            return self.interface_endpoints
        if self.existing or self.outbound == "internet":
            return ()
        return self.needed(calls)

    def needed(self, calls: Calls) -> tuple[Endpoint, ...]:
        """The interface endpoints without which nodes of a closed network do not work."""
        return (
            *NEEDED_ENDPOINTS,
            *((STREAM_ENDPOINT,) if calls.kinesis else ()),
            *((EMR_ENDPOINT,) if calls.emr else ()),
            *((SECRETS_ENDPOINT,) if calls.secrets else ()),
            *((REDSHIFT_ENDPOINT,) if calls.redshift else ()),
            *((TOPIC_ENDPOINT,) if calls.topics else ()),
            *(SESSION_ENDPOINTS if self.session_manager or calls.sessions else ()),
            *((IDENTITY_ENDPOINT,) if calls.identities else ()),
        )
