"""Rights of nodes that notify: publishing to named topics of SNS."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_iam as iam

from polynya_constructs.grants import allow
from polynya_constructs.patterns import KMS_KEY, SNS_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationTopic:
    """A topic of SNS, and the KMS key that encrypts it, None for that of AWS or none.

    Raises ValueError for ARNs that cannot be.
    """

    arn: str
    key_arn: str | None = None

    def __post_init__(self) -> None:
        """Check them."""
        if not re.fullmatch(SNS_TOPIC, self.arn):
            raise ValueError(f"{self.arn!r} is not the ARN of a topic")
        if self.key_arn is not None and not re.fullmatch(KMS_KEY, self.key_arn):
            raise ValueError(f"{self.key_arn!r} is not the ARN of a key")


def grant_notifying(role: iam.Role, topics: Sequence[NotificationTopic]) -> None:
    """Let `role` publish to topics, and use their keys for nothing else.

    A publisher to an encrypted topic needs both actions of its key (Amazon SNS Developer Guide,
    "Managing Amazon SNS encryption keys and costs").
    """
    if not topics:
        return
    allow(role, "Notify", actions=["sns:Publish"], resources=[one.arn for one in topics])
    for region in dict.fromkeys(one.arn.split(":")[3] for one in topics if one.key_arn):
        keys = [one.key_arn for one in topics if one.key_arn and one.arn.split(":")[3] == region]
        allow(
            role,
            f"EncryptNotifications{region.replace('-', '')}",
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=list(dict.fromkeys(keys)),
            conditions={"StringEquals": {"kms:ViaService": f"sns.{region}.amazonaws.com"}},
        )
