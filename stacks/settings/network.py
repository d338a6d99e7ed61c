"""The network of a stage: a VPC of its own, or one that exists."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import Field

from polynya.model.config.fields import Frozen
from stacks.settings.fields import Network, RouteTableId, SubnetId, VpcId, Zone

Endpoint: TypeAlias = Literal[
    "autoscaling",
    "athena",
    "cloudformation",
    "events",
    "glue",
    "kinesis-streams",
    "kms",
    "lakeformation",
    "logs",
    "monitoring",
    "secretsmanager",
    "ssm",
    "ssmmessages",
    "sts",
]
ENDPOINTS: Final[tuple[str, ...]] = get_args(Endpoint)
# What a node calls to boot, to work and to be reached through Session Manager.
NEEDED_ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    "kinesis-streams", "glue", "monitoring", "logs", "sts", "autoscaling", "ssm", "ssmmessages",
)  # fmt: skip
LogDays: TypeAlias = Literal[1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731, 1827]


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
        default=None, description="Use this VPC; then none of `cidr` and zones is set here."
    )
    cidr: Network = Field(
        default="10.40.0.0/16", description="IPv4 network of the VPC, /16 to /24."
    )
    availability_zones: Annotated[int, Field(ge=1, le=6)] | tuple[Zone, ...] = Field(
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
        f"{', '.join(NEEDED_ENDPOINTS)}; none in an existing VPC.",
    )
    endpoint_zones: int | None = Field(
        default=None,
        ge=1,
        le=6,
        description="In how many zones the endpoints stand. Default: all. 1 is cheaper, and the "
        "loss of that zone stops the cluster.",
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

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The interface endpoints to make."""
        if self.interface_endpoints is not None:
            return self.interface_endpoints
        return () if self.existing else NEEDED_ENDPOINTS
