"""Where Polynya keeps what can be fetched or computed again: jars, the Java shim, class archives.

Nothing under this directory is ever the only copy of anything; deleting it costs time, not data.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
