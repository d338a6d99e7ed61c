"""Where a streaming landing reads Amazon Kinesis Data Streams."""

from __future__ import annotations

from pydantic import Field

from polynya.model.config.fields import Frozen, Pattern


class KinesisSource(Frozen):
    """Streams of one AWS account and region."""

    streams: tuple[Pattern, ...] = Field(
        min_length=1,
        description="Names of the streams to land. `%` stands for any text, so `orders-%` takes "
        "streams that come later, too. Case matters.",
    )
    region: str | None = Field(
        default=None,
        min_length=1,
        description="The region of the streams. Default: `aws.region` of the target.",
    )
    endpoint: str | None = Field(
        default=None,
        min_length=1,
        description="Another address of Kinesis, such as that of an interface endpoint of a VPC.",
    )
