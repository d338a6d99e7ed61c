"""The cache directory of this user: jars, the Java shim, class archives.

It holds only what can be fetched or computed again; deleting it costs time, not data.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final
from uuid import uuid4

_LOCK: Final = "lock"
#: Locks of this process's scratch folders, open as long as it lives; the system closes them however
#: it ends.
_held: list[int] = []


def cache_root() -> Path:
    """Return this user's cache directory (not created): in XDG_CACHE_HOME, else in `~/.cache`."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says that a relative value is invalid and must be ignored.
    root = base if base.is_absolute() else Path.home() / ".cache"
    return root / "polynya"


def write_atomically(path: Path, content: str, *, mode: int = 0o644) -> None:
    """Write a small text file so that a reader sees the old content or the new, never a part.

    Raises:
        OSError: the directory cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    scratch = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(content)
        scratch.chmod(mode)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def new_scratch(root: Path) -> Path:
    """A new folder of this process for what Spark and the JVM write meanwhile.

    It is held by a lock. Folders below `root` that nobody holds are removed: a process that was
    killed could not.

    Raises OSError when nothing can be written there.
    """
    root.mkdir(parents=True, exist_ok=True)
    for folder in root.iterdir():
        _remove_unheld(folder)
    folder = root / f"{os.getpid()}-{uuid4().hex[:8]}"
    folder.mkdir()
    _held.append(_locked(folder / _LOCK, create=True))
    return folder


def _remove_unheld(folder: Path) -> None:
    try:
        lock = _locked(folder / _LOCK)
    except OSError:
        # Held, about to be held, or none of ours.
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _locked(file: Path, *, create: bool = False) -> int:
    lock = os.open(file, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
