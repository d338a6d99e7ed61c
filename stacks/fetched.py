"""Whether nodes will find their package where the synthesized templates of a stage look for it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import boto3

from polynya.model.error_catalogue.cluster import PACKAGE_ELSEWHERE
from stacks.publish import published

_PACKAGE: Final = re.compile(r"s3://([a-z0-9.-]+)/(polynya/[0-9a-f]{64}\.tar)")

Exists = Callable[[str, str, str, str], bool]
"""Whether there is an object: by account, region, bucket and key."""


def check_packages(directory: Path, stage: str, exists: Exists | None = None) -> None:
    """Look for each package that a stage of a synthesized assembly fetches.

    Args:
        directory: of the assembly.
        stage: its name.
        exists: asks S3; default: with the credentials of the environment.

    Raises:
        DependencyError: one is not there (POLYNYA-STG-007), or AWS refuses to tell.
    """
    asked = exists or _exists
    folder = directory / f"assembly-{stage}"
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    for artifact in manifest["artifacts"].values():
        if artifact["type"] != "aws:cloudformation:stack":
            continue
        account, region = _environment(artifact["environment"])
        properties = artifact["properties"]
        template = json.loads((folder / properties["templateFile"]).read_text("utf-8"))
        for bucket, key in sorted(fetched_packages(template, account, region)):
            if not asked(account, region, bucket, key):
                stack = properties["stackName"]
                raise PACKAGE_ELSEWHERE(stack=stack, bucket=bucket, key=key, stage=stage)


def fetched_packages(template: dict[str, Any], account: str, region: str) -> set[tuple[str, str]]:
    """Return bucket and key of each package that the user data of a template fetches."""
    pseudo = {"AWS::AccountId": account, "AWS::Region": region}
    found: set[tuple[str, str]] = set()
    for resource in template.get("Resources", {}).values():
        if resource["Type"] == "AWS::EC2::LaunchTemplate":
            data = resource["Properties"]["LaunchTemplateData"].get("UserData", "")
            text = "".join(_texts(data, pseudo))
            found |= {(bucket, key) for bucket, key in _PACKAGE.findall(text)}
    return found


def _texts(value: Any, pseudo: dict[str, str]) -> Iterator[str]:
    """Yield the text of a value, with the account and the region of its stack."""
    match value:
        case str():
            yield value
        case list():
            for part in value:
                yield from _texts(part, pseudo)
        case {"Ref": name}:
            yield pseudo.get(name, "")
        case {"Fn::Sub": str() as text}:
            yield re.sub(r"\$\{([^}]+)\}", lambda match: pseudo.get(match[1], ""), text)
        case {"Fn::Join": [separator, parts]}:
            yield separator.join("".join(_texts(part, pseudo)) for part in parts)
        case {"Fn::Base64": inner}:
            yield from _texts(inner, pseudo)


def _environment(environment: str) -> tuple[str, str]:
    """Return account and region of `aws://ACCOUNT/REGION`.

    Where a stage names none, the CDK's command line tells the app which ones it deploys to.
    """
    account, region = environment.removeprefix("aws://").split("/")
    if account == "unknown-account":
        account = os.environ.get("CDK_DEFAULT_ACCOUNT", account)
    if region == "unknown-region":
        region = os.environ.get("CDK_DEFAULT_REGION", region)
    return account, region


def _exists(account: str, region: str, bucket: str, key: str) -> bool:
    return published(boto3.Session(), account, region, bucket, key)
