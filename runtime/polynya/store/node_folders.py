"""What a node allows its configuration to name, and files that only the node's user may read.

Environment variables of the node, and not the configuration, say where secrets and connectors are
stored and which other machines' code the node runs. Whoever writes the configuration works as the
node, but reads only what the node allows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_OWN: Final = 0o600


@dataclass(frozen=True, slots=True)
class NodeList:
    """What the configuration may name: the words of an environment variable."""

    variable: str

    def words(self, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """All of it; nothing where the variable is not set."""
        known = os.environ if environment is None else environment
        return tuple(known.get(self.variable, "").split())

    def holds(self, place: str, environment: Mapping[str, str] | None = None) -> bool:
        """Whether a place is one of the words, or below one that ends with a slash.

        A place with `.` or `..` as a part is below nothing: whoever opens it may follow them.
        """
        if {".", ".."} & set(place.split("/")):
            return False
        return any(
            place.startswith(word) if word.endswith("/") else place == word
            for word in self.words(environment)
        )


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """A folder whose place an environment variable gives."""

    variable: str
    default: str

    def place(self, environment: Mapping[str, str] | None = None) -> Path:
        """Where it is."""
        known = os.environ if environment is None else environment
        return Path(known.get(self.variable) or self.default)

    def below(self, path: str | Path, environment: Mapping[str, str] | None = None) -> Path | None:
        """A path with its links resolved if it is inside of the folder, else None.

        A relative path is relative to the folder. A link that leads to itself is not inside.
        """
        try:
            folder = self.place(environment).resolve()
            found = (folder / path).resolve()
        except (OSError, RuntimeError):
            return None
        return found if found.is_relative_to(folder) else None

    def outside(self) -> str:
        """Why a path is refused, in words."""
        return f"it is not below {self.place()}, the folder that `{self.variable}` names"


def own(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=own)`; a new one is for this user only.

    Logs hold names of people's files, and values in errors.
    """
    return os.open(path, flags, _OWN)


#: What `${file:PATH}`, the properties of a Kafka client and `tls.ca` may name.
SECRETS: Final = NodeFolder("POLYNYA_SECRETS", "/etc/polynya/secrets")
#: Scripts and environments in S3 that a task may have a job of EMR run.
JOB_CODE: Final = NodeList("POLYNYA_JOB_CODE")
#: What jobs of EMR have where a task does not say: application, role, script and archive.
EMR_JOBS: Final = NodeList("POLYNYA_EMR_JOBS")
#: The Glue job of tasks that name none.
GLUE_JOB: Final = NodeList("POLYNYA_GLUE_JOB")
#: Spark masters on other machines that a session may join.
SPARK_MASTERS: Final = NodeList("POLYNYA_SPARK_MASTERS")
#: What may be run as Python on the workers of a Spark cluster.
SPARK_PYTHONS: Final = NodeList("POLYNYA_SPARK_PYTHONS")
#: What `engine.jars` of a connection may name.
CONNECTORS: Final = NodeFolder("POLYNYA_CONNECTORS", "/opt/polynya/connectors")
#: Hosts of REST APIs on this machine, or at its link-local addresses, that a source may ask.
LOCAL_APIS: Final = NodeList("POLYNYA_LOCAL_APIS")
