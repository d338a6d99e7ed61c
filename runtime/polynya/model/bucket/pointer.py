"""The pointer: which bundle is in force, who pushed it, and what the push was going to replace."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, ValidationError

from polynya.model.bucket.bundle import damaged
from polynya.model.config.fields import Frozen

MAX_POINTER_BYTES: Final = 4_000_000

_Text: TypeAlias = Annotated[str, Field(max_length=1024)]
_Revision: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Pointer(Frozen):
    """The content of `pushed.json`.

    `token` is new with each write, so that two writes never look alike. `commit` is that of the
    Git work tree, followed by `+` if it had changes. Until a push has written every plain file,
    `replaces` holds the versions of those that it has to replace or delete, None where it has to
    make one: a plain file that is still in this version is left over, not edited. `overtook` is the
    revision of a push that was not finished when this one came, and may still be writing.
    """

    format: Literal[1] = 1
    revision: _Revision
    pushed_by: _Text
    pushed_at: datetime
    commit: _Text | None = None
    token: _Text
    overtook: _Revision | None = None
    replaces: dict[_Text, _Text | None] = Field(default_factory=dict)

    def encoded(self) -> bytes:
        """The object's content."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    def settled(self, token: str) -> Pointer:
        """The same push when all plain files are written."""
        return self.model_copy(update={"replaces": {}, "token": token})


def parse_pointer(data: bytes) -> Pointer:
    """The pointer in an object; raises OperationError when it is none (POLYNYA-BKT-004)."""
    try:
        return Pointer.model_validate_json(data)
    except ValidationError as error:
        raise damaged(f"`pushed.json` cannot be read: {error.errors()[0]['msg']}") from None
