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
    """The files in force by path, those among them that were edited by hand, and what is left over.

    `left_over` are plain files that count for nothing: a push did not come to write them, or was
    overtaken and wrote them too late.
    """

    files: Mapping[str, bytes]
    edits: Mapping[str, Edit]
    left_over: tuple[str, ...] = ()


def in_force(
    pushed: Mapping[str, bytes],
    plain: Mapping[str, Plain],
    replaces: Mapping[str, str | None],
    overtaken: Mapping[str, bytes] | None = None,
) -> InForce:
    """Decide for each file whether the bundle or the plain file counts.

    The plain file counts, also by its absence, with three exceptions: a push did not come to
    replace it (its version is the one in `replaces`); it is as the overtaken push would have it;
    its content was not read.

    Args:
        pushed: the files of the bundle.
        plain: the plain files; one that is not among them does not exist.
        replaces: see `Pointer`.
        overtaken: the files of a push that was not finished when this one came; None if there was
            none. It may still be writing.
    """
    files: dict[str, bytes] = {}
    edits: dict[str, Edit] = {}
    left_over = []
    for path in sorted(pushed.keys() | plain.keys() | replaces.keys()):
        here, there = pushed.get(path), plain.get(path)
        version, content = (there.version, there.content) if there else (None, None)
        late = overtaken is not None and content == overtaken.get(path)
        if there is not None and content is None:
            content = here
        elif content != here and (late or (path in replaces and replaces[path] == version)):
            left_over.append(path)
            content = here
        if content is not None:
            files[path] = content
        if content != here:
            edits[path] = _kind(here, content)
    return InForce(files, edits, tuple(left_over))


def _kind(before: bytes | None, after: bytes | None) -> Edit:
    if before is None:
        return "added"
    return "deleted" if after is None else "changed"
