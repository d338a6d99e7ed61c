"""The jars that Spark starts with: pinned by a lock file, fetched once through Ivy, verified.

Spark never resolves anything itself: it gets local paths. A jar comes from the folder in
POLYNYA_JARS when that is set (machines without network), else from the cache. The Apache Ivy that
PySpark ships fills the cache from a Maven repository; it knows the public one itself, so this code
holds no host name. Ivy only fetches: `jar_paths` compares every jar with the lock file. Reasons:
docs/adr/0001-locked-packages-jars-and-java.md.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from polynya.lake.spark.cache import cache_root, write_atomically
from polynya.lake.spark.java import find_java
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.machine import (
    JAR_MISSING,
    JAR_NOT_FETCHED,
    JAR_NOT_PINNED,
    NO_PYSPARK,
)
from polynya.model.errors import DependencyError, PolynyaError
from polynya.model.names import S3Location

_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" root={root}/></resolvers>
</ivysettings>
"""

_MODULE = """\
<ivy-module version="2.0"><info organisation="polynya" module="jars"/>
<dependencies>{}</dependencies></ivy-module>
"""
_DEPENDENCY = '<dependency org={} name={} rev={} transitive="false" conf="default->default"/>'

Artifact: TypeAlias = tuple[str, str, str]

# Ivy never gives up on a network that swallows packets; a clear error after a minute is kinder.
_TIMEOUTS = (
    "-Dsun.net.client.defaultConnectTimeout=20000",
    "-Dsun.net.client.defaultReadTimeout=60000",
)
_DOWNLOAD_TIMEOUT_SECONDS = 900


def retrieve(
    organisation: str, module: str, revision: str, scratch: Path, mirror: str | None
) -> Path:
    """Download one jar; as `retrieve_all`."""
    (path,) = retrieve_all([(organisation, module, revision)], scratch, mirror)
    return path


def retrieve_all(artifacts: Sequence[Artifact], scratch: Path, mirror: str | None) -> list[Path]:
    """Download jars without their dependencies, in one go; their paths below `scratch`, in order.

    Args:
        artifacts: group id, artifact id and version in Maven's terms.
        scratch: directory for Ivy's own cache and the result; the caller removes it.
        mirror: URL of the repository to use instead of the public one.

    Raises:
        DependencyError: POLYNYA-DEP-002, with the reason that Ivy gave.
    """
    command = _command(artifacts, scratch, mirror)
    names = [":".join(artifact) for artifact in artifacts]
    what = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=_DOWNLOAD_TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _failure(what, mirror, f"no answer within {_DOWNLOAD_TIMEOUT_SECONDS} s") from error
    paths = [scratch / f"{module}-{revision}.jar" for _, module, revision in artifacts]
    if done.returncode != 0 or not all(path.is_file() for path in paths):
        raise _failure(what, mirror, _reason(done.stdout))
    return paths


def _command(artifacts: Sequence[Artifact], scratch: Path, mirror: str | None) -> list[str]:
    command = [os.fspath(find_java().executable), *_TIMEOUTS, "-jar", os.fspath(_ivy_jar())]
    if mirror:
        settings = scratch / "ivysettings.xml"
        root = mirror if mirror.endswith("/") else mirror + "/"
        settings.write_text(_SETTINGS.format(root=quoteattr(root)), encoding="utf-8")
        command += ["-settings", os.fspath(settings)]
    wanted = scratch / "ivy.xml"
    lines = (_DEPENDENCY.format(*map(quoteattr, artifact)) for artifact in artifacts)
    wanted.write_text(_MODULE.format("".join(lines)), encoding="utf-8")
    # Jars, also those of OSGi, and not the sources that some modules publish with them.
    return [
        *command,
        "-ivy", os.fspath(wanted),
        "-types", "jar", "bundle",
        "-confs", "default",
        "-cache", os.fspath(scratch / "ivy"),
        "-retrieve", os.fspath(scratch / "[artifact]-[revision].[ext]"),
    ]  # fmt: skip


def spark_jars_directory() -> Path:
    """Return PySpark's own `jars` directory, found without importing pyspark (0.5 s).

    Raises:
        DependencyError: POLYNYA-DEP-005, there is no PySpark.
    """
    spec = importlib.util.find_spec("pyspark")
    directory = Path(spec.origin).parent / "jars" if spec and spec.origin else Path("pyspark/jars")
    if not directory.is_dir():
        raise NO_PYSPARK(where=os.fspath(directory))
    return directory


def compiler_jars() -> list[str]:
    """Paths of PySpark's own compiler of Java, Janino. Raises DependencyError, POLYNYA-DEP-005."""
    return [os.fspath(_spark_jar(name)) for name in ("janino", "commons-compiler")]


def _ivy_jar() -> Path:
    return _spark_jar("ivy")


def _spark_jar(name: str) -> Path:
    jars = sorted(spark_jars_directory().glob(f"{name}-*.jar"))
    if not jars:
        raise NO_PYSPARK(where=os.fspath(spark_jars_directory()))
    return jars[-1]


def _reason(output: str) -> str:
    """The line of Ivy's report that says most: a network error, else the unresolved module."""
    lines = [line.strip() for line in output.splitlines()]
    for pattern in (r"SERVER ERROR|Exception|refused|timed out|unable to", r"not found|FAILED"):
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return _without_password(line)[:300]
    return _without_password(next((line for line in reversed(lines) if line), "no output"))[:300]


def _failure(what: str, mirror: str | None, reason: str) -> DependencyError:
    return JAR_NOT_FETCHED(
        where=_without_password(mirror) if mirror else "the public Maven repository",
        jars=what,
        reason=reason,
    )


def _without_password(text: str) -> str:
    return re.sub(r"(://)[^/@\s]*@", r"\1***@", text)


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

    `streams` are the groups that landings need in addition.
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
        raise JAR_MISSING(
            where=os.fspath(folder),
            file_name=jar.file_name,
            coordinates=jar.coordinates,
            sha256=jar.sha256,
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
            paths = retrieve_all(wanted, Path(scratch), mirror)
            for jar, path in zip(missing, paths, strict=True):
                _check(jar, path, sha256_of(path), source="the download")
                path.replace(target / jar.file_name)
    except OSError as error:
        raise JAR_NOT_FETCHED(
            f"the jars cannot be stored: {error.strerror or error}",
            where=os.fspath(target),
            state="nothing was started; no data was touched",
            fix="make the folder writable, set XDG_CACHE_HOME to one that is, or set POLYNYA_JARS",
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
    raise JAR_NOT_PINNED(
        where=source,
        file_name=jar.file_name,
        coordinates=jar.coordinates,
        sha256=jar.sha256,
        size=jar.size,
        found_sha256=digest,
        found_size=path.stat().st_size,
    )


def _relock(lock_file: Path) -> None:
    """Write size and SHA-256 of every pinned revision again; run after editing a revision."""
    with tempfile.TemporaryDirectory(prefix="polynya-lock-") as scratch:
        entries, jars = [], locked_jars(lock_file)
        wanted = [(jar.organisation, jar.module, jar.revision) for jar in jars]
        for jar, path in zip(jars, retrieve_all(wanted, Path(scratch), None), strict=True):
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
