"""Fetch artifacts from a Maven repository with the Apache Ivy that PySpark ships.

Knows nothing of lock files: it brings a file, the caller says whether it is the right one.
Ivy knows the public repository by itself, so this tree holds no host name.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from polynya.lake.spark.java import find_java
from polynya.model.errors import DependencyError

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

# Ivy waits for ever on a network that swallows packets; a clear error after a minute is kinder.
_TIMEOUTS = (
    "-Dsun.net.client.defaultConnectTimeout=20000",
    "-Dsun.net.client.defaultReadTimeout=60000",
)
_LIMIT_SECONDS = 900


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
    names = [":".join(one) for one in artifacts]
    what = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=_LIMIT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _failure(what, mirror, f"no answer within {_LIMIT_SECONDS} s") from error
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
    lines = (_DEPENDENCY.format(*map(quoteattr, one)) for one in artifacts)
    wanted.write_text(_MODULE.format("".join(lines)), encoding="utf-8")
    # Jars, also those of OSGi, and not the sources that some modules publish beside them.
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
