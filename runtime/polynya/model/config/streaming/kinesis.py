"""Where a streaming landing reads Amazon Kinesis Data Streams."""

from __future__ import annotations

from pydantic import Field

from polynya.model.config.fields import Frozen, Pattern


class KinesisSource(Frozen):
    """Streams of one AWS account and region."""

    streams: tuple[Pattern, ...] = Field(
        min_length=1,
        description="Names of the streams to land. `%` stands for any text, so `orders-%` also "
        "matches later streams. Case matters.",
    )
    region: str | None = Field(
        default=None,
        min_length=1,
        description="Region of the streams. Default: `aws.region` of the target.",
    )
    endpoint: str | None = Field(
        default=None,
        min_length=1,
        description="Another address of Kinesis, such as an interface endpoint of a VPC.",
    )
