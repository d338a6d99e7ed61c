"""How long a value may be that is captured, and what becomes of a longer one."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from polynya.model.config.fields import Frozen, Size

LobPolicy: TypeAlias = Literal["truncate", "null", "stop"]


class Lobs(Frozen):
    """A limit for values of text and binary columns, of whatever type."""

    limit: Size = Field(
        ge=1024,
        description="Maximum bytes of a value, in UTF-8 for text.",
    )
    then: LobPolicy = Field(
        default="truncate",
        description="What happens to a longer value: `truncate` keeps its beginning, `null` "
        "replaces it by NULL, `stop` ends the load of its table, or the capture if "
        "the value is in a change. Default: `truncate`.",
    )
