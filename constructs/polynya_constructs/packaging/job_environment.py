"""The environment of jobs in EMR Serverless and Glue: the package of nodes as one archive.

The archive expects Python 3.11 and Java 17 in the image, on Amazon Linux 2023 as on nodes, and
brings neither. AWS documents Python 3.11 for EMR 7.10 on EC2 (EMR Release Guide, "Amazon EMR
version 7.10.0") and for Glue 5.0 (Glue Developer Guide, "AWS Glue version support policy"). Python
3.11 in EMR Serverless was not tried, nor Java 17 and Amazon Linux 2023 in either service.
`bin/python` of the archive is a script: Python of the image, with the packages and the jars beside
the script, wherever the service unpacks them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path
from typing import Final

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.package import PYTHON, Archive, Dependencies, KeptArchive

# Change it when the same packages are to make other files.
_RECIPE: Final = "1"
_PYTHON: Final = f"""\
#!/bin/sh
# Python of the image, with the packages of this archive.
here=$(cd "$(dirname "$0")/.." && pwd) || exit 1
PYTHONPATH="$here/site-packages" POLYNYA_JARS="$here/jars"
export PYTHONPATH POLYNYA_JARS
exec "${{POLYNYA_PYTHON:-python{PYTHON}}}" "$@"
"""
_COMPRESSION: Final = 1  # most of it is compressed already


def job_environment(folder: Path, dependencies: Dependencies, code: Archive) -> KeptArchive:
    """The archive of these dependencies and this code, built into `folder` or not."""
    parts = (_RECIPE, _PYTHON, dependencies.name, code.sha256)
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    architecture = dependencies.path.stem.removeprefix("dependencies-").rpartition("-")[0]
    stem = f"jobs-{Architecture(architecture)}-{name[:16]}"
    return KeptArchive(name, folder / f"{stem}.tar.gz", folder / f"{stem}.json")


def build_job_environment(folder: Path, dependencies: Dependencies, code: Archive) -> Archive:
    """Return the archive, building it of the dependencies that are built.

    The same files make the same bytes, as far as the machine's zlib does.

    Raises:
        FileNotFoundError: the dependencies are not built.
        OSError: a file cannot be read or written.
    """
    kept = job_environment(folder, dependencies, code)
    if archive := kept.built():
        return archive
    scratch = kept.path.with_name(f".{kept.path.name}.{os.getpid()}")
    try:
        with (
            scratch.open("wb") as file,
            gzip.GzipFile("", "wb", _COMPRESSION, file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive_of_jobs,
        ):
            member = tarfile.TarInfo("bin/python")
            member.size, member.mode = len(_PYTHON), 0o755
            archive_of_jobs.addfile(member, io.BytesIO(_PYTHON.encode()))
            _copy(dependencies.path, archive_of_jobs, "", {"site-packages", "jars"})
            _copy(code.path, archive_of_jobs, "site-packages/", {"polynya"})
        scratch.replace(kept.path)
    finally:
        scratch.unlink(missing_ok=True)
    with kept.path.open("rb") as stream:
        return kept.keep(hashlib.file_digest(stream, "sha256").hexdigest())


def _copy(source: Path, to: tarfile.TarFile, prefix: str, wanted: set[str]) -> None:
    """Copy what is below the folders `wanted` of an archive."""
    with tarfile.open(source) as archive:
        for member in archive:
            if member.name.partition("/")[0] in wanted:
                content = archive.extractfile(member)
                member.name = f"{prefix}{member.name}"
                to.addfile(member, content)
