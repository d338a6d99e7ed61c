"""The bindings of a target as written in `bindings/TARGET.yml`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from polynya.model.config.fields import Frozen, Name
from polynya.model.config.masks import VariableName

VariableValue: TypeAlias = str | bool | int | float


class Bindings(Frozen):
    """What one target sets: fields of connections, and variables. Named like the target."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        default="polynya/v1", description="Version of this file's format. Default: `polynya/v1`."
    )
    kind: Literal["bindings"] = Field(
        default="bindings", description="Kind of the file. Default: `bindings`."
    )
    connections: dict[Name, dict[str, Any]] = Field(
        default_factory=dict,
        description="Settings of connections, by the name of the connection: the same ones as in "
        "its `targets`, and stronger than those. Secrets only as references.",
    )
    variables: dict[VariableName, VariableValue] = Field(
        default_factory=dict,
        description="Values of `${var:NAME}` in the files of the project, by name. Not secret.",
    )
