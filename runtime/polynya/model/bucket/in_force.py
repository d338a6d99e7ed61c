"""Which files are in force: the pushed bundle, and the edits by hand over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Edit: TypeAlias = Literal["changed", "added", "deleted"]


@dataclass(frozen=True, slots=True)
class Plain:
    """A plain file as it is now: in which version, and its content, None if it was not read."""

    version: str
    content: bytes | None


@dataclass(frozen=True, slots=True)
class InForce:
    """The files in force by path, and those among them that were edited by hand."""

    files: Mapping[str, bytes]
    edits: Mapping[str, Edit]


def in_force(
    pushed: Mapping[str, bytes],
    plain: Mapping[str, Plain],
    replaces: Mapping[str, str | None],
) -> InForce:
    """Decide for each file whether the bundle or the plain file counts.

    The plain file counts, also by its absence, with two exceptions: a push that was interrupted
    did not come to replace it (its version is the one in `replaces`), or its content was not read.

    Args:
        pushed: the files of the bundle.
        plain: the plain files; one that is not among them does not exist.
        replaces: see `Pointer`.
    """
    files: dict[str, bytes] = {}
    edits: dict[str, Edit] = {}
    for path in sorted(pushed.keys() | plain.keys()):
        here, there = pushed.get(path), plain.get(path)
        version = there.version if there else None
        left_over = path in replaces and replaces[path] == version
        if left_over or (there and there.content is None):
            content = here
        else:
            content = there.content if there else None
        if content is not None:
            files[path] = content
        if content != here:
            edits[path] = _kind(here, content)
    return InForce(files, edits)


def _kind(before: bytes | None, after: bytes | None) -> Edit:
    if before is None:
        return "added"
    return "deleted" if after is None else "changed"
