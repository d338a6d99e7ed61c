"""Regions and their Availability Zones, and which services a region lacks. Pure.

Regions are those of the installed AWS SDK. How many zones an account gets AWS tells only the
account; where every account has fewer than three, it stands here (AWS Global Infrastructure,
"Regions and Availability Zones").
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import Final

import botocore.session

_PARTITIONS: Final = ("aws", "aws-cn", "aws-us-gov")
_ZONES: Final = {"us-east-1": 6, "us-west-2": 4, "ap-northeast-2": 4, "us-west-1": 2}
_MOST_ZONES: Final = 3  # of any other region
# Where letters do not begin with a, or one is closed to new accounts.
_LETTERS: Final = {
    "ap-northeast-1": "acd",
    "ca-central-1": "abd",
    "us-east-1": "abcdef",
    "us-west-1": "abc",
    "us-west-2": "abcd",
    "ap-northeast-2": "abcd",
}

SERVICES: Final = {
    "redshift": "redshift-serverless",
    "emr_serverless": "emr-serverless",
    "firehose": "firehose",
    "quicksight": "quicksight",
    "sagemaker": "sagemaker",
    "lake_formation": "lakeformation",
    "athena": "athena",
}
"""The service behind each engine of a stage file, as the SDK calls it."""


def region_problem(region: str) -> str | None:
    """Say what is wrong with the name of a region, None when there is such a region."""
    if region in known_regions():
        return None
    close = difflib.get_close_matches(region, sorted(known_regions()), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"there is no region {region}{hint}"


def zone_count(region: str) -> int:
    """How many Availability Zones an account gets in a region at most."""
    return _ZONES.get(region, _MOST_ZONES)


def has_zone(zone: str) -> bool:
    """Whether a region has a zone of this letter."""
    return zone[-1] in _LETTERS.get(zone[:-1], "abc")


def lacks(region: str, engine: str) -> bool:
    """Whether the SDK knows that a region does not have the service of an engine.

    What it knows nothing of, such as a service that it lists nowhere in the partition, is not
    lacking: AWS adds services before the SDK hears of them.
    """
    session = botocore.session.get_session()
    partition = session.get_partition_for_region(region)
    offered = session.get_available_regions(SERVICES[engine], partition_name=partition)
    return region not in offered and (bool(offered) or partition != "aws")


@cache
def known_regions() -> frozenset[str]:
    """Every region of the commercial, Chinese and GovCloud partitions."""
    session = botocore.session.get_session()
    return frozenset(
        region
        for partition in _PARTITIONS
        for region in session.get_available_regions("ec2", partition_name=partition)
    )
