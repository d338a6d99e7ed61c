"""The package as an archive that executors fetch: they run the code of the driver, no other."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from pathlib import Path

import polynya
from polynya.lake.spark.cache import cache_root

_SUFFIXES = frozenset({".json", ".py"})
#: The earliest time that an archive can hold: the same files make the same archive.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def packed() -> Path:
    """Path of an archive of this package, in the cache; its name has the hash of its content."""
    root = Path(polynya.__file__).parent
    files = sorted(path for path in root.rglob("*") if path.suffix in _SUFFIXES)
    content = {str(path.relative_to(root.parent)): path.read_bytes() for path in files}
    digest = hashlib.sha256()
    for name, data in content.items():
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    target = cache_root() / "package" / f"polynya-{digest.hexdigest()[:16]}.zip"
    if not target.is_file():
        _write(target, content)
    return target


def _write(target: Path, content: dict[str, bytes]) -> None:
    """Write an archive so that nobody sees a part of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=".polynya-")
    try:
        with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, data in content.items():
                archive.writestr(zipfile.ZipInfo(name, _NO_TIME), data, zipfile.ZIP_DEFLATED)
        Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
