"""How a column is masked, and where the key of a hash stands."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

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


_MaskText: TypeAlias = Annotated[str, StringConstraints(max_length=10_000)]


class KeyedHash(Frozen):
    """HMAC-SHA256 of the value: equal values stay equal, and the key is needed to compute them."""

    key: SecretSetting = Field(
        description="The key: `{env: NAME}`, `${env:NAME}`, `${file:PATH}` or "
        "`${secret:NAME#FIELD}`; never in the file."
    )


class Mask(Frozen):
    """How a column is masked: one of these keys."""

    hash: KeyedHash | None = Field(
        default=None, description="Replace the value by a keyed hash, as text."
    )
    truncate: int | None = Field(
        default=None, ge=0, le=10_000, description="Keep this number of characters."
    )
    replace: _MaskText | int | float | bool | None = Field(
        default=None, description="Replace the value by this one; null for NULL."
    )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The keys that are written; a right mask has one."""
        return tuple(name for name in type(self).model_fields if name in self.model_fields_set)


#: `drop` leaves the column out.
MaskSetting: TypeAlias = Literal["drop"] | Mask
