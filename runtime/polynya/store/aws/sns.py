"""Messages to topics of Amazon SNS."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, explained

#: Of the subject, in ASCII ("Publish", Amazon SNS API Reference).
_SUBJECT_CHARACTERS: Final = 99
#: Of the message; more is cut.
_MESSAGE_CHARACTERS: Final = 60_000


def publish(access: AwsAccess, topic: str, *, subject: str, text: str, id_: str) -> None:
    """Publish a message once; `id_` is an attribute of it.

    Raises:
        DependencyError: SNS did not take it, or the caller may not publish.
    """
    region = topic.split(":")[3]
    sns = client("sns", replace(access, region=region))
    try:
        sns.publish(
            TopicArn=topic,
            Subject=subject.encode("ascii", "replace").decode()[:_SUBJECT_CHARACTERS],
            Message=text[:_MESSAGE_CHARACTERS],
            MessageAttributes={"polynya_id": {"DataType": "String", "StringValue": id_}},
        )
    except AWS_ERRORS as error:
        grant = f"sns:Publish on {topic}, and kms:GenerateDataKey* and kms:Decrypt on its key"
        raise explained(error, action="publish a message", resource=topic, grant=grant) from error
