"""The file `config/pipeline.yml`: from which repository stages are deployed, in which order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from polynya.model.config.fields import Frozen
from stacks.settings.fields import Account, Branch, ConnectionArn, Region, Repository, StageName
from stacks.settings.stage import StageConfig


class Source(Frozen):
    """The repository that the pipeline follows."""

    connection_arn: ConnectionArn = Field(
        description="A connection to the host of the repository, made once in the console."
    )
    repository: Repository = Field(description="`OWNER/NAME`.")
    branch: Branch = Field(default="main", description="Every commit on it is deployed.")


class Promotion(Frozen):
    """One stage of the way."""

    stage: StageName = Field(description="The name of a stage file.")
    approval: bool = Field(
        default=True, description="Someone has to say yes before it is deployed."
    )
    trial: bool = Field(
        default=True,
        description="A node of each empty group tries the release; only in the pipeline's account.",
    )


class PipelineConfig(Frozen):
    """The whole pipeline file."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["pipeline"] = Field(description="Always `pipeline`.")
    account: Account | None = Field(
        default=None, description="Where the pipeline runs. Default: where its first stage is."
    )
    region: Region | None = Field(default=None, description="Likewise.")
    source: Source = Field(description="The repository.")
    promotions: tuple[Promotion, ...] = Field(
        min_length=1, description="The stages in the order in which they are deployed."
    )

    def environment(self, stages: Mapping[str, StageConfig]) -> tuple[str | None, str | None]:
        """Return account and region of the pipeline, None where those of the credentials count."""
        first = stages.get(self.promotions[0].stage)
        account = self.account or (first.account if first else None)
        return account, self.region or (first.region if first else None)
