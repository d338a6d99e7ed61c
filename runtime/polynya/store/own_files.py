"""Files that only this user may read: logs hold names of people's files, and values in errors."""

from __future__ import annotations

import os
from typing import Final

_OWN: Final = 0o600


def own(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=own)`; a new one is for this user only."""
    return os.open(path, flags, _OWN)
