"""What a project folder remembers of a configuration bucket: each file's hash at their meeting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from polynya.store.object_store import LocalObjectStore

#: It belongs to one copy of the folder, so that version control should leave it out.
MEMORY_FILE: Final = ".polynya/bucket.json"

_Memory: Final = TypeAdapter(dict[str, dict[str, str]])


def recalled(folder: Path, bucket: str) -> Mapping[str, str] | None:
    """Hashes by path at the last push or pull, None when there was none."""
    return _read(folder).get(bucket)


def remember(folder: Path, bucket: str, hashes: Mapping[str, str]) -> None:
    """Keep the hashes; of other buckets everything stays."""
    memory = _read(folder) | {bucket: dict(sorted(hashes.items()))}
    LocalObjectStore(folder).put(MEMORY_FILE, _Memory.dump_json(memory, indent=1) + b"\n")


def _read(folder: Path) -> dict[str, dict[str, str]]:
    try:
        return _Memory.validate_json((folder / MEMORY_FILE).read_bytes())
    except (FileNotFoundError, ValidationError):
        # Without a memory more is protected, never less.
        return {}
