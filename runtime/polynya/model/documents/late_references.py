"""`${file:PATH}` and `${secret:NAME}`, which are read where they are used and not with the file.

They stand only where a setting holds a secret. Until its use the setting is the text as written, so
no dump or comparison of settings has the secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from polynya.model.contract.identifiers import shown

Provider: TypeAlias = Literal["file", "secret"]

LATE_PROVIDERS: Final = ("file", "secret")

#: With a second `$` it is the text itself.
_REFERENCE: Final = re.compile(r"\$(\$?)\{(file|secret):([^}]*)\}")
_ENTRY: Final = re.compile(r"([A-Za-z0-9/_+=.@:-]{1,2048})(?:#([^#}]+))?")


@dataclass(frozen=True, slots=True)
class LateReference:
    """What is read: a file, or an entry of Secrets Manager and perhaps a field of its JSON."""

    provider: Provider
    place: str
    field: str | None = None

    def __str__(self) -> str:
        """The reference as it is written."""
        return f"${{{self.provider}:{self.place}{f'#{self.field}' if self.field else ''}}}"


def late_reference(provider: str, rest: str) -> LateReference | str:
    """The reference, or what is wrong with it."""
    written = shown(f"${{{provider}:{rest}}}")
    if provider == "file":
        right = rest.startswith("/") and ".." not in rest.split("/") and rest.isprintable()
        return LateReference("file", rest) if right else f"{written} names no absolute path"
    entry = _ENTRY.fullmatch(rest)
    if entry is None:
        return f"{written} names no secret; write `${{secret:NAME}}` or `${{secret:NAME#FIELD}}`"
    return LateReference("secret", *entry.groups())


def kept_as_text(value: str) -> str:
    """A value in which nothing is a reference, to stand beside references."""
    return _REFERENCE.sub(lambda found: f"${found[0]}", value)


def opened(text: str, read: Callable[[LateReference], str]) -> str:
    """A text with its references replaced by what `read` gives."""

    def replace(found: re.Match[str]) -> str:
        escaped, provider, rest = found.groups()
        if escaped:
            return found[0][1:]
        reference = late_reference(provider, rest)
        return read(reference) if isinstance(reference, LateReference) else found[0]

    return _REFERENCE.sub(replace, text)
