"""How much the key indexes of this machine may take: the variable `POLYNYA_KEY_INDEX`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from polynya.lake.apply.local.keys.folder import Folder
from polynya.lake.apply.local.keys.indexes import KeyIndexes
from polynya.lake.spark.cache import cache_root
from polynya.model.config.durations import parse_size
from polynya.model.errors import ConfigError

VARIABLE: Final = "POLYNYA_KEY_INDEX"
#: Some 200 million keys of 64 bits.
DEFAULT: Final = "4GB"


def key_indexes(setting: str | None, folder: Path | None = None) -> KeyIndexes | None:
    """The indexes of this machine, None when they are switched off.

    `setting` is the size that all may take, `0` for none; None or nothing stands for `DEFAULT`.
    They lie in the cache unless a `folder` is named. Raises ConfigError for what is no size.
    """
    try:
        limit = parse_size(setting or DEFAULT)
    except ValueError as error:
        raise ConfigError(
            "POLYNYA-CFG-009",
            f"{VARIABLE}: {error}",
            where="the environment",
            state="nothing was started, no data was touched",
            fix=f"set {VARIABLE} to a size such as {DEFAULT}, to 0 for no indexes, or unset it",
        ) from error
    return KeyIndexes(Folder(folder or cache_root() / "keys", limit)) if limit else None
