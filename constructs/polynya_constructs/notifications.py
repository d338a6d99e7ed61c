"""Where alarms go: a topic that people and programs subscribe to."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from polynya_constructs.grants import for_this_account


class Notifications(Construct):
    """An encrypted SNS topic to which CloudWatch may publish; TLS only.

    Its key is its own: alarms publish to an encrypted topic only with a right on its key, and the
    key of the data gives that to nobody. `topic` is the topic. Without it every change of an
    alarm still is an event on the account's default event bus.

    Example:
        >>> topic = Notifications(stack, "Alarms", email_addresses=["ops@example.com"]).topic
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        email_addresses: Sequence[str] = (),
    ) -> None:
        """Create the topic.

        Args:
            scope: the parent.
            id_: unique below the parent.
            email_addresses: each has to confirm by a mail that AWS sends; default: none.
        """
        super().__init__(scope, id_)
        key = kms.Key(
            self,
            "Key",
            description="Encrypts the notifications of Polynya",
            enable_key_rotation=True,
            # It encrypts messages on their way, of which nothing is left when the topic goes.
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        alarms = for_this_account(self, "cloudwatch.amazonaws.com")
        key.grant(alarms, "kms:Decrypt", "kms:GenerateDataKey*")
        self.topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        self.topic.grant_publish(alarms)
        for address in email_addresses:
            self.topic.add_subscription(subscriptions.EmailSubscription(address))
