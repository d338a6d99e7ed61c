"""An automation as written in `automations/*.yml`: what starts it, and the commands it runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, Discriminator, Field, SecretStr, Tag, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import (
    Duration,
    Frozen,
    Name,
    Pattern,
    RelativePath,
    ReloadMode,
)
from polynya.model.config.schedule import Schedule, TimeZone

#: A dataset on a command line: never an option.
DatasetName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_*?\[\]][^\s]{0,255}$")]


def _refuse(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _told_by(*keys: str) -> Discriminator:
    """Tell models by the one key that only they have; anything else is the first of them."""

    def key_of(value: object) -> str:
        if isinstance(value, BaseModel):
            names = {field.alias or name for name, field in type(value).model_fields.items()}
        else:
            names = set(value) if isinstance(value, dict) else set()
        return next((key for key in keys if key in names), keys[0])

    return Discriminator(key_of)


class ScheduleTrigger(Frozen):
    """Starts at moments of a schedule."""

    schedule: Schedule = Field(
        description="A cron line such as `30 2 * * *`, or a rule such as `FREQ=DAILY;BYHOUR=2`."
    )
    time_zone: TimeZone | None = Field(
        default=None,
        description="Clock of the schedule, such as `Europe/Berlin`. Default: `time_zone` of the "
        "project; one of the two is required, unless the rule's `DTSTART` has its own.",
    )
    start: datetime | None = Field(
        default=None, description="No moment before this one counts; a time with its zone."
    )
    end: datetime | None = Field(
        default=None, description="No moment after this one counts; a time with its zone."
    )

    @model_validator(mode="after")
    def _has_zones(self) -> Self:
        for name in ("start", "end"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise _refuse(f"`{name}` has no zone", f'write `{name}: "{moment.isoformat()}Z"`')
        if self.start is not None and self.end is not None and self.end < self.start:
            raise _refuse("`end` is before `start`, so it never starts", "swap them")
        return self


class TaskTrigger(Frozen):
    """Starts when a run of tasks has ended."""

    after: tuple[Name, ...] = Field(min_length=1, description="Names of tasks.")
    when: Literal["any", "all"] = Field(
        default="any",
        description="`any`: one of the tasks has ended since the automation last looked. `all`: "
        "each of them has ended since the automation last started by this trigger.",
    )
    result: Literal["success", "failure", "either"] = Field(
        default="success", description="How the runs have to end."
    )


class OverdueTrigger(Frozen):
    """Starts when a task has not ended well for too long; once until it does."""

    overdue: Name = Field(description="Name of a task.")
    longer_than: Duration = Field(description="Longest time since its last successful run.")


class FileTrigger(Frozen):
    """Starts when a file appears, or appears with another content."""

    file: Pattern = Field(
        description="Glob of files in the landing zone, relative to it, such as `ready/*.done`."
    )


class WebhookTrigger(Frozen):
    """Starts when a signed request comes to `polynya serve`."""

    webhook: Name = Field(
        description="Name of the sender. Its address is "
        "`/api/v1/automations/AUTOMATION/webhooks/NAME` of the server."
    )
    secret: SecretStr = Field(
        description="Key that the sender signs with, of at least 16 bytes, as a reference: "
        "`${env:NAME}`, `${file:PATH}` or `${secret:NAME#FIELD}`, never in the file."
    )


class ApiTrigger(Frozen):
    """Starts when a program with a token for it calls `/api/v1/automations/AUTOMATION/calls`."""

    api: Literal[True] = Field(description="Always `true`.")


#: What starts an automation, besides `polynya automation run`.
Trigger: TypeAlias = (
    ScheduleTrigger | TaskTrigger | OverdueTrigger | FileTrigger | WebhookTrigger | ApiTrigger
)
OneTrigger: TypeAlias = Annotated[
    Annotated[ScheduleTrigger, Tag("schedule")]
    | Annotated[TaskTrigger, Tag("after")]
    | Annotated[OverdueTrigger, Tag("overdue")]
    | Annotated[FileTrigger, Tag("file")]
    | Annotated[WebhookTrigger, Tag("webhook")]
    | Annotated[ApiTrigger, Tag("api")],
    _told_by("schedule", "after", "overdue", "file", "webhook", "api"),
]


class _Action(Frozen):
    when: Literal["success", "failure", "always"] = Field(
        default="success",
        description="Condition: all actions before it ended well, one of them failed, or whatever "
        "they did.",
    )
    retries: int = Field(default=0, ge=0, le=20, description="Further tries after a failure.")
    pause: Duration = Field(
        default=timedelta(seconds=30), description="Pause before the first further try; it doubles."
    )
    time_limit: Duration = Field(
        default=timedelta(hours=6), description="The action is ended and fails after this time."
    )


class RunAction(_Action):
    """Runs tasks once, as `polynya run --once` does."""

    run: tuple[Name, ...] = Field(min_length=1, description="Names of tasks.")
    apply: Literal["policy", "always", "never"] = Field(
        default="policy", description="As `--apply` of `polynya run`."
    )


class ReloadAction(_Action):
    """Loads a task again, as `polynya reload` does."""

    reload: Name = Field(description="Name of a task.")
    dataset: DatasetName | None = Field(
        default=None, description="Only this dataset of the task, as `--dataset`."
    )
    mode: ReloadMode = Field(
        default="compare_and_apply_with_deleted_rows", description="As `--mode`."
    )


class MaintainAction(_Action):
    """Maintains tables, as `polynya maintain` does."""

    maintain: tuple[DatasetName, ...] = Field(description="Names or globs of datasets; `[]`: all.")


class VerifyAction(_Action):
    """Checks tables against the rules that must always hold, as `polynya verify` does."""

    verify: DatasetName | Literal["all"] = Field(description="`schema.dataset`, or `all`.")


class ValidateAction(_Action):
    """Checks the project's files, as `polynya validate` does."""

    validate_: Literal[True] = Field(alias="validate", description="Always `true`.")


class ExportAction(_Action):
    """Writes the project as an archive, as `polynya export` does."""

    export: RelativePath = Field(
        description="The archive, relative to the project folder, or in an agent to "
        "`.polynya/archives` of the warehouse. `{time}` becomes the start of the run in UTC, such "
        "as `20260101T020000Z`; an existing file is an error."
    )


Action: TypeAlias = (
    RunAction | ReloadAction | MaintainAction | VerifyAction | ValidateAction | ExportAction
)
OneAction: TypeAlias = Annotated[
    Annotated[RunAction, Tag("run")]
    | Annotated[ReloadAction, Tag("reload")]
    | Annotated[MaintainAction, Tag("maintain")]
    | Annotated[VerifyAction, Tag("verify")]
    | Annotated[ValidateAction, Tag("validate")]
    | Annotated[ExportAction, Tag("export")],
    _told_by("run", "reload", "maintain", "verify", "validate", "export"),
]


class Automation(Frozen):
    """Actions that run one after the other when a trigger says so."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["automation"] = Field(description="Always `automation`.")
    name: Name = Field(description="Name of the automation.")
    enabled: bool = Field(
        default=True, description="`false`: no trigger starts it; `polynya automation run` does."
    )
    triggers: tuple[OneTrigger, ...] = Field(
        default=(), description="Each of them starts it. Default: only started by hand."
    )
    actions: tuple[OneAction, ...] = Field(min_length=1, description="Carried out in this order.")
    overlap: Literal["skip", "queue", "cancel"] = Field(
        default="skip",
        description="When a trigger fires during a run: `skip` it, `queue` one run after this one, "
        "or `cancel` the run and start again.",
    )
    missed: Literal["run_once", "skip", "all"] = Field(
        default="run_once",
        description="Moments that passed more than a minute ago while nothing looked: one run for "
        "all, none, or one each.",
    )
    missed_limit: int = Field(
        default=10, ge=1, le=1000, description="Most runs that `missed: all` makes up for."
    )
