"""`python -m stacks.failed`: let the next deployment remove stacks whose first creation failed.

The CDK's command line protects a stack before it creates its resources. If that fails, the stack
stays in ROLLBACK_COMPLETE; the next deployment deletes it, which CloudFormation refuses of a
protected one. It holds no resource, so its protection is of no use.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from polynya.model.errors import ConfigError, DependencyError
from polynya.store.aws.clients import explained
from stacks.region import stage_region
from stacks.settings.cluster_checks import PROJECT
from stacks.settings.loader import load_deployment

_FAILED_CREATION: Final = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
"""Of a stack that never was; an update that fails ends in UPDATE_ROLLBACK_COMPLETE."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Release the stacks of one stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stacks.failed", description=__doc__)
    parser.add_argument("--stage", required=True, help="name of the stage")
    options = parser.parse_args(arguments)
    try:
        stage = load_deployment(PROJECT / "config").stage(options.stage)
        session = boto3.Session(region_name=stage_region(stage))
        for name in release_failed(session.client("cloudformation"), stage.name):
            print(f"{name}: its first creation failed; it can be created again")
    except (ConfigError, DependencyError) as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


def release_failed(cloudformation: Any, stage: str) -> list[str]:
    """Turn off the protection of the stacks of a stage whose first creation failed.

    Raises:
        DependencyError: AWS refuses, or is not reached.
    """
    try:
        pages = cloudformation.get_paginator("describe_stacks").paginate()
        stacks = [stack for page in pages for stack in page["Stacks"]]
        released = [
            stack["StackName"]
            for stack in stacks
            if stack["StackName"].startswith(f"polynya-{stage}-")
            and stack["StackStatus"] in _FAILED_CREATION
            and stack.get("EnableTerminationProtection")
        ]
        for name in released:
            cloudformation.update_termination_protection(
                StackName=name, EnableTerminationProtection=False
            )
    except (BotoCoreError, ClientError) as error:
        raise explained(
            error,
            action="let the stacks be created again whose first creation failed",
            resource=f"polynya-{stage}-*",
            grant="cloudformation:DescribeStacks and cloudformation:UpdateTerminationProtection",
        ) from error
    return released


if __name__ == "__main__":
    sys.exit(main())
