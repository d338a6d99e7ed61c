"""A secret in the settings of a capture: never the value itself, only where it stands."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field, SecretStr, StringConstraints

from polynya.model.config.fields import Frozen

VariableName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")
]


class FromEnvironment(Frozen):
    """A secret in a variable of the environment, read when the capture starts."""

    env: VariableName = Field(description="Name of the environment variable.")


#: Where a secret stands. A text is a reference, `${file:PATH}` or `${secret:NAME#FIELD}`, or what
#: `${env:NAME}` gave when the file was read.
SecretSetting: TypeAlias = FromEnvironment | SecretStr
