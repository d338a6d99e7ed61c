"""`notifications` of a cluster in a stage file: what its nodes may use to notify."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from polynya.model.config.fields import Frozen
from polynya_constructs.patterns import KMS_KEY, SNS_TOPIC
from stacks.settings.fields import matching
from stacks.settings.streams.settings import SecretSettings, named

TopicArn: TypeAlias = Annotated[
    str,
    AfterValidator(matching(SNS_TOPIC, "the ARN of a topic: arn:aws:sns:REGION:ACCOUNT:NAME")),
]
TopicKeyArn: TypeAlias = Annotated[
    str, AfterValidator(matching(KMS_KEY, "the ARN of a key: arn:aws:kms:REGION:ACCOUNT:key/ID"))
]


def _topic(value: object) -> object:
    return {"arn": value} if isinstance(value, str) else value


class NotificationTopicSettings(Frozen):
    """A topic of SNS to which nodes publish."""

    arn: TopicArn = Field(description="ARN of the topic.")
    key_arn: TopicKeyArn | None = Field(
        default=None, description="Your KMS key that encrypts it. Default: none of yours."
    )


class NotificationTargetSettings(Frozen):
    """What the nodes of a cluster may use to notify; nothing is granted that is not named."""

    topics: tuple[Annotated[NotificationTopicSettings, BeforeValidator(_topic)], ...] = Field(
        default=(), description="Topics of SNS; an ARN is short for `{arn: …}`."
    )
    secrets: tuple[Annotated[SecretSettings, BeforeValidator(named)], ...] = Field(
        default=(),
        description="Secrets that channels name, such as passwords of mail and keys of webhooks; a "
        "name is short for `{name: …}`.",
    )
