"""`server` of a stage file: the API and the console of its project, on an instance."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from polynya.model.config.fields import Frozen, Name
from polynya_constructs.patterns import CERTIFICATE
from stacks.settings.fields import (
    ClusterName,
    ConfigurationPrefix,
    EmailAddress,
    Network,
    matching,
)
from stacks.settings.streams.settings import SecretSettings, named

CertificateArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(CERTIFICATE, "the ARN of a certificate: arn:aws:acm:REGION:ACCOUNT:certificate/ID")
    ),
]


class LoadBalancerSettings(Frozen):
    """An internal load balancer before the server; people log in to the server itself."""

    certificate_arn: CertificateArn = Field(
        description="Certificate of AWS Certificate Manager for the host of `url` in `access.yml`."
    )
    networks: tuple[Network, ...] = Field(
        min_length=1, description="Private IPv4 networks that may connect."
    )


class ServerSettings(Frozen):
    """`polynya serve` on an instance: its own, or that of the network agent."""

    node: Literal["own", "network_agent"] = Field(
        default="own", description="Where it runs: an instance of its own, or the network agent's."
    )
    project: ConfigurationPrefix = Field(
        default="project",
        description="Its project in the configuration bucket: a prefix, as of clusters.",
    )
    target: Name | None = Field(
        default=None, description="Target of the project. Default: its only or default one."
    )
    cluster: ClusterName | None = Field(
        default=None,
        description="Cluster to which it leaves requests. Default: the one with its project.",
    )
    port: Annotated[int, Field(ge=1024, le=65_535, strict=True)] = Field(
        default=8181, description="Port on which it listens."
    )
    load_balancer: LoadBalancerSettings | None = Field(
        default=None,
        description="Reach it by an internal load balancer. Default: only by port forwarding of "
        "Session Manager.",
    )
    iam_identities: bool = Field(
        default=False,
        description="Whether `access.yml` names roles and users of IAM, which the server checks "
        "with STS: one more endpoint in a closed network.",
    )
    secrets: tuple[Annotated[SecretSettings, BeforeValidator(named)], ...] = Field(
        default=(),
        description="Secrets that `access.yml` and notifications name; a name is short for "
        "`{name: …}`.",
    )
    tables: bool = Field(
        default=False,
        description="Whether its operations work on tables: run, migrate, replay, maintain, "
        "verify. Needs an instance of 8 GiB. Default: it leaves requests to nodes and captures.",
    )
    instance_type: str = Field(default="t4g.micro", description="Type of its own instance.")
    spot: bool = Field(
        default=True,
        description="Whether its own instance is a Spot instance, which AWS may take back.",
    )
    root_volume_gib: int = Field(
        default=8, ge=8, le=1024, description="Size of the encrypted root volume of its own."
    )
    notify: tuple[EmailAddress, ...] = Field(default=(), description="Who gets its alarm by email.")
