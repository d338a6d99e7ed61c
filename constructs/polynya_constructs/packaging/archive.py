"""Archives of which the same files always make the same bytes, wherever and whenever."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

# Not packed: what Python and tools leave.
_LEFT_BEHIND = frozenset({"__pycache__", ".DS_Store", ".mypy_cache", ".ruff_cache"})

# The first moment that every archive format can hold, 1980-01-01.
_EPOCH = 315_532_800


def write_archive(path: Path, trees: Mapping[str, Path]) -> str:
    """Pack folders into a tar file and return the SHA-256 of the file in lower-case hex.

    Names are sorted; owners, times and the umask of the machine are left out. Nothing is
    compressed: what is large (jars) is so already, and compressors differ between machines.

    Args:
        path: the file; replaced as a whole, its folder is made.
        trees: folders by their name in the archive.

    Raises:
        ValueError: for something that is neither a file nor a folder, such as a link.
        OSError: a file cannot be read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with tarfile.open(scratch, "w", format=tarfile.PAX_FORMAT) as archive:
            for prefix, folder in sorted(trees.items()):
                for file in _files(folder):
                    name = f"{prefix}/{file.relative_to(folder).as_posix()}"
                    with file.open("rb") as content:
                        archive.addfile(_member(name, file), content)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_BEHIND:
            continue
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ValueError(f"{path} is neither a file nor a folder")
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _member(name: str, file: Path) -> tarfile.TarInfo:
    status = file.stat()
    member = tarfile.TarInfo(name)
    member.size = status.st_size
    member.mtime = _EPOCH
    member.mode = 0o755 if status.st_mode & 0o100 else 0o644
    return member
