"""A package as a folder that Python can run: fetched, verified, and only then unpacked."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from pathlib import Path
from typing import Final

from polynya.cluster.network.updating.pin import Pin, package_path
from polynya.model.errors import OperationError
from polynya.store.object_store import ObjectStore

#: What it may become on disk.
_MOST_BYTES: Final = 512 * 2**20
_MOST_FILES: Final = 20_000
_ENTRY: Final = Path("polynya", "__main__.py")


def fetch(store: ObjectStore, pin: Pin, versions: Path) -> Path:
    """The folder of a pinned package below `versions`; fetched unless it is there.

    Raises:
        OperationError: it is not the file that the pin names, or no package (POLYNYA-AGT-063).
        FileNotFoundError: there is none yet.
        DependencyError: what the store raises.
    """
    place = versions / pin.sha256
    if place.is_dir():
        return place
    data = store.read(package_path(pin.sha256), pin.size + 1).data
    if len(data) != pin.size or hashlib.sha256(data).hexdigest() != pin.sha256:
        raise _unusable(pin, "it is not the file that the pin names")
    partial = versions / f"{pin.sha256}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _unpack(data, partial)
    except (tarfile.TarError, ValueError, EOFError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise _unusable(pin, str(error)) from error
    # Whole at every moment: a folder of this name was unpacked to its end.
    partial.replace(place)
    return place


def forget(versions: Path, keep: set[str]) -> None:
    """Delete the folders of all other packages, and what a broken fetch left."""
    for one in versions.iterdir() if versions.is_dir() else ():
        if one.name not in keep:
            shutil.rmtree(one, ignore_errors=True)


def _unpack(data: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = archive.getmembers()
        if len(members) > _MOST_FILES or sum(one.size for one in members) > _MOST_BYTES:
            raise ValueError("it is larger than a package")
        # Nothing outside of the folder, no devices, no links out of it.
        archive.extractall(folder, members, filter="data")
    if not (folder / _ENTRY).is_file():
        raise ValueError(f"it has no {_ENTRY}")


def _unusable(pin: Pin, why: str) -> OperationError:
    return OperationError(
        "POLYNYA-AGT-063",
        "a package of the network agent cannot be used",
        where=package_path(pin.sha256),
        why=why,
        state="nothing of it was run; the version before goes on",
        fix="pin a package that `make package` has made",
    )
