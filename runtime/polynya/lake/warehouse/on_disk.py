"""Tables and views as they lie in a warehouse: folders with files of metadata."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: `00012-<uuid>.metadata.json`, as catalogs name them; packed ones have `.gz` before the ending.
_METADATA: Final = re.compile(r"(\d+)-.*?(\.gz)?\.metadata\.json")


def read_metadata(file: Path) -> dict[str, Any] | None:
    """What a metadata file says, None when it is not whole."""
    try:
        raw = file.read_bytes()
        said = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (OSError, EOFError, ValueError):
        return None
    return said if isinstance(said, dict) and "location" in said else None


def version_of(file: Path) -> int:
    """The number of a version of the metadata, -1 for another file."""
    match = _METADATA.fullmatch(file.name)
    return int(match.group(1)) if match else -1


def newest_metadata(folder: Path) -> Path | None:
    """The newest whole metadata file of a table or a view in a folder.

    Of two of one number, one was never committed. Either is a state that the table could have, with
    the position in its source that belongs to it.
    """
    files = sorted((folder / "metadata").glob("*.metadata.json"), key=version_of, reverse=True)
    best: tuple[int, int, Path] | None = None
    for file in files:
        if best is not None and version_of(file) < best[0]:
            break
        said = read_metadata(file)
        if said is not None:
            found = (version_of(file), int(said.get("last-updated-ms", 0)), file)
            best = found if best is None else max(best, found)
    return None if best is None else best[2]


def tables_in(warehouse: Path) -> Iterator[tuple[str, str, Path]]:
    """Namespace, name and newest metadata of each table in a warehouse.

    Views are left out, and tables without a snapshot: who was killed while making one leaves it so.
    """
    for folder in sorted(warehouse.glob("*/*/metadata")):
        newest = newest_metadata(folder.parent)
        said = read_metadata(newest) if newest is not None else None
        if newest is not None and said is not None and said.get("snapshots"):
            yield folder.parent.parent.name, folder.parent.name, newest


def has_tables_in(warehouse: Path) -> bool:
    """Whether any table lies in a warehouse."""
    return next(tables_in(warehouse), None) is not None


def plain_path(location: str) -> Path | None:
    """The path of a location on this machine, with or without its scheme; None for another one."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    return Path(location) if location.startswith("/") else None


def lies_in(location: str, folder: Path) -> bool:
    """Whether a location is in a folder, whatever links lead there."""
    path = plain_path(location)
    if path is None:
        return False
    return path.is_relative_to(folder) or path.resolve().is_relative_to(folder.resolve())
