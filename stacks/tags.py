"""The tag by which people find everything that belongs to the project, and what it costs."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from constructs import IConstruct

_KEY: Final = "application"
_VALUE: Final = "polynya"


def tag_application(scope: IConstruct) -> None:
    """Tag everything below `scope`; call it when its stacks are there.

    Once for the app and once for each stage: the CDK synthesizes a stage by itself, and tags of
    the app do not reach into it. The stacks are tagged too, and CloudFormation gives their tags to
    what the CDK leaves out, such as the functions of its own custom resources.
    """
    cdk.Tags.of(scope).add(_KEY, _VALUE)
    for node in scope.node.find_all():
        if isinstance(node, cdk.Stack):
            node.tags.set_tag(_KEY, _VALUE)
