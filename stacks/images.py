"""`python -m stacks.images`: the newest Amazon Linux 2023, as lines for a stage file.

Looked up on purpose, so that no deploy replaces nodes by surprise.
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
from polynya_constructs.cluster.instance_types import Architecture
from stacks.region import stage_region
from stacks.settings.cluster_checks import PROJECT
from stacks.settings.loader import load_deployment

_PARAMETER: Final = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the lines."""
    parser = argparse.ArgumentParser(prog="python -m stacks.images", description=__doc__)
    parser.add_argument("--stage", required=True, help="name of the stage")
    try:
        stage = load_deployment(PROJECT / "config").stage(parser.parse_args(arguments).stage)
        session = boto3.Session(region_name=stage_region(stage))
        found = newest(session, stage.image_architectures)
    except (ConfigError, DependencyError) as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    print(f"# in config/{stage.name}.yml:\nmachine_images:")
    for architecture, image in found.items():
        print(f"  {architecture}: {image}")
    return 0


def newest(session: Any, architectures: Sequence[Architecture]) -> dict[Architecture, str]:
    """The newest image for each kind of processor in the region of a session.

    Raises:
        DependencyError: AWS refuses, or is not reached.
    """
    found = {}
    for architecture in architectures:
        name = _PARAMETER.format(architecture)
        try:
            answer = session.client("ssm").get_parameter(Name=name)
        except (BotoCoreError, ClientError) as error:
            raise explained(
                error,
                action="look up the machine image",
                resource=name,
                grant=f"ssm:GetParameter on {name}",
            ) from error
        found[architecture] = str(answer["Parameter"]["Value"])
    return found


if __name__ == "__main__":
    sys.exit(main())
