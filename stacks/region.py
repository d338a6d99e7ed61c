"""The region in which a stage is, decided once for every program that reaches AWS for it."""

from __future__ import annotations

import os
from typing import Any, Final

import botocore.session
from botocore.exceptions import BotoCoreError
from botocore.utils import IMDSRegionProvider

from polynya.model.error_catalogue.cluster import NO_REGION
from stacks.settings.stage import StageConfig

_VARIABLES: Final = ("AWS_REGION", "AMAZON_REGION", "AWS_DEFAULT_REGION", "AMAZON_DEFAULT_REGION")
"""In the order of the CDK's command line. boto3 does not read the first."""


def stage_region(stage: StageConfig) -> str:
    """Return the region of a stage: that of its file, or the one that the CDK deploys to.

    Raises:
        ConfigError: neither file nor environment names a region (POLYNYA-STG-006). The CDK would
            deploy to us-east-1.
    """
    region = stage.region or environment_region()
    if region is None:
        raise NO_REGION(where=f"config/{stage.name}.yml", stage=stage.name)
    return region


def environment_region() -> str | None:
    """Return the region that the CDK's command line takes from the environment, None without one.

    Its order (`AwsCliCompatible.region` in its source): four variables, the profile, the default
    profile, the metadata of the instance.
    """
    named = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), None)
    session = botocore.session.Session()
    return named or _profile_region(session) or _instance_region(session)


def _profile_region(session: Any) -> str | None:
    profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    try:
        profiles = session.full_config["profiles"]
    except BotoCoreError:
        return None
    regions = (profiles.get(name, {}).get("region") for name in (profile, "default"))
    return next((region for region in regions if region), None)


def _instance_region(session: Any) -> str | None:
    try:
        region: str | None = IMDSRegionProvider(session).provide()
    except BotoCoreError:
        return None
    return region
