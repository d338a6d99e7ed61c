"""Folders that take no more, for one command: small disks and read-only mounts, without root.

The command runs in a mount namespace of its own, so that nobody else sees the mount, and it is gone
with the command. What was written on a small disk is copied out, as if the disk had been enlarged.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
#: `$1` is the folder, `$2` its size in KiB, `$3` where its content goes; then the command.
_SMALL_DISK = """
set -e
folder=$1 size=$2 kept=$3
shift 3
mkdir "$kept.before"
cp -a "$folder/." "$kept.before"
mount -t tmpfs -o size="${size}k" tmpfs "$folder"
cp -a "$kept.before/." "$folder"
set +e
"$@"
code=$?
mkdir "$kept"
cp -a "$folder/." "$kept"
exit $code
"""
_READ_ONLY = """
set -e
folder=$1
shift 1
mount --bind "$folder" "$folder"
mount -o remount,bind,ro "$folder"
exec "$@"
"""


@lru_cache
def can_mount() -> bool:
    """Whether this machine lets us mount in a namespace of our own."""
    try:
        done = subprocess.run(
            [*_NAMESPACE, "sh", "-c", "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


def on_small_disk(folder: Path, room_kibibytes: int, kept: Path) -> list[str]:
    """Words in front of a command for which `folder` has so much room left.

    What is in the folder after the command is in `kept`, which is made.
    """
    used = sum(_pages(file) for file in folder.rglob("*") if file.is_file())
    size = used * 4 + room_kibibytes
    return [*_NAMESPACE, "sh", "-c", _SMALL_DISK, "sh", str(folder), str(size), str(kept)]


def read_only(folder: Path) -> list[str]:
    """Words in front of a command that cannot write into `folder`."""
    return [*_NAMESPACE, "sh", "-c", _READ_ONLY, "sh", str(folder)]


def enlarge(folder: Path, kept: Path) -> None:
    """Make room: what was on the small disk is in the folder from now on."""
    shutil.rmtree(folder)
    kept.rename(folder)
    shutil.rmtree(kept.with_name(f"{kept.name}.before"))


def _pages(file: Path) -> int:
    """Pages of 4 KiB that a file takes on a disk in memory."""
    return -(-file.stat().st_size // 4096)
