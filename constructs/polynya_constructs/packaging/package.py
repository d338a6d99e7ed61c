"""What the two archives are called and where they lie; whether they are there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.archive import write_archive

PYTHON: Final = "3.11"
"""Of the nodes. Amazon Linux 2023 has it as `python3.11`, and the lock files are made with it."""

JOB_ARCHIVE: Final = "polynya.tar.gz"
"""What the script of a job looks for (`polynya.cluster.submit.entry`)."""

#: What decides what is in the dependencies, below the project's folder.
LOCKS: Final = (
    "requirements.txt",
    "requirements/build.txt",
    "runtime/polynya/lake/spark/jars.lock.json",
)
# Change it when the same locks are to make other files.
_RECIPE = "1"

_NODE_FILES = Path(__file__).resolve().parents[1] / "nodes" / "files"


def published_key(sha256: str) -> str:
    """Where an archive lies in the bucket of assets: named by its content, so never replaced."""
    return f"polynya/{sha256}.tar"


def published_job_key(sha256: str) -> str:
    """The same of the environment of jobs: Glue calls a file as its object is called."""
    return f"polynya/jobs/{sha256}/{JOB_ARCHIVE}"


@dataclass(frozen=True, slots=True)
class Archive:
    """A file that nodes fetch and verify.

    Attributes:
        name: unique for its content, 64 hex digits.
        path: where it lies.
        sha256: of the whole file, lower-case hex.
    """

    name: str
    path: Path
    sha256: str

    @property
    def key(self) -> str:
        """Where it lies in the bucket of assets."""
        is_of_jobs = self.path.name.endswith(".tar.gz")
        return (published_job_key if is_of_jobs else published_key)(self.sha256)


@dataclass(frozen=True, slots=True)
class KeptArchive:
    """An archive that is built once, into a folder.

    Attributes:
        name: unique for what is in it, 64 hex digits.
        path: where it lies or is to lie.
        manifest: the file beside it that tells its digest; written last.
    """

    name: str
    path: Path
    manifest: Path

    def built(self) -> Archive | None:
        """Return the archive if it has been built whole, else None."""
        try:
            manifest = json.loads(self.manifest.read_text(encoding="utf-8"))
            size = self.path.stat().st_size
            if (manifest["name"], manifest["bytes"]) == (self.name, size):
                return Archive(self.name, self.path, manifest["sha256"])
        except (OSError, ValueError, LookupError, TypeError):
            pass  # not there, or damaged: to be built
        return None

    def keep(self, sha256: str) -> Archive:
        """Write the manifest of the archive, whose file was written."""
        size = self.path.stat().st_size
        manifest = {"name": self.name, "sha256": sha256, "bytes": size}
        self.manifest.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        return Archive(self.name, self.path, sha256)


@dataclass(frozen=True, slots=True)
class Dependencies(KeptArchive):
    """Everything that a runtime needs besides its own code: Python packages and jars.

    Its name is the SHA-256 of the lock files, the architecture and how they are packed.
    """

    @classmethod
    def of(cls, project: Path, folder: Path, architecture: Architecture) -> Dependencies:
        """Return those that the lock files of a project ask for, built into `folder` or not."""
        digest = hashlib.sha256(f"{_RECIPE} {PYTHON} {architecture}\n".encode())
        for lock in LOCKS:
            digest.update(hashlib.sha256((project / lock).read_bytes()).digest())
        name = digest.hexdigest()
        stem = f"dependencies-{architecture}-{name[:16]}"
        return cls(name, folder / f"{stem}.tar", folder / f"{stem}.json")

    def write(self, trees: Mapping[str, Path]) -> Archive:
        """Pack folders as these dependencies, with their manifest."""
        return self.keep(write_archive(self.path, trees))


def write_code(project: Path, folder: Path) -> Archive:
    """Pack the runtime's own code and the files of a node; named by its content.

    It takes some milliseconds, so it is done at every synthesis and can never be stale.
    """
    path = folder / "code.tar"
    sha256 = write_archive(path, {"polynya": project / "runtime" / "polynya", "node": _NODE_FILES})
    return Archive(sha256, path, sha256)
