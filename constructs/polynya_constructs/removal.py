"""The double lock on data: two keys, turned in two places, before a stack may delete it."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from constructs import Construct

KEPT: Final = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Data outlives its stack, but not a first creation that fails: that would leave empty buckets and
databases behind, whose names the next attempt would find taken (`RetainExceptOnCreate`)."""

REMOVAL_CONTEXT: Final = "polynya:removeDataOnDestroy"


def data_removal_policy(scope: Construct, *, asked: bool, stage: str) -> cdk.RemovalPolicy:
    """Return DESTROY when both keys are turned, else KEPT.

    The first key is the stage's own setting. The second is the context value
    `polynya:removeDataOnDestroy`, which has to name the stage: whoever turns it for one stage
    cannot turn it for another. One key alone keeps the data and leaves a warning at `scope`.

    Args:
        scope: where the context is read, and the warning is left.
        asked: whether the stage's settings ask for removal.
        stage: the name of the stage.
    """
    turned = scope.node.try_get_context(REMOVAL_CONTEXT)
    if asked and turned == stage:
        return cdk.RemovalPolicy.DESTROY
    if asked:
        cdk.Annotations.of(scope).add_warning_v2(
            "polynya:removeData",
            f"`remove_data` is only one of two keys, so the data of stage {stage} is kept. "
            f"The other: -c {REMOVAL_CONTEXT}={stage}",
        )
    return KEPT
