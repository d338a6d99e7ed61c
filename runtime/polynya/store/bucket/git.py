"""What Git says about a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

_SECONDS: Final = 10


def commit_of(folder: Path) -> str | None:
    """The commit of the folder's work tree, with `+` if the folder has changes.

    None when it is in no work tree, or there is no Git.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain", "--", ".")
    return commit + ("+" if changes is None or changes else "")


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            # No hook or file system monitor that a configuration in the folder names is started.
            ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
