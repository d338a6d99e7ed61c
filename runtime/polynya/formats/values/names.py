"""Which names a source column may have."""

from __future__ import annotations

from collections.abc import Iterable

from polynya.formats.batch import SERVICE_NAMES
from polynya.model.contract.headers import RESERVED_PREFIX

MAX_NAME_LENGTH = 255


def nested_problem(name: str) -> str | None:
    """Why a field cannot have this name, or None."""
    if not name:
        return "a column without a name"
    if len(name) > MAX_NAME_LENGTH:
        return f"a column name of {len(name)} characters"
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        return f"column {name!r} has a control character in its name"
    return None


def column_problem(name: str) -> str | None:
    """Why a top-level column cannot have this name, or None."""
    lower = name.lower()
    if lower.startswith(RESERVED_PREFIX) or lower in SERVICE_NAMES:
        return f"column {name!r} has a name that Polynya keeps for itself"
    return nested_problem(name)


class NameSpace:
    """Names of one level as engines compare them, without regard to case."""

    def __init__(self, names: Iterable[str]) -> None:
        self._spelling = {name.lower(): name for name in names}

    def clash(self, name: str) -> str | None:
        """Why `name` cannot stand beside the names so far, or None; then it is one of them."""
        first = self._spelling.setdefault(name.lower(), name)
        if first == name:
            return None
        return f"columns {first!r} and {name!r} differ only in case"
