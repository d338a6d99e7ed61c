"""The configuration bucket: bundles, the pointer, and what a push or pull may overwrite.

At each push or pull a project folder records the content of its files in the bucket as `met`: a
hash by path, without files that did not exist. None means no push or pull yet. Content in `met`
counts as seen by both sides. Only unseen content, in the folder or in the bucket, is protected.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from polynya.model.config.fields import Frozen
from polynya.model.error_catalogue.cluster import (
    CONFIGURATION_OBJECT_DAMAGED,
    CONFIGURATION_OBJECT_REFUSED,
)

#: The most files of a project, and the most bytes of all of them together.
MAX_FILES: Final = 2_000
MAX_BYTES: Final = 32_000_000
#: A character takes at most six bytes in JSON.
MAX_BUNDLE_BYTES: Final = 6 * MAX_BYTES + 1_000_000

_FILES: Final = TypeAdapter(dict[str, str])


def encode(files: Mapping[str, bytes]) -> bytes:
    """The bundle of files that are UTF-8: the same bytes for the same files.

    Raises:
        ConfigError: more files or bytes than a bundle holds, or a file that is not text
            (POLYNYA-BKT-005).
    """
    size = sum(map(len, files.values()))
    if len(files) > MAX_FILES or size > MAX_BYTES:
        raise CONFIGURATION_OBJECT_REFUSED(
            f"the project has {len(files)} files of {size} bytes together; "
            f"a bundle holds {MAX_FILES} files and {MAX_BYTES} bytes",
            state="nothing was uploaded",
            fix="keep test data outside, or split the project",
        )
    texts = {path: _text(path, content) for path, content in files.items()}
    return json.dumps(texts, sort_keys=True, indent=1).encode() + b"\n"


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise CONFIGURATION_OBJECT_REFUSED(
            "the file is not UTF-8 text",
            where=path,
            state="nothing was uploaded",
            fix="write certificates as PEM, in UTF-8, or keep the file elsewhere",
        ) from None


def revision_of(bundle: bytes) -> str:
    """The name of a bundle: its SHA-256 in hex."""
    return hashlib.sha256(bundle).hexdigest()


def decode(bundle: bytes, revision: str) -> dict[str, bytes]:
    """The files of a bundle.

    Raises:
        OperationError: it is not the bundle of that name (POLYNYA-BKT-004).
    """
    if revision_of(bundle) != revision:
        raise CONFIGURATION_OBJECT_DAMAGED(
            f"the bundle {revision[:12]} is not what was uploaded under this name"
        )
    try:
        texts = _FILES.validate_json(bundle)
    except ValidationError:
        raise CONFIGURATION_OBJECT_DAMAGED(f"{revision[:12]} is not a bundle") from None
    return {path: text.encode() for path, text in texts.items()}


MAX_POINTER_BYTES: Final = 4_000_000

_Text: TypeAlias = Annotated[str, Field(max_length=1024)]
_Revision: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Pointer(Frozen):
    """The content of `pushed.json`.

    `token` is new with each write, so that two writes always differ. `commit` is that of the
    Git work tree, followed by `+` if it had changes. Until a push has written every plain file,
    `replaces` holds the versions of those that it will replace or delete, None for a new one: a
    plain file that still has this version is left over, not edited. `overtook` is the revision of
    a push that was not finished when this one started, and may still be writing.
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
        """The same push after all plain files were written."""
        return self.model_copy(update={"replaces": {}, "token": token})


def parse_pointer(data: bytes) -> Pointer:
    """The pointer in an object; raises OperationError if it is not a pointer (POLYNYA-BKT-004)."""
    try:
        return Pointer.model_validate_json(data)
    except ValidationError as error:
        raise CONFIGURATION_OBJECT_DAMAGED(
            f"`pushed.json` cannot be read: {error.errors()[0]['msg']}"
        ) from None


Edit: TypeAlias = Literal["changed", "added", "deleted"]


@dataclass(frozen=True, slots=True)
class Plain:
    """A plain file as it is now: its version, and its content, None if it was not read."""

    version: str
    content: bytes | None


@dataclass(frozen=True, slots=True)
class InForce:
    """The files in force by path, those that were edited by hand, and leftovers.

    `left_over` are plain files that do not count: a push was interrupted before it wrote them, or
    was overtaken and wrote them too late.
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

    The plain file counts, also if it is missing, with three exceptions: a push was interrupted
    before it replaced the file (its version is the one in `replaces`); the file is that of the
    overtaken push; its content was not read.

    Args:
        pushed: the files of the bundle.
        plain: all plain files.
        replaces: see `Pointer`.
        overtaken: the files of a push that was not finished when this one started, and may still
            be writing; None if there was none.
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


def content_hash(content: bytes | None) -> str | None:
    """SHA-256 in hex; None for a file that does not exist."""
    return None if content is None else hashlib.sha256(content).hexdigest()


def unseen_edits(
    local: Mapping[str, bytes], bucket: InForce, met: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Files that were edited by hand in the bucket, and whose edits a push of `local` would lose.

    `met` has the hashes of the last push or pull. An edit that was there at that time was seen, and
    an edit that the local file has too is not lost.
    """
    return tuple(
        path
        for path in bucket.edits
        if local.get(path) != bucket.files.get(path)
        and (met is None or met.get(path) != content_hash(bucket.files.get(path)))
    )


@dataclass(frozen=True, slots=True)
class PullPlan:
    """What a pull does: new content by file (None: delete), and files in conflict, left alone."""

    writes: Mapping[str, bytes | None]
    conflicts: tuple[str, ...]


def plan_pull(
    local: Mapping[str, bytes],
    bucket: InForce,
    pushed: Mapping[str, bytes],
    met: Mapping[str, str] | None,
) -> PullPlan:
    """Decide what a pull does with each file that differs.

    A file that only the bucket changed since the last push or pull is written, one that only the
    folder changed stays, one that both changed is a conflict. A folder without an earlier push or
    pull counts as having what was pushed: a different file is a conflict, an extra one stays.
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
    return PullPlan(writes, tuple(conflicts))
