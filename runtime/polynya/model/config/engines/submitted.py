"""Engines of AWS to which an agent submits the work of a task: EMR Serverless and Glue."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Duration, Frozen
from polynya.model.contract.identifiers import shown

_ROLE: Final = r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}$"
_PLACE: Final = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[\w.=/-]{1,900}"
_SCRIPT: Final = _PLACE + r"\.py$"
_ARCHIVE: Final = _PLACE + r"\.tar\.gz$"
_APPLICATION: Final = r"^[0-9a-z]{1,64}$"
_GLUE_JOB: Final = r"^[A-Za-z0-9][\w.-]{0,254}$"
_SHORTEST: Final = timedelta(minutes=1)
_LONGEST: Final = timedelta(days=1)
#: Gigabytes that a worker of EMR Serverless can have for each number of vCPU: least, most.
_MEMORY: Final = {1: (2, 8), 2: (4, 16), 4: (8, 30), 8: (16, 60), 16: (32, 120)}


def _pause(value: timedelta) -> timedelta:
    if not _SHORTEST <= value <= _LONGEST:
        message = "the time between two runs is 1 minute to 1 day"
        raise PydanticCustomError("polynya_value", "{message}", {"message": message})
    return value


def _matching(pattern: str, wanted: str) -> object:
    def check(text: str) -> str:
        # `$` also matches before a line end.
        if not re.fullmatch(pattern, text) or "\n" in text:
            message = f"{shown(text)} is not {wanted}"
            raise PydanticCustomError("polynya_value", "{message}", {"message": message})
        return text

    return AfterValidator(check)


def _text(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern})


Every: TypeAlias = Annotated[Duration, AfterValidator(_pause)]
_EVERY: Final = (
    "Pause between two runs; the next one starts then if files have landed, and once a day in "
    "any case. Default: `15m`."
)


class EmrServerlessEngine(Frozen):
    """Jobs of an EMR Serverless application."""

    mode: Literal["emr_serverless"] = Field(description="`emr_serverless`: as EMR Serverless jobs.")
    application_id: Annotated[
        str, _matching(_APPLICATION, "the id of an application"), _text(_APPLICATION)
    ] = Field(description="Id of the application, such as `00f1example2345`.")
    execution_role: Annotated[str, _matching(_ROLE, "the ARN of a role"), _text(_ROLE)] = Field(
        description="ARN of the job's role."
    )
    entry_point: Annotated[
        str, _matching(_SCRIPT, "an object such as `s3://BUCKET/entry.py`"), _text(_SCRIPT)
    ] = Field(description="The job's entry script, an object in S3.")
    environment: (
        Annotated[
            str,
            _matching(_ARCHIVE, "an object such as `s3://BUCKET/polynya.tar.gz`"),
            _text(_ARCHIVE),
        ]
        | None
    ) = Field(
        default=None,
        description="Archive of a Python environment with Polynya, an object in S3. Default: the "
        "application's image contains Polynya.",
    )
    vcpu: Literal[1, 2, 4, 8, 16] = Field(
        default=4, description="Processors of the worker. Default: 4."
    )
    memory_gb: int | None = Field(
        default=None,
        ge=2,
        le=108,
        description="Its memory in GB. Default: 4 for each processor.",
    )
    every: Every = Field(default=timedelta(minutes=15), description=_EVERY)

    @property
    def memory(self) -> int:
        """Memory of the worker in GB."""
        return self.memory_gb or 4 * self.vcpu

    @model_validator(mode="after")
    def _fits(self) -> Self:
        least, most = _MEMORY[self.vcpu]
        # EMR adds a tenth to what is asked for.
        if not least <= self.memory <= most / 1.1:
            message = f"a worker of {self.vcpu} vCPU has {least} to {int(most / 1.1)} GB"
            raise PydanticCustomError("polynya_value", "{message}", {"message": message})
        return self


class GlueEngine(Frozen):
    """Runs of a Glue job that exists."""

    mode: Literal["glue"] = Field(description="`glue`: as runs of a Glue job.")
    job_name: Annotated[str, _matching(_GLUE_JOB, "the name of a Glue job"), _text(_GLUE_JOB)] = (
        Field(description="Name of the job, which defines script, role and environment.")
    )
    worker_type: (
        Literal["G.1X", "G.2X", "G.4X", "G.8X", "G.12X", "G.16X", "R.1X", "R.2X", "R.4X", "R.8X"]
        | None
    ) = Field(
        default=None, description="Type of the workers; only one of them works. Default: the job's."
    )
    workers: int | None = Field(
        default=None,
        ge=2,
        le=299,
        description="Number of workers. Glue requires two; more are idle. Default: 2 with a "
        "`worker_type`, else the job's.",
    )
    every: Every = Field(default=timedelta(minutes=15), description=_EVERY)
