"""What becomes of a column before anything of it leaves the database's side."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from polynya.model.config.capture.secret import SecretSetting
from polynya.model.config.fields import Frozen

_MaskText: TypeAlias = Annotated[str, StringConstraints(max_length=10_000)]


class KeyedHash(Frozen):
    """HMAC-SHA256 of the value: equal values stay equal, nobody computes them without the key."""

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
