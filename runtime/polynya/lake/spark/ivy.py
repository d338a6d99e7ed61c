"""Fetch one artifact from a Maven repository with the Apache Ivy that PySpark ships.

Knows nothing of lock files: it brings a file, the caller says whether it is the right one.
Ivy knows the public repository by itself, so this tree holds no host name.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path
from xml.sax.saxutils import quoteattr

from polynya.lake.spark.java import find_java
from polynya.model.errors import DependencyError

_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" root={root}/></resolvers>
</ivysettings>
"""

# Ivy waits for ever on a network that swallows packets; a clear error after a minute is kinder.
_TIMEOUTS = (
    "-Dsun.net.client.defaultConnectTimeout=20000",
    "-Dsun.net.client.defaultReadTimeout=60000",
)
_LIMIT_SECONDS = 900


def retrieve(
    organisation: str, module: str, revision: str, scratch: Path, mirror: str | None
) -> Path:
    """Download one jar without its dependencies and return its path below `scratch`.

    Args:
        organisation: Maven group id.
        module: Maven artifact id.
        revision: Maven version.
        scratch: directory for Ivy's own cache and the result; the caller removes it.
        mirror: URL of the repository to use instead of the public one.

    Raises:
        DependencyError: POLYNYA-DEP-002, with the reason that Ivy gave.
    """
    command = _command(organisation, module, revision, scratch, mirror)
    what = f"{organisation}:{module}:{revision}"
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=_LIMIT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _failure(what, mirror, f"no answer within {_LIMIT_SECONDS} s") from error
    path = scratch / f"{module}-{revision}.jar"
    if done.returncode != 0 or not path.is_file():
        raise _failure(what, mirror, _reason(done.stdout))
    return path


def _command(
    organisation: str, module: str, revision: str, scratch: Path, mirror: str | None
) -> list[str]:
    command = [os.fspath(find_java().executable), *_TIMEOUTS, "-jar", os.fspath(_ivy_jar())]
    if mirror:
        settings = scratch / "ivysettings.xml"
        root = mirror if mirror.endswith("/") else mirror + "/"
        settings.write_text(_SETTINGS.format(root=quoteattr(root)), encoding="utf-8")
        command += ["-settings", os.fspath(settings)]
    # `-types jar` leaves out sources and javadoc, which some modules publish beside the jar.
    return [
        *command,
        "-notransitive", "-types", "jar",
        "-cache", os.fspath(scratch / "ivy"),
        "-dependency", organisation, module, revision,
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
        raise _no_pyspark(directory)
    return directory


def _ivy_jar() -> Path:
    found = sorted(spark_jars_directory().glob("ivy-*.jar"))
    if not found:
        raise _no_pyspark(spark_jars_directory())
    return found[-1]


def _no_pyspark(directory: Path) -> DependencyError:
    return DependencyError(
        "POLYNYA-DEP-005",
        "PySpark with its jars is not installed in this environment",
        where=os.fspath(directory),
        state="nothing was started, no data was touched",
        fix="run `make install`",
    )


def _reason(output: str) -> str:
    """The line of Ivy's report that says most: a network error, else the unresolved module."""
    lines = [line.strip() for line in output.splitlines()]
    for pattern in (r"SERVER ERROR|Exception|refused|timed out|unable to", r"not found|FAILED"):
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return _without_password(line)[:300]
    return _without_password(next((line for line in reversed(lines) if line), "no output"))[:300]


def _failure(what: str, mirror: str | None, reason: str) -> DependencyError:
    return DependencyError(
        "POLYNYA-DEP-002",
        f"cannot download {what}: {reason}",
        where=_without_password(mirror) if mirror else "the public Maven repository",
        state="nothing was started, no data was touched; jars that were already fetched are kept",
        fix="one of: run `make install` again on a machine with network access; set "
        "POLYNYA_MAVEN_REPOSITORY to the URL of your company's Maven mirror; "
        "set POLYNYA_JARS to a folder that holds the jars of jars.lock.json",
    )


def _without_password(text: str) -> str:
    return re.sub(r"(://)[^/@\s]*@", r"\1***@", text)
