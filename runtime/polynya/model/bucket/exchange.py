"""What a push may overwrite, and what a pull brings home.

A project folder remembers which content each file had in the bucket when the two last met (`met`,
hashes by path; a file that did not exist is not in it). None: they never met. What was met was
seen; only what was not seen, here or there, is protected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from polynya.model.bucket.in_force import InForce


def content_hash(content: bytes | None) -> str | None:
    """SHA-256 in hex; None for a file that does not exist."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def unseen_edits(
    local: Mapping[str, bytes], bucket: InForce, met: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Files that were edited by hand in the bucket, and that a push of `local` would lose unseen.

    An edit was seen when it was there at the last meeting, and it is not lost when the local file
    holds the same.
    """
    return tuple(
        path
        for path in bucket.edits
        if local.get(path) != bucket.files.get(path)
        and (met is None or met.get(path) != content_hash(bucket.files.get(path)))
    )


@dataclass(frozen=True, slots=True)
class Homecoming:
    """What a pull does: the content that files get (None: deleted), and what it must not touch."""

    writes: Mapping[str, bytes | None]
    conflicts: tuple[str, ...]


def homecoming(
    local: Mapping[str, bytes],
    bucket: InForce,
    pushed: Mapping[str, bytes],
    met: Mapping[str, str] | None,
) -> Homecoming:
    """Decide what a pull does with each file that differs.

    A file that only the bucket changed since the last meeting comes home, one that only the folder
    changed stays, one that both changed is a conflict. A folder that never met the bucket counts as
    having what was pushed: what it has instead is a conflict, what it has besides is its own.
    """
    writes: dict[str, bytes | None] = {}
    conflicts = []
    for path in sorted(local.keys() | bucket.files.keys()):
        here, there = local.get(path), bucket.files.get(path)
        before = content_hash(pushed.get(path)) if met is None else met.get(path)
        if here == there:
            continue
        if content_hash(here) == before or (here is None and met is None):
            writes[path] = there
        elif content_hash(there) != before or (there is not None and met is None):
            conflicts.append(path)
    return Homecoming(writes, tuple(conflicts))
