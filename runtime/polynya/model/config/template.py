"""Templates of transforms and data marts as written in `tasks/*.yml`, and their instances."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Frozen, Name

#: What an instance gives for a parameter; YAML has no dates, so these are text.
ParameterValue: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr
#: What a parameter is.
ParameterType: TypeAlias = Literal["name", "text", "integer", "decimal", "boolean", "date"]
#: The kinds of task that a template may be of.
TEMPLATE_KINDS: tuple[str, ...] = ("transform", "data_mart")


class TemplateParameter(Frozen):
    """What instances of a template differ in."""

    type: ParameterType = Field(
        description="`name`: part of the name of a task, schema, table or column, of letters, "
        "digits and `_`. All others are values: `text`, `integer`, `decimal`, `boolean` or `date`."
    )
    default: ParameterValue | None = Field(
        default=None, description="The value where an instance gives none. Default: none."
    )


class TaskTemplate(Frozen):
    """A transform or data mart with parameters. It has no tables; its instances have."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["template"] = Field(description="Kind of the task.")
    name: Name = Field(description="Name of the template, unique in the project.")
    parameters: dict[Name, TemplateParameter] = Field(
        min_length=1, max_length=100, description="The parameters, by name."
    )
    task: dict[str, Any] = Field(
        description="The settings of a task of kind `transform` or `data_mart`, without "
        "`apiVersion` and `name`. `${parameter}` is a name, or the whole of a setting; "
        "`:parameter` is a value in SQL."
    )

    @model_validator(mode="after")
    def _is_of_a_kind(self) -> Self:
        if self.task.get("kind") not in TEMPLATE_KINDS:
            message = "the task of a template is of kind `transform` or `data_mart`"
            fix = "write `kind: transform` or `kind: data_mart` below `task`"
        elif given := sorted({"apiVersion", "name"} & self.task.keys()):
            message = f"the instances of a template bring `{given[0]}`"
            fix = f"remove `{given[0]}` below `task`"
        else:
            return self
        raise PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


class TemplateInstance(Frozen):
    """A task that is a template with values for its parameters."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["instance"] = Field(description="Kind of the task.")
    name: Name = Field(description="Name of the task, unique in the project.")
    uses: Name = Field(description="Name of a task of kind `template`.")
    with_: dict[Name, ParameterValue] = Field(
        default_factory=dict, alias="with", description="The values of parameters, by name."
    )
