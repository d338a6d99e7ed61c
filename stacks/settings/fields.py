"""The kinds of value in stage files: names and identifiers as AWS writes them, each checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Network
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from polynya.model.names import shown
from polynya_constructs.patterns import (
    EMR_APPLICATION,
    EMR_RELEASE,
    ERRORS_FOLDER,
    GLUE_JOB,
    JOB_CODE,
    JOB_ROLE,
    LANDING_FOLDER,
    PRINCIPAL,
    QUICKSIGHT_PRINCIPAL,
)

# RFC 1918, and RFC 6598 for those who ran out of it.
_PRIVATE: Final = tuple(
    IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)
_ARN: Final = r"arn:aws[a-z-]*:"


def refuse(message: str) -> PydanticCustomError:
    """The error of a value that is not what it has to be; the message says what to write."""
    return PydanticCustomError("polynya_value", "{message}", {"message": message})


def matching(pattern: str, what: str) -> Callable[[str], str]:
    """Return a check that a text is `what`; `what` also tells people what to write."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise refuse(f"{shown(text)} is not {what}")
        return text

    return check


def _quoted(value: object) -> object:
    # YAML reads digits as a number and loses zeros at their head.
    if isinstance(value, int) and not isinstance(value, bool):
        raise refuse('an account is text of 12 digits; put it in quotes: "123456789012"')
    return value


def _network(text: str) -> str:
    try:
        network = IPv4Network(text)
    except ValueError as error:
        message = f"{shown(text)} is not an IPv4 network such as 10.40.0.0/16: {error}"
        raise refuse(message) from None
    if not any(network.subnet_of(private) for private in _PRIVATE):
        raise refuse(
            f"{shown(text)} is not private; take it from 10.0.0.0/8, 172.16.0.0/12, "
            "192.168.0.0/16 or 100.64.0.0/10"
        )
    return text


StageName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"[a-z][a-z0-9]{0,15}", "a stage name: 1 to 16 of a-z 0-9, a letter first")
    ),
]
ClusterName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"[a-z][a-z0-9-]{0,23}", "a cluster name: 1 to 24 of a-z 0-9 -, a letter first")
    ),
]
ConfigurationPrefix: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            r"(?!coordination(/|$))[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*",
            "a prefix of the configuration bucket such as project or teams/sales",
        )
    ),
]
EmailAddress: TypeAlias = Annotated[
    str, AfterValidator(matching(r"[^\s@]+@[^\s@]+\.[^\s@]+", "an e-mail address"))
]
Account: TypeAlias = Annotated[
    str, BeforeValidator(_quoted), AfterValidator(matching(r"\d{12}", "an account of 12 digits"))
]
Region: TypeAlias = Annotated[
    str, AfterValidator(matching(r"[a-z]{2}(-[a-z]+)+-\d", "a region such as eu-central-1"))
]
Zone: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"[a-z]{2}(-[a-z]+)+-\d[a-z]", "an Availability Zone such as eu-central-1a")
    ),
]
Network: TypeAlias = Annotated[str, AfterValidator(_network)]
MachineImageId: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"ami-([0-9a-f]{8}|[0-9a-f]{17})", "an image such as ami-0a1b2c3d4e5f60718")
    ),
]
VpcId: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"vpc-([0-9a-f]{8}|[0-9a-f]{17})", "a VPC such as vpc-0a1b2c3d4e5f60718")
    ),
]
SubnetId: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"subnet-([0-9a-f]{8}|[0-9a-f]{17})", "a subnet such as subnet-0a1b2c3d4e5f60718")
    ),
]
RouteTableId: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"rtb-([0-9a-f]{8}|[0-9a-f]{17})", "a route table such as rtb-0a1b2c3d4e5f60718")
    ),
]
BucketName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            r"(?!xn--|sthree-)(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?<!-s3alias)",
            "a bucket name: 3 to 63 of a-z 0-9 . -",
        )
    ),
]
KeyArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            _ARN
            + r"kms:[a-z0-9-]+:\d{12}:key/"
            + r"(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})",
            "the ARN of a KMS key: arn:aws:kms:REGION:ACCOUNT:key/ID",
        )
    ),
]
StreamArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            _ARN + r"kinesis:[a-z0-9-]+:\d{12}:stream/[A-Za-z0-9_.-]{1,128}",
            "the ARN of a Kinesis stream: arn:aws:kinesis:REGION:ACCOUNT:stream/NAME",
        )
    ),
]
ConnectionArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            _ARN + r"code(connections|star-connections):[a-z0-9-]+:\d{12}:connection/[0-9a-f-]{36}",
            "the ARN of a connection: arn:aws:codeconnections:REGION:ACCOUNT:connection/ID",
        )
    ),
]
Repository: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}", "a repository: OWNER/NAME")
    ),
]
Branch: TypeAlias = Annotated[
    str, AfterValidator(matching(r"(?!-)[A-Za-z0-9_./-]{1,200}", "the name of a branch"))
]
# Glue folds names to lower case; anything else would not be found again under its own name.
DatabaseName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            r"[a-z_][a-z0-9_]{0,127}", "a Glue database: 1 to 128 of a-z 0-9 _, no digit first"
        )
    ),
]
PrincipalArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            PRINCIPAL,
            "the ARN of an IAM user or role: arn:aws:iam::ACCOUNT:role/NAME",
        )
    ),
]
QuickSightArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            QUICKSIGHT_PRINCIPAL,
            "a QuickSight user or group: arn:aws:quicksight:REGION:ACCOUNT:user/default/NAME",
        )
    ),
]
EmrRelease: TypeAlias = Annotated[
    str, AfterValidator(matching(EMR_RELEASE, "a release such as emr-7.10.0"))
]
GlueWorker: TypeAlias = Literal[
    "G.1X", "G.2X", "G.4X", "G.8X", "G.12X", "G.16X", "R.1X", "R.2X", "R.4X", "R.8X"
]
EmrApplicationId: TypeAlias = Annotated[
    str, AfterValidator(matching(EMR_APPLICATION, "the id of an application: 00f1example2345"))
]
JobCode: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            JOB_CODE, "an object in S3, or a prefix with a slash at its end: s3://BUCKET/code/"
        ),
    ),
]
JobRoleArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(JOB_ROLE, "the ARN of a role: arn:aws:iam::ACCOUNT:role/NAME"),
    ),
]
GlueJobName: TypeAlias = Annotated[
    str, AfterValidator(matching(GLUE_JOB, "the name of a Glue job without a space"))
]
StreamName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"[a-z][a-z0-9-]{0,31}", "a stream name: 1 to 32 of a-z 0-9 -, a letter first")
    ),
]
LandingFolder: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(LANDING_FOLDER, f"a folder such as clicks or web/clicks; {ERRORS_FOLDER} is taken")
    ),
]
