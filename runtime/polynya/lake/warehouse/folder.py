"""The folder of a warehouse: made, and tried before anything is written to it."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from typing import Final

from polynya.model.errors import DependencyError

#: What a disk says that takes no more.
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
#: What is written to try: permission bits say nothing about full disks and read-only mounts.
_TRIAL: Final = b"polynya" * 10_000


def make_folder(folder: Path) -> None:
    """Make a folder where there is none. Raises DependencyError when that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(str(folder), error) from error


def refuse_unwritable(folder: Path) -> None:
    """Write a little and take it back. Raises DependencyError when that cannot be done."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(_TRIAL)
    except OSError as error:
        raise unwritable(str(folder), error) from error


def unwritable(where: str, error: OSError) -> DependencyError:
    """The error for a place that takes nothing, after what the system said."""
    if error.errno in NO_ROOM:
        return no_room(where, error.strerror)
    return no_access(where, error.strerror or str(error))


def no_room(where: str | None, why: str | None) -> DependencyError:
    """The error for a full disk."""
    return DependencyError(
        "POLYNYA-DEP-011",
        "there is no room left on the disk",
        where=where,
        why=why,
        state="as after the last completed commit; every commit is atomic",
        fix="make room, then run again",
    )


def no_access(where: str | None, why: str) -> DependencyError:
    """The error for a folder or a file that the system does not let us use."""
    return DependencyError(
        "POLYNYA-DEP-010",
        "the system refuses access to a file or a folder",
        where=where,
        why=why,
        state="as after the last completed commit; every commit is atomic",
        fix="see to the permissions and to how the disk is mounted, or choose another folder",
    )
