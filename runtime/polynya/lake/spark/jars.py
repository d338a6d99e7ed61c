"""The jars that Spark starts with: pinned in `jars.lock.json`, fetched once, always verified.

Spark never resolves anything itself: it gets local paths. A jar comes from the folder in
POLYNYA_JARS when that is set (air-gapped machines), else from the cache, which `ivy.py` fills.
`docs/adr/0001-locked-packages-jars-and-java.md` says why.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from polynya.lake.spark import ivy
from polynya.lake.spark.cache import cache_root, write_atomically
from polynya.model.config.target import ResolvedTarget
from polynya.model.contract.location import S3Location
from polynya.model.errors import DependencyError, PolynyaError

_log = logging.getLogger(__name__)

CORE = "core"
AWS = "aws"
POSTGRESQL = "postgresql"
KAFKA = "kafka"
MSK = "msk"
DEBEZIUM = "debezium"

_LOCK_FILE = Path(__file__).with_name("jars.lock.json")


@dataclass(frozen=True, slots=True)
class LockedJar:
    """One jar as the lock file pins it."""

    organisation: str
    module: str
    revision: str
    group: str
    """`core` is needed by every start; other groups only on demand."""
    size: int
    """Bytes."""
    sha256: str
    """Lower-case hex digest of the whole file."""

    @property
    def file_name(self) -> str:
        """Name of the file in the cache and in a POLYNYA_JARS folder."""
        return f"{self.module}-{self.revision}.jar"

    @property
    def coordinates(self) -> str:
        """Maven spelling, `organisation:module:revision`."""
        return f"{self.organisation}:{self.module}:{self.revision}"


@cache
def locked_jars(lock_file: Path = _LOCK_FILE) -> tuple[LockedJar, ...]:
    """Return every jar of the lock file, all groups."""
    document = json.loads(lock_file.read_text(encoding="utf-8"))
    return tuple(LockedJar(**entry) for entry in document["jars"])


def jar_paths(
    *, groups: Iterable[str] = (CORE,), repository: str | None = None, lock_file: Path = _LOCK_FILE
) -> list[str]:
    """Return verified local paths of the jars of `groups`, in the order of the lock file.

    Fetches what the cache lacks. When nothing is missing this costs a few `stat` calls.

    Args:
        groups: which groups of the lock file.
        repository: Maven repository of a company mirror; None = the environment's
            POLYNYA_MAVEN_REPOSITORY, else the public one that Ivy knows. The environment wins.
        lock_file: another lock file, for tests.

    Raises:
        DependencyError: a jar cannot be had (POLYNYA-DEP-002, -003) or is not the one that the
            lock pins (POLYNYA-DEP-004).
    """
    wanted = [jar for jar in locked_jars(lock_file) if jar.group in set(groups)]
    folder = os.environ.get("POLYNYA_JARS", "").strip()
    if folder:
        return [os.fspath(_from_folder(jar, Path(folder).absolute())) for jar in wanted]
    missing = [jar for jar in wanted if not (jars_directory() / jar.file_name).is_file()]
    if missing:
        _fetch(missing, repository)
    return [os.fspath(_verified(jar, jars_directory() / jar.file_name)) for jar in wanted]


def jars_of(target: ResolvedTarget | None, streams: Iterable[str] = ()) -> list[str]:
    """Paths of the jars that a target needs, None for any target; see `jar_paths`.

    `streams` are the groups that landings need beside.
    """
    if target is None:
        return jar_paths()
    groups = [CORE, *streams]
    # The AWS SDK that signs for MSK is that of Iceberg: two of them would get in each other's way.
    if isinstance(target.warehouse, S3Location) or MSK in groups:
        groups.append(AWS)
    if target.database is not None:
        groups.append(POSTGRESQL)
    return jar_paths(groups=groups, repository=target.maven_repository)


def jars_directory() -> Path:
    """Where fetched jars are kept; not created."""
    return cache_root() / "jars"


def sha256_of(path: Path) -> str:
    """Return the lower-case hex SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _from_folder(jar: LockedJar, folder: Path) -> Path:
    path = folder / jar.file_name
    if not path.is_file():
        raise DependencyError(
            "POLYNYA-DEP-003",
            f"the jar {jar.file_name} is not in the folder that POLYNYA_JARS names",
            where=os.fspath(folder),
            state="nothing was started, no data was touched; "
            "nothing is downloaded while POLYNYA_JARS is set",
            fix=f"put {jar.coordinates} there (SHA-256 {jar.sha256}), or unset POLYNYA_JARS",
        )
    return _verified(jar, path)


def _fetch(missing: Sequence[LockedJar], repository: str | None) -> None:
    """Download to a directory of this process, verify, then rename: nobody sees a part of a jar."""
    target = jars_directory()
    mirror = os.environ.get("POLYNYA_MAVEN_REPOSITORY", "").strip() or repository
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=".fetch-") as scratch:
            for jar in missing:
                _log.info("fetching %s (%.1f MB)", jar.coordinates, jar.size / 1_000_000)
            wanted = [(jar.organisation, jar.module, jar.revision) for jar in missing]
            paths = ivy.retrieve_all(wanted, Path(scratch), mirror)
            for jar, path in zip(missing, paths, strict=True):
                _check(jar, path, sha256_of(path), source="the download")
                path.replace(target / jar.file_name)
    except OSError as error:
        raise DependencyError(
            "POLYNYA-DEP-002",
            f"the jars cannot be stored: {error.strerror or error}",
            where=os.fspath(target),
            state="nothing was started, no data was touched",
            fix="make it writable, set XDG_CACHE_HOME to a directory that is, or set POLYNYA_JARS",
        ) from error


def _verified(jar: LockedJar, path: Path) -> Path:
    """Return `path` if it holds exactly the pinned jar.

    Reading 60 MB at every start would cost more than the check is worth, so a file whose size,
    inode and modification time are those of the last full check is taken as checked.
    """
    status = path.stat()
    seen = {"sha256": jar.sha256, "size": status.st_size, "inode": status.st_ino,
            "mtime_ns": status.st_mtime_ns, "ctime_ns": status.st_ctime_ns}  # fmt: skip
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    marker = jars_directory() / ".verified" / f"{name}.json"
    try:
        if json.loads(marker.read_text(encoding="utf-8")) == seen:
            return path
    except (OSError, ValueError):
        pass  # never checked, or the marker is damaged: check in full
    _check(jar, path, sha256_of(path), source=os.fspath(path))
    with suppress(OSError):  # a read-only cache costs a full check each time, no more
        write_atomically(marker, json.dumps(seen))
    return path


def _check(jar: LockedJar, path: Path, digest: str, *, source: str) -> None:
    if digest == jar.sha256:
        return
    raise DependencyError(
        "POLYNYA-DEP-004",
        f"{jar.file_name} is not the jar that the lock file pins: "
        f"SHA-256 {digest}, expected {jar.sha256}; "
        f"{path.stat().st_size} bytes, expected {jar.size}",
        where=source,
        state="the jar was not loaded, nothing was started, no data was touched",
        fix="delete the file and run `make install`; if it comes back, the repository serves "
        f"another {jar.coordinates}: do not use it",
    )


def _relock(lock_file: Path) -> None:
    """Write size and SHA-256 of every pinned revision again; run after editing a revision."""
    with tempfile.TemporaryDirectory(prefix="polynya-lock-") as scratch:
        entries, jars = [], locked_jars(lock_file)
        wanted = [(jar.organisation, jar.module, jar.revision) for jar in jars]
        for jar, path in zip(jars, ivy.retrieve_all(wanted, Path(scratch), None), strict=True):
            entry = replace(jar, size=path.stat().st_size, sha256=sha256_of(path))
            entries.append(asdict(entry))
    write_atomically(lock_file, json.dumps({"jars": entries}, indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m polynya.lake.spark.jars fetch|check|lock`; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m polynya.lake.spark.jars", description=__doc__)
    parser.add_argument("verb", choices=("fetch", "check", "lock"))
    parser.add_argument("--group", action="append", help="default: core")
    parser.add_argument("--repository", help="Maven repository of a company mirror")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    groups = options.group or [CORE]
    unknown = set(groups) - {jar.group for jar in locked_jars()}
    if unknown:
        parser.error(f"no such group in the lock file: {', '.join(sorted(unknown))}")
    try:
        if options.verb == "lock":
            _relock(_LOCK_FILE)
        elif options.verb == "fetch":
            for path in jar_paths(groups=groups, repository=options.repository):
                print(path)
        else:
            _check_in_full(groups)
    except PolynyaError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


def _check_in_full(groups: Iterable[str]) -> None:
    """Read every jar of `groups` that is present and compare digests; print one line each."""
    folder = os.environ.get("POLYNYA_JARS", "").strip()
    directory = Path(folder).absolute() if folder else jars_directory()
    for jar in locked_jars():
        path = directory / jar.file_name
        if jar.group in set(groups) and path.is_file():
            _check(jar, path, sha256_of(path), source=os.fspath(path))
            print(f"ok\t{path}")
        elif jar.group in set(groups):
            print(f"missing\t{path}")


if __name__ == "__main__":
    sys.exit(main())
