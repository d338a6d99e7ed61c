"""Paths and globs that configuration may name: always below a root, on every platform."""

from __future__ import annotations

import re
from typing import Final

from polynya.model.contract.identifiers import shown

_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_MAX_LENGTH: Final = 1024


def relative_path_problem(path: str) -> str | None:
    """Say why a path or glob could leave its root or surprise a file system, or None if it is fine.

    `/` separates. Refused: absolute paths, drive letters, URIs, `..`, backslashes and control
    characters.
    """
    if not path or len(path) > _MAX_LENGTH:
        return f"a path has 1 to {_MAX_LENGTH} characters"
    if _FORBIDDEN.search(path):
        return f"path {shown(path)} holds a backslash or a control character"
    if path.startswith(("/", "~")) or ":" in path.split("/", maxsplit=1)[0]:
        return f"path {shown(path)} is not relative"
    if ".." in path.split("/"):
        return f"path {shown(path)} leaves its folder with `..`"
    return None
